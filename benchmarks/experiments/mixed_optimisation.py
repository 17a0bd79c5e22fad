"""Optimisation with numbers and preferences (unified framework, figure 12).

Five duels and five numbers come first; every fourth question then asks for a number, the others let the new point duel
with the current best one. The questions are 60 (100 in the paper). All ask for the largest UCB.

- `SkewGP`, `EP`, `Laplace`: both kinds of data in one model, exact or with a Gaussian approximation of the same
  hyperparameters.
- `SkewGP, duels only`: duels in the place of numbers, which the paper does not compare.
"""

from __future__ import annotations

from functools import partial

from benchmarks._race import Race, grid
from benchmarks._runs import Row
from benchmarks.experiments._curves import NOTES, regret_columns, regrets
from benchmarks.experiments._experiment import Experiment
from benchmarks.experiments._optimisation import optimise, utility

FUNCTIONS = ("cosine", "camel", "langermann", "colville", "rosenbrock5", "hartmann6")
METHODS = ("SkewGP", "EP", "Laplace", "SkewGP, duels only")
FIRST, QUESTIONS, NUMBER_EVERY = 5, 60, 4


def _run(function: str, method: str, seed: int, smoke: bool = False) -> Row:
    model, _, duels_only = method.partition(", ")
    numbers = (
        {} if duels_only else {"first_numbers": 2 if smoke else FIRST, "number_every": 1 if smoke else NUMBER_EVERY}
    )
    first, questions = (2, 1) if smoke else (FIRST, QUESTIONS)
    return optimise(utility(function), f"{model}, UCB", seed, first, questions, smoke=smoke, **numbers)


EXPERIMENT = Experiment(
    race=Race(
        "mixed_optimisation", grid(function=FUNCTIONS), grid(method=METHODS), range(20), _run,
        ("regret", "seconds_per_step"), partial(regret_columns, METHODS[0]), [*NOTES],
    ),
    pooled="function",
    derived=regrets,
)  # fmt: skip
