"""The Optuna backend: studies learn from every trial, whether a number, a failure, a constraint or a comparison.

`sampler` is what studies call, in `turns` with other workers. It reads `study_data`, fits the models of `study_model`
over a `search_space`, and searches it as all hosts do. `judgements` records what people say of trials, `decisions`
chooses how many to show together and recommends one, and `internals` alone reads names of Optuna with an underscore.

Needs the extra `optuna`, which includes optuna-dashboard: people compare trials on its page.
"""

from botorch_skewgp.optuna.decisions import OptunaQuestion, get_best_trial, get_next_question
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
    "OptunaQuestion",
    "SkewGPSampler",
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
