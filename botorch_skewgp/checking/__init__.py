"""Model checking: leave-one-out predictive densities, the information score of predictions, whether inducing points are
enough, and which of several warpings of an outcome the data speak for.
"""

from botorch_skewgp.checking.cross_validation import LeaveOneOut, leave_one_out
from botorch_skewgp.checking.inducing_points import InducingPointsCheck, check_inducing_points
from botorch_skewgp.checking.scores import information_score
from botorch_skewgp.checking.warping_comparison import WarpingScore, compare_warpings

__all__ = [
    "InducingPointsCheck",
    "LeaveOneOut",
    "WarpingScore",
    "check_inducing_points",
    "compare_warpings",
    "information_score",
    "leave_one_out",
]
