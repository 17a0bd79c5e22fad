"""Which pair to ask about next: the default beside BoTorch's PairwiseGP with qEUBO, on functions nobody tuned on.

Seeds below 100 are for choices of defaults. Regret is a share of what the maximiser gains over the function's mean.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import torch
from botorch import test_functions
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from gpytorch.mlls import MarginalLogLikelihood
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from benchmarks._functions import sobol_points, unit_cube, with_points
from benchmarks._observations import random_features
from benchmarks._race import Cell, Group, Race, Row, grid, mean_and_error, verdict
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference

LOOKS, REFIT, FLOOR = (0, 10, 20, 30, 40), 2, 1e-4
PAGE_LOOKS, PAGE = (0, 4, 12, 20, 32), 4
FEW = 6  # pairs of runs; of fewer no table tells
NOISES = {"consistent": 0.0, "noise .1": 0.1, "noise .3": 0.3}
SLIPS = {"slips 5 %": 0.05, "slips 20 %": 0.2}
INPUTS = {"2 to 6": (2, 3, 4, 6), "10": (10,), "20": (20,)}
METHODS = ("default", "PairwiseGP")
PAGE_METHODS = ("four at once", "one at a time", "PairwiseGP, four at once")
OPEN_LOOKS, OPEN, OPEN_METHODS = (0, 10, 20, 30), 3, ("three open", "one at a time")

# Functions

Function = Callable[[Tensor], Tensor]
Made = tuple[Function, Tensor]  # with points that may be maximisers, `k x d`


def _matern(d: int, generator: torch.Generator) -> Made:
    """By 2,000 random features, whose frequencies have Student's t distribution of five degrees of freedom."""
    squares = torch.randn(2000, 5, generator=generator, dtype=torch.float64).square().sum(-1, keepdim=True)
    frequencies = torch.randn(2000, d, generator=generator, dtype=torch.float64) * (5 / squares).sqrt()
    frequencies /= 0.2 * d**0.5
    return random_features(frequencies.mT, generator), frequencies[:0]


def _bumps(d: int, generator: torch.Generator) -> Made:
    centres = torch.rand(3, d, generator=generator, dtype=torch.float64)
    widths, heights = torch.rand(2, 3, generator=generator, dtype=torch.float64)
    widths = (0.12 + 0.18 * widths) * (d / 2) ** 0.5
    slope = torch.randn(d, generator=generator, dtype=torch.float64)
    slope = slope / (2 * slope.abs().sum())

    def bumps(X: Tensor) -> Tensor:
        squares = (X.unsqueeze(-2) - centres).square().sum(-1) / widths.square()
        return ((0.5 + heights) * torch.exp(-0.5 * squares)).sum(-1) + X @ slope

    return bumps, centres


FIXED = ("Beale", "ThreeHumpCamel", "DropWave", "Shekel")  # in the number of their inputs
STANDARD = {
    2: ("Beale", "ThreeHumpCamel", "DropWave", "Michalewicz"),
    3: ("StyblinskiTang", "Rastrigin", "DixonPrice"),
    4: ("Shekel", "Powell", "StyblinskiTang"),
    6: ("StyblinskiTang", "DixonPrice", "Rastrigin"),
    10: ("StyblinskiTang", "Levy"),
    20: ("StyblinskiTang", "Levy"),
}


def _standard(d: int, generator: torch.Generator) -> Made:
    name = STANDARD[d][int(torch.randint(len(STANDARD[d]), (1,), generator=generator))]
    function = getattr(test_functions, name)(*(() if name in FIXED else (d,)))
    low, high = function.bounds.double()
    flip = torch.rand(d, generator=generator) < 0.5
    shift = 0.2 * torch.rand(d, generator=generator, dtype=torch.float64) - 0.1

    def moved(X: Tensor) -> Tensor:
        X = torch.where(flip, 1 - X, X) + shift
        return -function._evaluate_true(low + (high - low) * X)  # noqa: SLF001  # beyond its bounds too

    X = (function.optimizers.double() - low) / (high - low) - shift
    return moved, torch.where(flip, 1 - X, X).clamp(0, 1)


