"""Models: the skew Gaussian process and its skew prior."""

from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.models.skew_prior import SkewPrior

__all__ = ["SkewGP", "SkewPrior"]
