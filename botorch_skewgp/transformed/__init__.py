"""Bayesian transformed Gaussian processes, for numbers of unknown scale: models, posteriors and acquisition functions.

From data to posterior: `defaults`, `nodes` of the parameters, `regression` at each, and `integrated_process`.
"""

from botorch_skewgp.transformed.acquisition import (
    TransformedLogExpectedImprovement,
    TransformedLogProbabilityOfImprovement,
)
from botorch_skewgp.transformed.model import BayesianTransformedGP
from botorch_skewgp.transformed.posterior import TransformedTPosterior
from botorch_skewgp.transformed.regression import MeanAndScale
from botorch_skewgp.transformed.warping_comparison import WarpingScore, compare_warpings

__all__ = [
    "BayesianTransformedGP",
    "MeanAndScale",
    "TransformedLogExpectedImprovement",
    "TransformedLogProbabilityOfImprovement",
    "TransformedTPosterior",
    "WarpingScore",
    "compare_warpings",
]
