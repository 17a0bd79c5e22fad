"""Marginal log likelihoods for `fit_gpytorch_mll`: the default form of the log evidence, and others.

`base` adds priors to the evidence. `skew_gp_mll` is the default, by expectation propagation that `warm_start` continues
from call to call; `batches`, `bivariate` and `stochastic` are the others.
"""

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.mlls.batches import BatchBoundMarginalLogLikelihood, BatchedMarginalLogLikelihood
from botorch_skewgp.mlls.bivariate import BivariateConditioningMarginalLogLikelihood
from botorch_skewgp.mlls.skew_gp_mll import SkewGPMarginalLogLikelihood
from botorch_skewgp.mlls.stochastic import StochasticMarginalLogLikelihood

__all__ = [
    "BatchBoundMarginalLogLikelihood",
    "BatchedMarginalLogLikelihood",
    "BivariateConditioningMarginalLogLikelihood",
    "RowMarginalLogLikelihood",
    "SkewGPMarginalLogLikelihood",
    "StochasticMarginalLogLikelihood",
]
