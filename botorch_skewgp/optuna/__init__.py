"""The Optuna backend: studies learn from every trial, whether a number, a failure, a constraint or a comparison.

`sampler` reads `study_data` and searches a `search_space` by the models of `study_model`, in `turns` with other
workers; `judgements` are what people say, on the page too (`judged_trials`), and `decisions` are questions, the best
trial and the best point. `internals` holds what is not Optuna's public interface. Needs the extra `optuna`.
"""

from botorch_skewgp.optuna.decisions import BestPoint, OptunaQuestion, get_best_point, get_best_trial, get_next_question
from botorch_skewgp.optuna.judged_trials import JudgedTrials
from botorch_skewgp.optuna.judgements import (
    report_censored,
    report_choice,
    report_comparison,
    report_number,
    report_unusable,
    withdraw_comparison,
    withdraw_reports,
    withdraw_unreadable,
)
from botorch_skewgp.optuna.sampler import SkewGPSampler

__all__ = [
    "BestPoint",
    "JudgedTrials",
    "OptunaQuestion",
    "SkewGPSampler",
    "get_best_point",
    "get_best_trial",
    "get_next_question",
    "report_censored",
    "report_choice",
    "report_comparison",
    "report_number",
    "report_unusable",
    "withdraw_comparison",
    "withdraw_reports",
    "withdraw_unreadable",
]
