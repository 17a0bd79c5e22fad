"""Duels, some points of which turn out not to be valid (preferential optimisation, figures 7 and 8): Sasena's function.

A point that is not valid tells just that, a valid one also duels with the current best one: that of largest posterior
mean among those that were valid.
"""

from __future__ import annotations

import math
import time
from functools import partial

import torch
from torch import Tensor

from benchmarks._race import Cell, Group, Race, grid
from benchmarks.experiments._optimisation import (
    NOTES,
    Fitter,
    History,
    best_row,
    candidates,
    choose,
    plot_regret,
    regret_columns,
    regrets,
    values_at,
)  # fmt: skip
from botorch_skewgp.acquisition import LogProbabilityOfValidity
from botorch_skewgp.likelihoods import MixedLikelihood, PreferenceLikelihood, ValidityLikelihood
from botorch_skewgp.observations import Validity

WAYS = (
    "two models",  # of duels and of validity; the best of points that are valid with a probability of one half
    "one function",  # of both kinds of answers, as in the paper, by the mixed likelihood (10) with noise 1
    "penalty",  # all points duel, by the utility less `1e8 max(0, h)^2`
)
METHODS = tuple(f"{way}, {name}" for name in ("UCB", "EIIG 0.1", "Thompson") for way in WAYS)
FIRST, QUESTIONS, BEST, PENALTY, LEAST = 10, 60, 1.1743, 1e8, 0.5


def value(U: Tensor) -> Tensor:
    """Sasena's function of points in the unit cube, turned to be maximised."""
    x1, x2 = (5 * U).unbind(-1)
    bowls = (x2 - x1.square()).square() / 100 + (1 - x1).square() + 2 * (2 - x2).square()
    return -(2 + bowls + 7 * torch.sin(0.5 * x1) * torch.sin(0.7 * x1 * x2))


def excess(U: Tensor) -> Tensor:
    """What must not be positive."""
    x1, x2 = (5 * U).unbind(-1)
    return -torch.sin(x1 - x2 - math.pi / 8)


def _penalised(U: Tensor) -> Tensor:
    return value(U) - PENALTY * excess(U).clamp(min=0).square()


def _run(method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    way, acquisition_name = method.split(", ")
    penalised = way == "penalty"
    generator = torch.Generator().manual_seed(seed)
    utility = _penalised if penalised else value
    history = History(torch.empty(0, 2, dtype=torch.float64))
    best = -1
    valid: list[bool] = []
    for point in _first_points(generator):
        new = history.add(point)
        valid.append(bool(excess(point) <= 0))
        if penalised or valid[new]:
            if best >= 0:
                history.duel(new, best, utility)
                best = history.pairs[-1][0]
            else:
                best = new
    is_joint = way == "one function"
    likelihood = MixedLikelihood(PreferenceLikelihood(), ValidityLikelihood(noise=1.0)) if is_joint else None
    fitter, fitter_of_validity = Fitter("SkewGP", smoke, likelihood), Fitter("SkewGP", smoke)
    trace, began, questions = [], time.process_time(), 1 if smoke else QUESTIONS
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for step in range(questions + 1):
            of_validity = Validity(torch.tensor(valid))
            model = fitter(history.points, [*history.observations(), *([of_validity] if is_joint else [])])
            known = torch.tensor(valid).nonzero().squeeze(-1)
            best = int(known[best_row(model, history.points[known])])
            trace.append(BEST - float(value(history.points[best])))
            if step == questions:
                break
            X = candidates(2, generator, smoke)
            if way == "two models":
                validity = fitter_of_validity(history.points, [of_validity])
                chance = values_at(LogProbabilityOfValidity(validity), X).exp()
                X = X[chance >= min(LEAST, float(chance.max()))]
            new = history.add(X[choose(acquisition_name, model, history.points[best], 1000 * seed + step, X)])
            valid.append(bool(excess(history.points[new]) <= 0))
            if penalised or valid[new]:
                history.duel(new, best, utility)
    return {
        "regret": " ".join(f"{regret:.4g}" for regret in trace), "not_valid": valid[FIRST:].count(False),
        "seconds_per_step": (time.process_time() - began) / len(trace),
    }  # fmt: skip


def _first_points(generator: torch.Generator) -> Tensor:
    """Random points, two of them valid."""
    while True:
        points = torch.rand(FIRST, 2, generator=generator, dtype=torch.float64)
        if (excess(points) <= 0).sum() >= 2:
            return points


def _columns(runs: Group) -> dict[str, Cell]:
    return {**regret_columns(METHODS[0], runs), "not_valid": runs.mean("not_valid")}


RACES = (
    Race(
        "experiments/unknown_constraint", [{}], grid(method=METHODS), range(20), _run,
        ("regret", "not_valid", "seconds_per_step"), _columns, [*NOTES, f"not_valid: of {QUESTIONS} questions"],
        derived=regrets, plot=partial(plot_regret, xlabel="questions"), quick={"smoke": True},
    ),
)  # fmt: skip
