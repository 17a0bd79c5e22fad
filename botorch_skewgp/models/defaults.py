r"""Default kernels and means, with the reason for each number.

Inputs are in the unit cube. The latent function is measured in units of the noise of labels and comparisons, whose
variance likelihoods fix at 1 (see the likelihoods), or of standardised numbers.

.. [Hvarfner2024vanilla] C. Hvarfner, E. O. Hellsten, L. Nardi. Vanilla Bayesian optimization performs great in high
   dimensions. ICML 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from gpytorch.priors import LogNormalPrior

from botorch_skewgp.models.means import IntegratedConstantMean
from botorch_skewgp.observations import Observation

# The latent function's variance, in units of that of the noise of labels and grades: a median of 10, and one in twenty
# beyond 120. A narrower prior makes the model doubt consistent labels; a much wider one overfits a few of them.
OUTPUTSCALE_LOCATION, OUTPUTSCALE_SPREAD = math.log(10.0), 1.5
# The same for comparisons alone. How consistent a judge is, ten answers hardly tell: from one whose noise is a third of
# the function's standard deviation (a ratio of 10) to one whose noise nobody sees (10,000 and more), all are likely.
# The density of such a prior is largest at 19, but falls slowly beyond: consistent answers can carry the ratio far.
# Held-out densities of duels are the same for LogNormal(log 1000, 2), with a worse worst case.
COMPARISON_OUTPUTSCALE_LOCATION, COMPARISON_OUTPUTSCALE_SPREAD = math.log(10_000.0), 2.5
COMPARISON_OUTPUTSCALE_START = 1000.0  # of fits
# What a user can say of a judge: the location and spread of the logarithm of the same ratio.
JUDGES = {"consistent": (math.log(10_000.0), 1.0), "noisy": (math.log(30.0), 1.0)}
# Lengthscales for comparisons alone: a median of 0.2 sqrt(dim), about the mode of the dimension-scaled prior, whose
# spread of sqrt(3) lets ten answers be explained by lengthscales of 0.03 or of 10; two thirds are within a factor of
# 1.6. Spreads of 0.4 to 0.6 have the best held-out density of duels, and it is the same for 0.15 to 0.25 sqrt(dim).
COMPARISON_LENGTHSCALE, COMPARISON_LENGTHSCALE_SPREAD = 0.2, 0.5
# Bounds for the optimiser, as for BoTorch's lengthscales: long steps neither underflow nor diverge.
OUTPUTSCALE_BOUNDS, COMPARISON_OUTPUTSCALE_BOUNDS = (1e-4, 1e4), (1e-4, 1e6)
LEAST_LENGTHSCALE = 0.025  # BoTorch's
MEAN_SPREAD = 10.0**0.5  # that of the latent function at the median of its variance's prior


def default_covar_module(
    dim: int,
    observations: Sequence[Observation] = (),
    judge: Literal["consistent", "noisy"] | None = None,
) -> ScaleKernel:
    r"""A scaled RBF kernel.

    For comparisons alone (duels, ties, choices, rankings) the lengthscales have a prior that is narrow beside the
    dimension-scaled one of [Hvarfner2024vanilla]_, which all other models have, and the output scale, which is measured
    in units of the judge's noise, one that is wide, unless it is said what is known of the judge.

    Example:
        >>> covar_module = default_covar_module(train_X.shape[-1], [Preference(pairs)], judge="consistent")
        >>> model = SkewGP(train_X, Preference(pairs), covar_module=covar_module)

    Args:
        dim: The number of inputs, each with a lengthscale of its own.
        observations: What the model is to be of.
        judge: What is known of the one who compares: `"consistent"` if answers would hardly change when asked again, as
            those of a computation, `"noisy"` if many would.

    Raises:
        InputDataError: If `judge` is something else.
        UnsupportedError: If a judge is given and there are other observations than comparisons.
    """
    comparisons = len(observations) > 0 and all(entry.points_per_observation > 1 for entry in observations)
    if judge is not None and judge not in JUDGES:
        raise InputDataError(f"judge must be 'consistent', 'noisy' or None; got {judge!r}.")
    if judge is not None and not comparisons:
        raise UnsupportedError("judge is about comparisons; leave it out for other observations.")
    base_kernel = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
    location, spread, bounds = OUTPUTSCALE_LOCATION, OUTPUTSCALE_SPREAD, OUTPUTSCALE_BOUNDS
    if comparisons:
        location, spread = COMPARISON_OUTPUTSCALE_LOCATION, COMPARISON_OUTPUTSCALE_SPREAD
        location, spread = JUDGES.get(str(judge), (location, spread))
        bounds = COMPARISON_OUTPUTSCALE_BOUNDS
        median = COMPARISON_LENGTHSCALE * math.sqrt(dim)
        base_kernel = RBFKernel(
            ard_num_dims=dim,
            lengthscale_prior=LogNormalPrior(math.log(median), COMPARISON_LENGTHSCALE_SPREAD),
            lengthscale_constraint=GreaterThan(LEAST_LENGTHSCALE, transform=None, initial_value=median),
        )
    covar_module = ScaleKernel(
        base_kernel,
        outputscale_prior=LogNormalPrior(loc=location, scale=spread),
        outputscale_constraint=Interval(*bounds, transform=None),
    )
    covar_module.outputscale = COMPARISON_OUTPUTSCALE_START if comparisons else covar_module.outputscale_prior.mode
    return covar_module


def default_mean_module(observations: Sequence[Observation]) -> Mean:
    r"""A constant: fitted where numbers tell it, irrelevant to comparisons, integrated over for labels and grades.

    A fitted constant would take a few equal labels for the whole domain's. The variance of the one that is integrated
    over is that of the latent function at the median of its prior; with it, predictions far from 5 to 40 data are about
    as often right as they say. To class labels, which compare outputs, a constant is irrelevant too.

    Args:
        observations: What the model is to be of.
    """
    anchored = any(entry.anchors_scale for entry in observations)
    told = (entry.points_per_observation == 1 and entry.num_outputs == 1 for entry in observations)
    if any(told) and not anchored:
        return IntegratedConstantMean(MEAN_SPREAD**2)
    return ConstantMean()