FAMILIES = {"matern": _matern, "bumps": _bumps, "standard": _standard}


class Problem:
    """The function of a seed for the judge of a number, with its largest value, mean and deviation on the unit cube."""

    def __init__(self, inputs: str, seed: int, number: int) -> None:
        every = list(itertools.product(INPUTS[inputs], FAMILIES))
        self.dim, family = every[(seed + 5 * number) % len(every)]
        self.name = f"{family} {self.dim}"
        self.function, known = FAMILIES[family](self.dim, torch.Generator().manual_seed(1000 * seed + number))
        X = sobol_points(self.dim, 16384, 0)
        values = self.function(X)
        self.mean, self.deviation = float(values.mean()), float(values.std())
        self.best = self._largest(torch.cat([X[values.topk(64).indices], known]))

    def _largest(self, X: Tensor) -> float:
        X = X.clone().requires_grad_(True)
        optimizer = torch.optim.Adam([X], lr=1e-2)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
        best = -math.inf
        for _ in range(300):
            optimizer.zero_grad()
            values = self.function(X)
            best = max(best, float(values.detach().max()))
            (-values.sum()).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            with torch.no_grad():
                X.clamp_(0, 1)
        return best

    def regret(self, x: Tensor) -> float:
        """Of one point; below zero only if it is better than what was found here."""
        return (self.best - float(self.function(x.reshape(1, -1)))) / (self.best - self.mean)


# Models


def _build(
    method: str, X: Tensor, duels: Tensor, state: dict[str, Tensor], fits: bool
) -> tuple[Model, MarginalLogLikelihood]:
    """With the last hyperparameters, from which a SkewGP is fitted; PairwiseGP can be from its own defaults alone."""
    is_ours = not method.startswith("PairwiseGP")
    model = SkewGP(X, Preference(duels)) if is_ours else PairwiseGP(X, duels)
    if is_ours or not fits:
        model.load_state_dict(state, strict=False)
    objective = SkewGPMarginalLogLikelihood if is_ours else PairwiseLaplaceMarginalLogLikelihood
    return model, objective(model.likelihood, model)


def _pairs(model: Model, bounds: Tensor, method: str) -> Tensor:
    """The pairs that a method asks about at once, `m x 2 x d`."""
    if method == PAGE_METHODS[0]:
        return next_pair(model, bounds, num_pairs=PAGE)[0]
    pairs = next_pair(model, bounds)[0].unsqueeze(0)
    if method == PAGE_METHODS[2]:
        for _ in range(PAGE - 1):
            criterion = qExpectedUtilityOfBestOption(model, X_pending=pairs.flatten(0, 1))
            pairs = torch.cat([pairs, next_pair(model, bounds, criterion)[0].unsqueeze(0)])
    return pairs


