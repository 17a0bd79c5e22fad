"""Marginal log likelihoods for `fit_gpytorch_mll`: by expectation propagation (`skew_gp_mll`), and their `base`."""

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.mlls.skew_gp_mll import SkewGPMarginalLogLikelihood

__all__ = ["RowMarginalLogLikelihood", "SkewGPMarginalLogLikelihood"]
