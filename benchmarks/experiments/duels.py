"""Optimisation with duels, with numbers and duels, and with fixed hyperparameters (unified framework, figure 12 too;
preferential optimisation, figures 4 to 6). Functions and domains are the papers'.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks._observations import rbf_kernel
from benchmarks._race import Cell, Group, Names, Race, Row, grid
from benchmarks.experiments._optimisation import NOTES, optimise, plot_regret, regret_columns, regrets, trace_of

FIRST_DUELS = {  # five on the functions of the unified paper alone
    "cosine": 5, "langermann": 5, "colville": 5, "camel": 10, "hartmann6": 10, "rosenbrock5": 10, "forrester": 10,
    "goldstein": 10, "levy2": 10,
}  # fmt: skip
DUELISTS = (
    "SkewGP, UCB", "EP, UCB", "PairwiseGP, UCB", "SkewGP, EIIG 0.1", "EP, EIIG 0.1", "PairwiseGP, EIIG 0.1",
    "SkewGP, improvement", "SkewGP, Thompson", "SkewGP, EIIG 0.5", "random",
)  # fmt: skip
WITH_NUMBERS = ("cosine", "camel", "langermann", "colville", "rosenbrock5", "hartmann6")
FIXED, STEPS = ("SkewGP", "EP", "Laplace"), 4
WIDTH, LENGTHSCALE, VARIANCE = 5.2, 0.33, 50.0  # of the domain, and those of the unified framework, figures 4 and 5
SMALL = {"first_duels": 2, "iterations": 1, "smoke": True}


def _preferential(function: str, method: str, seed: int, **small: Any) -> Row:
    return optimise(function, method, seed, **{"first_duels": FIRST_DUELS[function], "iterations": 100, **small})


def _mixed(function: str, method: str, seed: int, **small: Any) -> Row:
    """Five duels and five numbers, then a number for every fourth question, or duels in the place of numbers."""
    model, _, duels_only = method.partition(", ")
    numbers = {} if duels_only else {"first_numbers": 2 if small else 5, "number_every": 1 if small else 4}
    return optimise(function, f"{model}, UCB", seed, **{"first_duels": 5, "iterations": 60, **small}, **numbers)


def _fixed(method: str, seed: int, **small: Any) -> Row:
    settings = {"first_duels": 5, "iterations": 30, "kernel": rbf_kernel(VARIANCE, LENGTHSCALE / WIDTH), **small}
    return optimise("cosine", f"{method}, UCB", seed, **settings)


def _first_steps(row: Row) -> Names:
    return {**regrets(row), **{f"after_{k}": regret for k, regret in enumerate(trace_of(row)[: STEPS + 1])}}


def _of_steps(runs: Group) -> dict[str, Cell]:
    steps = [name for name in runs.rows[0] if name.startswith("after_")]
    return {**{name: runs.mean(name) for name in steps}, **regret_columns(FIXED[0], runs)}


MEASURES = ("regret", "seconds_per_step")
RACES = (
    Race("experiments/fixed_hyperparameters", [{}], grid(method=FIXED), range(20), _fixed, MEASURES, _of_steps, NOTES,
         derived=_first_steps, quick=SMALL),
    Race("experiments/mixed_optimisation", grid(function=WITH_NUMBERS), grid(method=(*FIXED, "SkewGP, duels only")),
         range(20), _mixed, MEASURES, partial(regret_columns, FIXED[0]), NOTES, derived=regrets, pooled="function",
         quick=SMALL),
    Race("experiments/preferential_optimisation", grid(function=FIRST_DUELS), grid(method=DUELISTS), range(20),
         _preferential, MEASURES, partial(regret_columns, DUELISTS[0]), NOTES, derived=regrets, pooled="function",
         plot=partial(plot_regret, xlabel="duels"), quick=SMALL),
)  # fmt: skip
