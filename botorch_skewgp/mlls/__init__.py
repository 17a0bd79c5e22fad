"""Marginal log likelihoods for `fit_gpytorch_mll`."""

from botorch_skewgp.mlls.skew_gp_mll import SkewGPMarginalLogLikelihood

__all__ = ["SkewGPMarginalLogLikelihood"]
