"""The Ax backend: experiments learn from every trial, whether a number, a failure, a label or a comparison.

`strategy` makes strategies; `adapter`, `data` and `comparisons` read experiments, `transforms` and `models` build their
models, `acquisition` searches, `decisions` asks people, on the page too (`judged_arms`), and says what is best.
`registry` names all for Ax's storage, `internals` holds what is not Ax's public interface. Needs the extra `ax`. Import
it before loading a stored experiment: the import registers this package's classes with Ax.
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
from botorch_skewgp.ax.decisions import (
    AxQuestion,
    complete_pair,
    get_best_arm,
    get_best_point,
    get_next_pair,
    get_next_question,
)
from botorch_skewgp.ax.internals import ValidityMetric
from botorch_skewgp.ax.judged_arms import JudgedArms
from botorch_skewgp.ax.registry import SkewGPGenerators
from botorch_skewgp.ax.strategy import skewgp_generation_strategy, transformed_generation_strategy

__all__ = [
    "AxQuestion",
    "JudgedArms",
    "SkewGPGenerators",
    "ValidityMetric",
    "attach_censored",
    "attach_choice",
    "attach_comparison",
    "complete_pair",
    "get_best_arm",
    "get_best_point",
    "get_next_pair",
    "get_next_question",
    "recorded_comparisons",
    "skewgp_generation_strategy",
    "transformed_generation_strategy",
    "withdraw_censored",
    "withdraw_comparison",
    "withdraw_unreadable",
]
