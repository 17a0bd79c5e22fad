"""Bayesian transformed Gaussian processes, for numbers of unknown scale: models, posteriors and acquisition functions.

They use the package's kernels, warpings and checks of inputs, but neither rows nor draws. From data to posterior:

- `outcomes`, `defaults`: checks and units of numbers; kernel and noise.
- `parameter_space`, `quadrature`, `nodes`: parameters as coordinates, and nodes for integrals over them, around modes.
- `regression`, `weights`, `integrated_process`: the regression on warped outcomes at each node, the weights of nodes,
  and all of these together.
- `sparse_grid`: the sparse grids among the nodes.
- `model`: the BoTorch model; `mean_and_scale`: the laws of what is integrated out in closed form;
  `leave_one_out` and `warping_comparison` check it.
- `posterior`, `marginals`, `student_t`: the posterior and its marginals; `acquisition`: improvement in closed form.
"""

from botorch_skewgp.transformed.acquisition import (
    TransformedLogExpectedImprovement,
    TransformedLogProbabilityOfImprovement,
)
from botorch_skewgp.transformed.mean_and_scale import MeanAndScale
from botorch_skewgp.transformed.model import BayesianTransformedGP
from botorch_skewgp.transformed.posterior import TransformedTPosterior
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
