"""Model checking: leave-one-out densities (`cross_validation`), a check of
`inducing_points`, and draws for ArviZ (`inference_data`).
"""

from botorch_skewgp.checking.cross_validation import LeaveOneOut, leave_one_out
from botorch_skewgp.checking.inducing_points import InducingPointsCheck, check_inducing_points
from botorch_skewgp.checking.inference_data import to_arviz

__all__ = [
    "InducingPointsCheck",
    "LeaveOneOut",
    "check_inducing_points",
    "leave_one_out",
    "to_arviz",
]
