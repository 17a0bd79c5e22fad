"""Model checking: leave-one-out predictive densities, the information score of predictions, and which of several
warpings of an outcome the data speak for.
"""

from botorch_skewgp.checking.cross_validation import LeaveOneOut, leave_one_out
from botorch_skewgp.checking.scores import information_score
from botorch_skewgp.checking.warping_comparison import WarpingScore, compare_warpings

__all__ = ["LeaveOneOut", "WarpingScore", "compare_warpings", "information_score", "leave_one_out"]
