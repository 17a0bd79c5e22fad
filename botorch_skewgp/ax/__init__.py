"""The Ax backend: experiments learn from every trial, whether a number, a failure, a label or a comparison.

`strategy` and `transformed` make generation strategies, with the `transition` from Sobol points to models. `adapter`
and `data` turn an experiment into observations, `comparisons` records what people say, `models` is the model that Ax
builds, `transforms` its transforms of numbers, `acquisition` its search. `pairs` and
`questions` ask people, `best_arm` answers.
`registry` registers these classes with Ax, and `internals` alone reads names of Ax with an underscore.

Needs the extra `ax`. Import it before loading a stored experiment: the import registers this package's classes with Ax.
"""

from botorch_skewgp.ax.acquisition import SkewGPAcquisition
from botorch_skewgp.ax.adapter import SkewGPAdapter
from botorch_skewgp.ax.best_arm import get_best_arm
from botorch_skewgp.ax.comparisons import (
    attach_censored,
    attach_choice,
    attach_comparison,
    recorded_bounds,
    recorded_comparisons,
    withdraw_censored,
    withdraw_comparison,
    withdraw_unreadable,
)
from botorch_skewgp.ax.internals import ValidityMetric
from botorch_skewgp.ax.models import AxSkewGP
from botorch_skewgp.ax.pairs import complete_pair, get_next_pair
from botorch_skewgp.ax.questions import AxQuestion, get_next_question
from botorch_skewgp.ax.registry import SkewGPGenerators
from botorch_skewgp.ax.strategy import skewgp_generation_strategy
from botorch_skewgp.ax.transformed import transformed_generation_strategy
from botorch_skewgp.hosts.entries import Comparison

__all__ = [
    "AxQuestion",
    "AxSkewGP",
    "Comparison",
    "SkewGPAcquisition",
    "SkewGPAdapter",
    "SkewGPGenerators",
    "ValidityMetric",
    "attach_censored",
    "attach_choice",
    "attach_comparison",
    "complete_pair",
    "get_best_arm",
    "get_next_pair",
    "get_next_question",
    "recorded_bounds",
    "recorded_comparisons",
    "skewgp_generation_strategy",
    "transformed_generation_strategy",
    "withdraw_censored",
    "withdraw_comparison",
    "withdraw_unreadable",
]
