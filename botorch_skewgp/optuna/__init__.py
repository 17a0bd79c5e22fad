"""The Optuna backend: studies learn from every trial, be it a number, a failure, a constraint or a comparison.

Needs `optuna`: `pip install botorch_skewgp[optuna]`, which brings optuna-dashboard along, on whose page people compare
trials.
"""

from botorch_skewgp.optuna.judgements import (
    report_at_least,
    report_at_most,
    report_comparison,
    report_number,
    report_tie,
    report_unusable,
    withdraw_comparison,
    withdraw_reports,
    withdraw_unreadable,
)
from botorch_skewgp.optuna.sampler import SkewGPSampler

__all__ = [
    "SkewGPSampler",
    "report_at_least",
    "report_at_most",
    "report_comparison",
    "report_number",
    "report_tie",
    "report_unusable",
    "withdraw_comparison",
    "withdraw_reports",
    "withdraw_unreadable",
]
