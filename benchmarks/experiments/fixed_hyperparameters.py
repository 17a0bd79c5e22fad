"""Steps of UCB by an exact posterior and by its approximations, all hyperparameters being equal (preferential
optimisation, figures 4 and 5).

Duels by cos(5 x) + exp(-x^2 / 2) on [-2.6, 2.6], with the lengthscale 0.33 and the variance 50 that the unified
framework has for this function (figures 4 and 5). Five first duels, then every point against the current best one.
"""

from __future__ import annotations

from gpytorch.kernels import RBFKernel, ScaleKernel

from benchmarks._race import Group, Race, grid
from benchmarks._reporting import Cell
from benchmarks._runs import Row
from benchmarks.experiments._curves import NOTES, regret_columns, regrets, trace_of
from benchmarks.experiments._experiment import Experiment
from benchmarks.experiments._optimisation import optimise, utility

METHODS = ("SkewGP", "EP", "Laplace")
FIRST, DUELS, STEPS = 5, 30, 4
WIDTH, LENGTHSCALE, VARIANCE = 5.2, 0.33, 50.0


def _run(method: str, seed: int, smoke: bool = False) -> Row:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = VARIANCE, LENGTHSCALE / WIDTH
    first, duels = (2, 1) if smoke else (FIRST, DUELS)
    return optimise(utility("cosine"), f"{method}, UCB", seed, first, duels, smoke=smoke, kernel=kernel)


def _derived(row: Row) -> dict[str, Cell]:
    return regrets(row) | {f"after_{k}": regret for k, regret in enumerate(trace_of(row)[: STEPS + 1])}


def _columns(runs: Group) -> dict[str, Cell]:
    steps = [name for name in runs.rows[0] if name.startswith("after_")]
    return {**{name: runs.mean(name) for name in steps}, **regret_columns(METHODS[0], runs)}


EXPERIMENT = Experiment(
    race=Race(
        "fixed_hyperparameters", [{}], grid(method=METHODS), range(20), _run, ("regret", "seconds_per_step"), _columns,
        [*NOTES],
    ),
    derived=_derived,
)  # fmt: skip
