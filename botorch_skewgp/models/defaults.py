r"""Default kernels and means, with the reason for each number.

Inputs are in the unit cube. The latent function is measured in units of the noise of labels and comparisons, whose
variance likelihoods fix at 1 (see the likelihoods), or of standardised numbers.

.. [Hvarfner2024vanilla] C. Hvarfner, E. O. Hellsten, L. Nardi. Vanilla Bayesian optimization performs great in high
   dimensions. ICML 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import Interval
from gpytorch.kernels import ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.priors import LogNormalPrior, NormalPrior

from botorch_skewgp.observations import Observation

# The latent function's variance, in units of that of the noise of labels and comparisons: a median of 10, and one in
# twenty beyond 120. A narrower prior makes the model doubt a consistent judge; a much wider one overfits a few answers.
OUTPUTSCALE_LOCATION, OUTPUTSCALE_SPREAD = math.log(10.0), 1.5
# Bounds for the optimiser, as for BoTorch's lengthscales: long steps neither underflow nor diverge.
OUTPUTSCALE_BOUNDS = (1e-4, 1e4)
MEAN_SPREAD = 10.0**0.5  # that of the latent function at the median of its variance's prior


def default_covar_module(dim: int) -> ScaleKernel:
    r"""A scaled RBF kernel with the dimension-scaled lengthscale prior of [Hvarfner2024vanilla]_.

    Args:
        dim: The number of inputs, each with a lengthscale of its own.
    """
    covar_module = ScaleKernel(
        get_covar_module_with_dim_scaled_prior(ard_num_dims=dim),
        outputscale_prior=LogNormalPrior(loc=OUTPUTSCALE_LOCATION, scale=OUTPUTSCALE_SPREAD),
        outputscale_constraint=Interval(*OUTPUTSCALE_BOUNDS, transform=None),
    )
    covar_module.outputscale = covar_module.outputscale_prior.mode
    return covar_module


def default_mean_module(observations: Sequence[Observation]) -> ConstantMean:
    r"""A constant mean; with a prior, in units of the noise of labels and comparisons, where there are no numbers.

    Args:
        observations: What the model is to be of.
    """
    if not observations or any(entry.anchors_scale for entry in observations):
        return ConstantMean()
    return ConstantMean(constant_prior=NormalPrior(0.0, MEAN_SPREAD))
