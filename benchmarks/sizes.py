"""Neighbouring sizes: seconds of draws as data grow by a twentieth, for every shape of data.

No rule that picks a sampler, or merges equal rows, may cost much where it changes: the table tells the largest ratio of
seconds between neighbours.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import torch
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary, Choice, Observation, Preference, Ranking, Slope

DIM, NOISE_RATIO = 3, 5.0
# Rows that one answer has, and points for so many answers: items that are compared again and again, or new ones.
KINDS = {
    "duels over 40 items": (1, lambda m: 40),
    "duels over new items": (1, lambda m: 2 * m),
    "choices of 4 over 35 items": (3, lambda m: 35),
    "labels at 60 points": (1, lambda m: 60),
    "rankings among duels": (1, lambda m: 40),
    "duels and a slope": (1, lambda m: 40),
    "rankings of 5": (4, lambda m: 60),
    "all yes at one point": (1, lambda m: 1),
    "duels of one undefeated among 40": (1, lambda m: 40),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--rows", type=int, nargs=2, default=[100, 10_000], help="least and largest number of rows")
    parser.add_argument("--step", type=float, default=1.5, help="factor from one size to the next")
    parser.add_argument(
        "--longest", type=float, default=120.0, help="seconds of one size, after which no larger follow"
    )


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    table = Table(
        "sizes",
        ("kind", "answers", "rows", "sampler", "seconds", "neighbour", "ratio"),
        notes=[environment(), f"load average at the start {load_average()}; seconds of processor time"],
    )
    low, high = (100, 150) if options.quick else options.rows
    num_steps = math.ceil(math.log(high / low) / math.log(options.step))
    for kind in options.kinds:
        per_answer, num_points = KINDS[kind]
        _seconds(*make(kind, low, num_points(low)))  # what is imported and compiled on first use
        _seconds(*make(kind, 4 * low, num_points(4 * low)))
        for i in range(num_steps + 1):
            m = round(min(low * options.step**i, high) / per_answer)
            times = []
            for size in (m, round(1.05 * m)):
                X, observations = make(kind, size, num_points(m))
                seconds, sampler = _seconds(X, observations)
                times.append(seconds)
            ratio = max(times) / min(times)
            table.add(
                kind=kind, answers=m, rows=m * per_answer, sampler=sampler, seconds=times[0], neighbour=times[1],
                ratio=ratio,
            )  # fmt: skip
            say(f"{kind}, {m * per_answer} rows: {times[0]:.2f} s, ratio to the next {ratio:.2f} ({sampler})")
            if max(times) > options.longest:
                break
    publish([table], folder)


def make(kind: str, m: int, num_points: int, seed: int = 0) -> tuple[Tensor, list[Observation]]:
    """Points, and answers of a judge with noise of unit variance."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(num_points, DIM, generator=generator, dtype=torch.double)
    utility = NOISE_RATIO**0.5 * torch.sin(4 * X).sum(-1)
    if kind.startswith("all yes"):
        return X, [Binary(torch.ones(m), index=torch.zeros(m, dtype=torch.long))]
    if kind.startswith("labels"):
        index = torch.randint(num_points, (m,), generator=generator)
        seen = utility[index] - utility.mean() + torch.randn(m, generator=generator, dtype=torch.double)
        return X, [Binary(seen > 0, index=index)]
    k = 4 if kind.startswith("choices") else 5 if kind == "rankings of 5" else 2
    shown = torch.rand(m, num_points, generator=generator).topk(k, dim=-1).indices
    if num_points == 2 * m:  # every item once
        shown = torch.randperm(num_points, generator=generator).view(m, 2)
    seen = utility[shown] + torch.randn(shown.shape, generator=generator, dtype=torch.double)
    shown = shown.gather(-1, seen.argsort(-1, descending=True))
    if k > 2:
        return X, [Choice(shown) if k == 4 else Ranking(shown)]
    if "undefeated" in kind:  # item 0 has won every other duel, and nobody has beaten it
        shown = torch.where(shown[:, 1:] == 0, shown.flip(-1), shown)
        shown[::2, 0] = 0
    beside: list[Observation] = []
    if kind == "rankings among duels":
        beside = [Ranking([[0, 1, 2, 3]])]
    if kind == "duels and a slope":
        beside = [Slope([0], [1], index=[0])]
    return X, [Preference(shown), *beside]


def _seconds(X: Tensor, observations: list[Observation]) -> tuple[float, str]:
    model = SkewGP(X, observations)
    model.covar_module.outputscale = NOISE_RATIO
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = model.draws.sampler
    return time.process_time() - began, sampler
