"""Model checking: leave-one-out predictive densities, and the information score of predictions."""

from botorch_skewgp.checking.cross_validation import LeaveOneOut, leave_one_out
from botorch_skewgp.checking.scores import information_score

__all__ = ["LeaveOneOut", "information_score", "leave_one_out"]