def _run(
    inputs: str, judge: str, method: str, seed: int, looks: tuple[int, ...] = LOOKS, refit: int = REFIT
) -> dict[str, Cell]:
    problem = Problem(inputs, seed, [*NOISES, *SLIPS].index(judge))
    noise, slips = NOISES.get(judge, 0.0) * problem.deviation, SLIPS.get(judge, 0.0)
    answers = torch.Generator().manual_seed(seed)
    X = torch.empty(0, problem.dim, dtype=torch.float64)
    duels: list[list[int]] = []

    def answer(pair: Tensor) -> None:
        nonlocal X
        X, rows = with_points(X, pair)
        values = problem.function(pair) + noise * torch.randn(2, generator=answers, dtype=torch.float64)
        slip, first = torch.rand(2, generator=answers).tolist()
        wins = first < 0.5 if slip < slips else bool(values[0] > values[1])
        duels.append(rows if wins else rows[::-1])

    firsts = torch.Generator().manual_seed(10_000 + seed)
    for pair in torch.rand(max(6, 2 * problem.dim), 2, problem.dim, generator=firsts, dtype=torch.float64):
        answer(pair)
    bounds, state = unit_cube(problem.dim), dict[str, Tensor]()
    failures, num_first = 0, len(duels)
    waiting, order = list[Tensor](), torch.Generator().manual_seed(20_000 + seed)  # pairs that are not answered yet
    row: dict[str, Cell] = {"problem": problem.name}
    began = time.process_time()
    while True:
        asked = len(duels) - num_first
        fits = asked % refit == 0
        model, mll = _build(method, X, torch.tensor(duels), state, fits)
        if fits:
            try:
                fit_gpytorch_mll(mll)
            except (ModelFittingError, NanError, NotPSDError):
                failures += 1
                model, _ = _build(method, X, torch.tensor(duels), state, fits=False)
            state = {name: value.detach().clone() for name, value in model.named_parameters() if value.numel()}
        model.eval()
        if asked in looks:
            best, _ = recommend(model, bounds)
            row[f"regret_{asked}"] = problem.regret(best.detach())
        if asked == looks[-1]:
            break
        if method == OPEN_METHODS[0]:
            while len(waiting) < OPEN:
                waiting.append(next_pair(model, bounds, pending=waiting)[0].detach())
            answer(waiting.pop(int(torch.randint(OPEN, (1,), generator=order))))
            continue
        for pair in _pairs(model, bounds, method).detach():
            answer(pair)
    return {**row, "failed_fits": failures, "seconds": time.process_time() - began}


def _columns(runs: Group, first: str, looks: tuple[int, ...]) -> dict[str, Cell]:
    row: dict[str, Cell] = {"runs": len(runs), "seconds": runs.median("seconds")}
    for k in looks:
        logs = [values.clamp(min=FLOOR).log10() for values in runs.beside(f"regret_{k}", method=first)]
        difference, error = mean_and_error(logs[1] - logs[0])
        row |= {f"median_{k}": runs.median(f"regret_{k}"), f"less_{k}": difference, f"error_{k}": error}
        row[f"verdict_{k}"] = verdict(difference, error) if len(logs[0]) else None
    return row


def _told(rival: str, rows: Sequence[Row]) -> list[Row]:
    """Rows of all judges but those that slip too, where there are enough pairs."""
    pooled = [row for row in rows if row["judge"] in NOISES]
    every = [*rows, *({**row, "judge": "all", "seed": f"{row['judge']} {row['seed']}"} for row in pooled)]
    counts = Counter((row["inputs"], row["judge"]) for row in every if row["method"] == rival)
    return [row for row in every if counts[row["inputs"], row["judge"]] >= FEW]


def _race(
    name: str, cases: list[dict[str, Cell]], methods: tuple[str, ...], looks: tuple[int, ...], refit: int
) -> Race:
    return Race(
        name, cases, grid(method=methods), range(100, 120), partial(_run, looks=looks, refit=refit),
        ("problem", *(f"regret_{k}" for k in looks), "failed_fits", "seconds"),
        partial(_columns, first=methods[0], looks=looks),
        [f"less: log10 of the regret of {methods[0]} less the row's, floored at {FLOOR:g}; below zero it is ahead"],
        told=partial(_told, methods[1]), quick={"looks": looks[:2]},
    )  # fmt: skip


CASES = [*grid(inputs=["2 to 6"], judge=[*NOISES, *SLIPS]), *grid(inputs=["10", "20"], judge=NOISES)]
RACES = (
    _race("pairs", CASES, METHODS, LOOKS, REFIT),
    _race("open_duels", grid(inputs=["2 to 6"], judge=NOISES), OPEN_METHODS, OPEN_LOOKS, REFIT),
    _race("pages_of_duels", grid(inputs=["2 to 6"], judge=NOISES), PAGE_METHODS, PAGE_LOOKS, PAGE),
)
