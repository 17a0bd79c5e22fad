r"""Default kernel and noise of a transformed process, for integrals and not fits, and units and checks of its outcomes.

Inputs are in the unit cube, and the process has unit variance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.utils.gpytorch_modules import MIN_INFERRED_NOISE_LEVEL
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.kernels.checked import MIN_LENGTHSCALE, CheckedRBFKernel
from botorch_skewgp.warpings import Warping

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


class OutcomeUnits(NamedTuple):
    """The offset and the scale by which outcomes are standardised."""

    center: float
    scale: float

    def standardise(self, y: Tensor) -> Tensor:
        """Outcomes in these units."""
        return (y - self.center) / self.scale


def outcome_units(y: Tensor, warping: Warping) -> OutcomeUnits:
    """Median and interquartile range (as a standard deviation); the geometric mean of those that must be positive."""
    y = y.double()
    if lowest_outcome(warping) == 0:
        return OutcomeUnits(0.0, float(y.log().mean().exp()))
    size = y.abs().amax()  # squares of outcomes may overflow or vanish
    levels = torch.tensor([0.25, 0.5, 0.75], dtype=y.dtype, device=y.device)
    low, center, high = torch.quantile(y / size, levels)
    spread = (high - low) / 1.349 if bool(high > low) else (y / size).std()
    return OutcomeUnits(float(center * size), float(spread * size))


def lowest_outcome(warping: Warping) -> float:
    """The lower end of the domain of the innermost warping, for all parameters."""
    chain = list(getattr(warping, "warpings", [warping]))
    return float(chain[0].domain[0].detach().max())


def check_outcomes(X: Tensor, Y: Tensor, name: str = "train_Y") -> None:
    """Check that there is a finite outcome for every point, `n x 1`."""
    if not isinstance(Y, Tensor) or Y.is_complex() or Y.shape != (X.shape[-2], 1):
        kind = f"{tuple(Y.shape)} of {Y.dtype}" if isinstance(Y, Tensor) else type(Y).__name__
        raise InputDataError(f"{name} must be a tensor of n x 1 real numbers with n = {X.shape[-2]}; got {kind}.")
    if not bool(Y.isfinite().all()):
        where = (~Y.isfinite()).any(-1).nonzero().squeeze(-1)[:5].tolist()
        raise InputDataError(f"{name} contains NaN or infinite values in rows {where}; remove or repair these.")


def checked_outcomes(X: Tensor, Y: Tensor, warping: Warping, num_coefficients: int) -> Tensor:
    """Outcomes, `n x 1`, checked, in the precision of the points, `n`."""
    check_outcomes(X, Y)
    Y = Y.to(X)
    if not bool(Y.isfinite().all()):
        raise InputDataError(f"Some outcomes are too large for {X.dtype}, that of train_X. Use double precision.")
    if len(Y) < num_coefficients + 2:
        raise InputDataError(
            f"There are {len(Y)} points for the {num_coefficients} coefficients of the mean and the scale of the "
            f"process; at least {num_coefficients + 2} are needed."
        )
    if not bool((Y.amax() - Y.amin()).isfinite()):
        raise InputDataError(f"The values of train_Y differ by more than the largest number of {Y.dtype}; scale them.")
    if bool(Y.amax() == Y.amin()):
        raise InputDataError("All values of train_Y are equal; they say nothing about the scale of the outcome.")
    lowest = lowest_outcome(warping)
    is_inside = lowest < Y
    if not bool(is_inside.all()):
        where = (~is_inside).squeeze(-1).nonzero().squeeze(-1)[:5].tolist()
        raise InputDataError(
            f"The warping is for outcomes above {lowest:g}; rows {where} of train_Y are not. Shift them, or put an "
            "Affine or Arcsinh warping inside."
        )
    return Y.squeeze(-1)
