"""Models: the skew Gaussian process, its skew prior, and its Gaussian of equal moments."""

from botorch_skewgp.models.moment_matched import MomentMatchedModel
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.models.skew_prior import SkewPrior

__all__ = ["MomentMatchedModel", "SkewGP", "SkewPrior"]
