"""Bayesian transformed Gaussian processes, for numbers of unknown scale: models, posteriors and acquisition functions.

They use the package's kernels, warpings and checks of inputs, but neither rows nor draws. From data to posterior:

- `defaults`: checks and units of numbers; kernel and noise.
- `nodes`: nodes for integrals over the parameters' unbounded coordinates, around modes.
- `regression`, `integrated_process`: the regression on warped outcomes at each node, the weights of nodes, and the
  posterior that they give.
- `model`: the BoTorch model; `warping_comparison` chooses among its warpings.
- `posterior`, `marginals`, `student_t`: the posterior and its marginals; `acquisition`: improvement in closed form.
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
