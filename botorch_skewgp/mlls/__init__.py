"""Marginal log likelihoods for `fit_gpytorch_mll`.

`base` adds priors to the evidence. `skew_gp_mll` is the default, by expectation propagation that continues from call to
call; `botorch_skewgp.papers` has others.
"""

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.mlls.skew_gp_mll import SkewGPMarginalLogLikelihood

__all__ = ["RowMarginalLogLikelihood", "SkewGPMarginalLogLikelihood"]
