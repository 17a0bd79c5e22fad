"""Marginal log likelihoods for `fit_gpytorch_mll`: by expectation propagation, and the base of others."""

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.mlls.skew_gp_mll import SkewGPMarginalLogLikelihood

__all__ = ["RowMarginalLogLikelihood", "SkewGPMarginalLogLikelihood"]
