"""Steps of UCB by an exact posterior and by its approximations, all hyperparameters being equal (preferential
optimisation, figures 4 and 5).

Duels by cos(5 x) + exp(-x^2 / 2) on [-2.6, 2.6], with the lengthscale 0.33 and the variance 50 that the unified
framework has for this function (figures 4 and 5). Five first duels, then every point against the current best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gpytorch.kernels import RBFKernel, ScaleKernel

from benchmarks._reporting import Table
from benchmarks.experiments._curves import plot_regret, regret_table, trace_of
from benchmarks.experiments._experiment import Experiment, Row, paired
from benchmarks.experiments._optimisation import optimise, utility

METHODS = ("SkewGP", "EP", "Laplace")
FIRST, DUELS, STEPS = 5, 30, 4
WIDTH, LENGTHSCALE, VARIANCE = 5.2, 0.33, 50.0


def _trial(number: int, case: Row, smoke: bool) -> list[Row]:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = VARIANCE, LENGTHSCALE / WIDTH
    first, duels = (2, 1) if smoke else (FIRST, DUELS)
    method = f"{case['method']}, UCB"
    return [optimise(utility("cosine"), method, number, first, duels, smoke=smoke, kernel=kernel)]


def _tables(rows: Sequence[Row]) -> list[Table]:
    steps = Table("fixed_hyperparameters_steps", ("method", *(f"after_{k}" for k in range(STEPS + 1))))
    for method in METHODS:
        traces = [trace_of(row) for row in rows if row["method"] == method]
        if traces:
            means = [paired([trace[min(k, len(trace) - 1)] for trace in traces])[0] for k in range(STEPS + 1)]
            steps.add(method=method, **{f"after_{k}": mean for k, mean in enumerate(means)})
    return [regret_table("fixed_hyperparameters", rows, METHODS[0]), steps]


EXPERIMENT = Experiment(
    name="fixed_hyperparameters",
    figure="Preferential optimisation, figures 4 and 5",
    claim="With equal hyperparameters, UCB by the exact posterior finds better points than by Laplace's approximation.",
    deviations="The hyperparameters are those of the unified framework; 30 duels in place of 100; 512 draws.",
    trials=20,
    cases=tuple({"method": method} for method in METHODS),
    columns=("regret", "seconds_per_step"),
    trial=_trial,
    tables=_tables,
    plot=partial(plot_regret, xlabel="duels"),
)
