"""Model checking: leave-one-out predictive densities, the information score of predictions, and whether inducing points
are enough.
"""

from botorch_skewgp.checking.cross_validation import LeaveOneOut, leave_one_out
from botorch_skewgp.checking.inducing_points import InducingPointsCheck, check_inducing_points
from botorch_skewgp.checking.scores import information_score

__all__ = [
    "InducingPointsCheck",
    "LeaveOneOut",
    "check_inducing_points",
    "information_score",
    "leave_one_out",
]
