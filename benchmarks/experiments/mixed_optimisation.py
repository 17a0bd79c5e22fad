"""Optimisation with numbers and preferences (unified framework, figure 12).

Five duels and five numbers come first; every fourth question then asks for a number, the others let the new point duel
with the current best one. The questions are 60 (100 in the paper). All ask for the largest UCB.

- `SkewGP`, `EP`, `Laplace`: both kinds of data in one model, exact or with a Gaussian approximation of the same
  hyperparameters.
- `SkewGP, duels only`: duels in the place of numbers, which the paper does not compare.
"""

from __future__ import annotations

from functools import partial

from benchmarks.experiments._curves import plot_regret, regret_table
from benchmarks.experiments._experiment import Experiment, Row
from benchmarks.experiments._optimisation import optimise, utility

FUNCTIONS = ("cosine", "camel", "langermann", "colville", "rosenbrock5", "hartmann6")
METHODS = ("SkewGP", "EP", "Laplace", "SkewGP, duels only")
FIRST, QUESTIONS, NUMBER_EVERY = 5, 60, 4


def _trial(number: int, case: Row, smoke: bool) -> list[Row]:
    model, _, duels_only = case["method"].partition(", ")
    numbers = (
        {} if duels_only else {"first_numbers": 2 if smoke else FIRST, "number_every": 1 if smoke else NUMBER_EVERY}
    )
    first, questions = (2, 1) if smoke else (FIRST, QUESTIONS)
    return [optimise(utility(case["function"]), f"{model}, UCB", number, first, questions, smoke=smoke, **numbers)]


EXPERIMENT = Experiment(
    name="mixed_optimisation",
    figure="Unified framework, figure 12",
    claim="With numbers and duels SkewGP finds better points than Laplace's approximation and EP.",
    deviations="60 questions in place of 100; incumbent, search and fits as in preferential optimisation; 512 draws.",
    trials=20,
    cases=tuple({"function": function, "method": method} for function in FUNCTIONS for method in METHODS),
    columns=("regret", "seconds_per_step"),
    trial=_trial,
    tables=lambda rows: [regret_table("mixed_optimisation", rows, "SkewGP")],
    plot=partial(plot_regret, xlabel="questions"),
)
