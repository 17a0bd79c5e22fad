"""Model checking: leave-one-out densities, also for ArviZ (`cross_validation`), a check of `inducing_points`, and a
table of `judges` by the `linear_effects` of inputs on their utilities.
"""

from botorch_skewgp.checking.cross_validation import LeaveOneOut, leave_one_out, to_arviz
from botorch_skewgp.checking.inducing_points import InducingPointsCheck, check_inducing_points
from botorch_skewgp.checking.judges import JudgeSummary, TasteDirections, judge_summary

__all__ = [
    "InducingPointsCheck",
    "JudgeSummary",
    "LeaveOneOut",
    "TasteDirections",
    "check_inducing_points",
    "judge_summary",
    "leave_one_out",
    "to_arviz",
]
