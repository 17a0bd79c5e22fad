"""Bayesian transformed Gaussian processes, for numbers of unknown scale: models, posteriors and acquisition functions.

They use the package's kernels, warpings and checks of inputs, but neither rows nor draws.
"""

from botorch_skewgp.transformed.acquisition import (
    TransformedLogExpectedImprovement,
    TransformedLogProbabilityOfImprovement,
)
from botorch_skewgp.transformed.marginals import TransformedTMarginals
from botorch_skewgp.transformed.model import BayesianTransformedGP
from botorch_skewgp.transformed.posterior import TransformedTPosterior
from botorch_skewgp.transformed.warping_comparison import WarpingScore, compare_warpings

__all__ = [
    "BayesianTransformedGP",
    "TransformedLogExpectedImprovement",
    "TransformedLogProbabilityOfImprovement",
    "TransformedTMarginals",
    "TransformedTPosterior",
    "WarpingScore",
    "compare_warpings",
]
