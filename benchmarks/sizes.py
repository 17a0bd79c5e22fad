"""Neighbouring sizes: seconds of draws as data grow by a twentieth, as no choice of a sampler may cost much."""

from __future__ import annotations

import math
import time

import torch
from torch import Tensor

from benchmarks._observations import best_first, random_items
from benchmarks._race import Names, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary, Choice, Observation, Preference, Ranking, Slope

DIM, NOISE_RATIO = 3, 5.0
LEAST, MOST, STEP = 100, 10_000, 1.5  # rows, and the factor from one size to the next
LONGEST = 120.0  # seconds of one size, after which no larger follow
# Options of an answer, and points for so many answers: items that are compared again and again, or new ones.
KINDS = {
    "duels over 40 items": (2, lambda m: 40),
    "duels over new items": (2, lambda m: 2 * m),
    "choices of 4 over 35 items": (4, lambda m: 35),
    "labels at 60 points": (2, lambda m: 60),
    "rankings among duels": (2, lambda m: 40),
    "duels and a slope": (2, lambda m: 40),
    "rankings of 5": (5, lambda m: 60),
    "all yes at one point": (2, lambda m: 1),
    "duels of one undefeated among 40": (2, lambda m: 40),
}


def _run(kind: str, rows: int, seed: int, most: int = MOST) -> list[Names]:
    k, num_points = KINDS[kind]
    for size in (LEAST, 4 * LEAST):  # what is imported and compiled on first use
        _seconds(*make(kind, size, num_points(size)))
    found: list[Names] = []
    for i in range(math.ceil(math.log(most / LEAST) / math.log(STEP)) + 1):
        m = round(min(LEAST * STEP**i, most) / (k - 1))
        (first, sampler), (second, _) = (_seconds(*make(kind, n, num_points(m))) for n in (m, round(1.05 * m)))
        ratio = max(first, second) / min(first, second)
        cells = {"answers": m, "sampler": sampler, "seconds": first, "neighbour": second, "ratio": ratio}
        found.append({"rows": m * (k - 1), **cells})
        if max(first, second) > LONGEST:
            break
    return found


def make(kind: str, m: int, num_points: int) -> tuple[Tensor, list[Observation]]:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(num_points, DIM, generator=generator, dtype=torch.double)
    utility = NOISE_RATIO**0.5 * torch.sin(4 * X).sum(-1)
    if kind.startswith("all yes"):
        return X, [Binary(torch.ones(m), index=torch.zeros(m, dtype=torch.long))]
    if kind.startswith("labels"):
        index = torch.randint(num_points, (m,), generator=generator)
        seen = utility[index] - utility.mean() + torch.randn(m, generator=generator, dtype=torch.double)
        return X, [Binary(seen > 0, index=index)]
    k = KINDS[kind][0]
    if num_points >= 2 * m:  # every item once
        shown = torch.randperm(num_points, generator=generator)[: 2 * m].view(m, 2)
    else:
        shown = random_items(num_points, m, k, generator)
    shown, _ = best_first(utility, shown, 1.0, generator)
    if k > 2:
        return X, [Choice(shown) if k == 4 else Ranking(shown)]
    if "undefeated" in kind:  # item 0 has won every other duel, and nobody has beaten it
        shown = torch.where(shown[:, 1:] == 0, shown.flip(-1), shown)
        shown[::2, 0] = 0
    beside: dict[str, list[Observation]] = {
        "rankings among duels": [Ranking([[0, 1, 2, 3]])], "duels and a slope": [Slope([0], [1], index=[0])],
    }  # fmt: skip
    return X, [Preference(shown), *beside.get(kind, [])]


def _seconds(X: Tensor, observations: list[Observation]) -> tuple[float, str]:
    model = SkewGP(X, observations)
    model.covar_module.outputscale = NOISE_RATIO
    began = time.process_time()
    sampler = model.draws.sampler
    return time.process_time() - began, sampler


RACES = (
    Race("sizes", grid(kind=KINDS), grid(rows=[LEAST]), range(1), _run,
         ("answers", "sampler", "seconds", "neighbour", "ratio"), quick={"most": 150}),
)  # fmt: skip
