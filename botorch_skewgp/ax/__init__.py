"""The Ax backend: experiments learn from every trial, whether a number, a failure, a label or a comparison.

`strategy` makes generation strategies. `adapter` and `data` turn an experiment into observations, `comparisons` records
what people say, `models` is the model that Ax builds, `transforms` its transforms of numbers, `acquisition` its search.
`decisions` asks people, and recommends an arm. `registry` registers these classes with Ax, and `internals` alone reads
names of Ax with an underscore.

Needs the extra `ax`. Import it before loading a stored experiment: the import registers this package's classes with Ax.
"""

from botorch_skewgp.ax.comparisons import (
    attach_censored,
    attach_choice,
    attach_comparison,
    recorded_comparisons,
    withdraw_censored,
    withdraw_comparison,
    withdraw_unreadable,
)
from botorch_skewgp.ax.decisions import AxQuestion, complete_pair, get_best_arm, get_next_pair, get_next_question
from botorch_skewgp.ax.internals import ValidityMetric
from botorch_skewgp.ax.registry import SkewGPGenerators
from botorch_skewgp.ax.strategy import skewgp_generation_strategy, transformed_generation_strategy

__all__ = [
    "AxQuestion",
    "SkewGPGenerators",
    "ValidityMetric",
    "attach_censored",
    "attach_choice",
    "attach_comparison",
    "complete_pair",
    "get_best_arm",
    "get_next_pair",
    "get_next_question",
    "recorded_comparisons",
    "skewgp_generation_strategy",
    "transformed_generation_strategy",
    "withdraw_censored",
    "withdraw_comparison",
    "withdraw_unreadable",
]
