r"""Default kernel and noise of a transformed process, whose parameters are integrated over and not fitted.

Inputs are in the unit cube, and the process has unit variance.
"""

from __future__ import annotations

import math

from botorch.models.utils.gpytorch_modules import MIN_INFERRED_NOISE_LEVEL
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior

from botorch_skewgp.kernels.checked import CheckedRBFKernel
from botorch_skewgp.models.defaults import MIN_LENGTHSCALE

# Hyperparameters that are integrated over do not overfit few data, so that priors may be wide: lengthscales of a
# seventh to seven times the median in two of three cases, noise of a fiftieth to all of the process's size in nineteen
# of twenty; its median is that of BoTorch's prior for fits. With BoTorch's priors, LogNormal(sqrt(2) + log(dim) / 2,
# sqrt(3)) and LogNormal(-4, 1), the steps of IntSine count as noise.
LENGTHSCALE, LENGTHSCALE_SPREAD = 0.3, 2.0  # median, over sqrt(dim), and standard deviation of the logarithm
NOISE_LOCATION, NOISE_SPREAD = -4.0, 2.0  # of the logarithm of the variance


def default_transformed_covar_module(dim: int) -> RBFKernel:
    """An RBF kernel of unit variance, with a lengthscale for each input."""
    median = LENGTHSCALE * math.sqrt(dim)
    return CheckedRBFKernel(
        ard_num_dims=dim,
        lengthscale_prior=LogNormalPrior(math.log(median), LENGTHSCALE_SPREAD),
        lengthscale_constraint=GreaterThan(MIN_LENGTHSCALE, transform=None, initial_value=median),
    )


def default_transformed_likelihood() -> GaussianLikelihood:
    """Noise of the warped outcome."""
    return GaussianLikelihood(
        noise_prior=LogNormalPrior(NOISE_LOCATION, NOISE_SPREAD),
        noise_constraint=GreaterThan(MIN_INFERRED_NOISE_LEVEL, transform=None, initial_value=math.exp(NOISE_LOCATION)),
    )
