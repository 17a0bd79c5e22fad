"""Preferential optimisation (unified framework, figure 11; preferential optimisation, figures 5 and 6).

Functions and domains of both papers; five first duels on those of the unified paper alone, ten on the others, then 100
duels against the current best point (see `_optimisation`). All is maximised, and judges do not err.

- `SkewGP`: exact, 512 draws. `EP`: the Gaussian of expectation propagation. Both have the library's default kernel with
  the same hyperparameters, by evidence.
- `PairwiseGP`: BoTorch's Laplace approximation, with BoTorch's own kernel, priors and fit.
- `UCB`: the upper end of the narrowest interval of 95 %, and `EIIG`, with k = 0.1 and 0.5, both from 512 samples (2,000
  in the papers); `Thompson`; `improvement` is the library's default.

Reported is the regret of the current best point.
"""

from __future__ import annotations

from functools import partial

from benchmarks._race import Race, grid
from benchmarks._runs import Row
from benchmarks.experiments._curves import NOTES, plot_regret, regret_columns, regrets
from benchmarks.experiments._experiment import Experiment
from benchmarks.experiments._optimisation import optimise, utility

FIRST_DUELS = {
    "cosine": 5, "langermann": 5, "colville": 5, "camel": 10, "hartmann6": 10, "rosenbrock5": 10, "forrester": 10,
    "goldstein": 10, "levy2": 10,
}  # fmt: skip
METHODS = (
    "SkewGP, UCB", "EP, UCB", "PairwiseGP, UCB", "SkewGP, EIIG 0.1", "EP, EIIG 0.1", "PairwiseGP, EIIG 0.1",
    "SkewGP, improvement", "SkewGP, Thompson", "SkewGP, EIIG 0.5", "random",
)  # fmt: skip
DUELS = 100


def _run(function: str, method: str, seed: int, smoke: bool = False) -> Row:
    first, duels = (2, 1) if smoke else (FIRST_DUELS[function], DUELS)
    return optimise(utility(function), method, seed, first, duels, smoke=smoke)


EXPERIMENT = Experiment(
    race=Race(
        "preferential_optimisation", grid(function=FIRST_DUELS), grid(method=METHODS), range(20), _run,
        ("regret", "seconds_per_step"), partial(regret_columns, METHODS[0]), [*NOTES],
    ),
    pooled="function",
    derived=regrets,
    plot=partial(plot_regret, xlabel="duels"),
)  # fmt: skip
