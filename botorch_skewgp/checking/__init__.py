"""Model checking: leave-one-out densities (`cross_validation`), the information score (`scores`), a check of
`inducing_points`, and draws for ArviZ (`inference_data`).
"""

from botorch_skewgp.checking.cross_validation import LeaveOneOut, leave_one_out
from botorch_skewgp.checking.inducing_points import InducingPointsCheck, check_inducing_points
from botorch_skewgp.checking.inference_data import to_arviz
from botorch_skewgp.checking.scores import information_score

__all__ = [
    "InducingPointsCheck",
    "LeaveOneOut",
    "check_inducing_points",
    "information_score",
    "leave_one_out",
    "to_arviz",
]
