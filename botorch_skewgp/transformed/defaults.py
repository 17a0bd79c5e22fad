r"""Default kernel and noise of a transformed process, for integrals and not fits, the basis of its mean, and checks.

Inputs are in the unit cube, and the process has unit variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.utils.gpytorch_modules import MIN_INFERRED_NOISE_LEVEL
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.inputs.points import check_finite
from botorch_skewgp.kernels.checked import MIN_LENGTHSCALE, CheckedRBFKernel
from botorch_skewgp.warpings import Warping

# Hyperparameters that are integrated over do not overfit few data, so that priors may be wide: lengthscales of a
# seventh to seven times the median in two of three cases, noise of a fiftieth to all of the process's size in nineteen
# of twenty; its median is that of BoTorch's prior for fits. With BoTorch's priors, LogNormal(sqrt(2) + log(dim) / 2,
# sqrt(3)) and LogNormal(-4, 1), the steps of IntSine count as noise.
LENGTHSCALE, LENGTHSCALE_SPREAD = 0.3, 2.0  # median, over sqrt(dim), and standard deviation of the logarithm
NOISE_LOCATION, NOISE_SPREAD = -4.0, 2.0  # of the logarithm of the variance
ROUNDING = 2e-15  # of a fit by least squares, relative to what is fitted
MIN_SPARE = 1e-12  # share of an outcome that is not fitted by the mean alone, beyond rounding

Mean = Literal["constant", "linear"] | Callable[[Tensor], Tensor]


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


def mean_basis(mean: Mean, X: Tensor, p: int | None = None) -> Tensor:
    """The basis functions of a mean at transformed points, `n x d`: values, `n x p`; raises `InputDataError`."""
    if not callable(mean):
        one = torch.ones_like(X[:, :1])
        return torch.cat([one, X], dim=-1) if mean == "linear" else one
    basis = mean(X)
    is_table = isinstance(basis, Tensor) and not basis.is_complex() and basis.ndim == 2 and len(basis) == len(X)
    if not is_table or basis.shape[-1] == 0 or p not in (None, basis.shape[-1]):
        kind = f"shape {tuple(basis.shape)} of {basis.dtype}" if isinstance(basis, Tensor) else type(basis).__name__
        raise InputDataError(
            f"mean must return n x p real numbers for n points, with the same p always; got {kind} for n = {len(X)}"
            f"{'' if p is None else f' and p = {p}'}."
        )
    basis = basis.to(X)
    check_finite(basis, "The basis that mean returns")
    return basis


def _least_squares(values: Tensor, basis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Residuals of values, `n`, in units of the largest, `1 - h_ii` with the leverages `h_ii`, and the values' norm."""
    orthonormal = torch.linalg.qr(basis.double()).Q
    unit = values.double()
    unit = unit / unit.abs().amax().clamp_min(torch.finfo(unit.dtype).tiny)
    residual = unit - orthonormal @ (orthonormal.mT @ unit)
    residual = residual - orthonormal @ (orthonormal.mT @ residual)  # rounding of the first time
    return residual, 1 - orthonormal.square().sum(-1), unit.norm()


def is_combination(values: Tensor, basis: Tensor) -> bool:
    """Whether values, `n`, are a linear combination of basis functions, `n x p`, up to rounding."""
    residual, _, size = _least_squares(values, basis)
    return bool(residual.norm() <= (ROUNDING + torch.finfo(values.dtype).eps) * size)


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


def checked_outcomes(X: Tensor, Y: Tensor, warping: Warping, basis: Tensor) -> Tensor:
    """Outcomes, `n x 1`, checked with the basis functions of the mean, `n x p`, in the precision of the points, `n`."""
    check_outcomes(X, Y)
    Y = Y.to(X)
    if not bool(Y.isfinite().all()):
        raise InputDataError(f"Some outcomes are too large for {X.dtype}, that of train_X. Use double precision.")
    n, p = basis.shape
    if n < p + 2:
        raise InputDataError(
            f"There are {n} points for the {p} coefficients of the mean and the scale of the process; at least {p + 2} "
            "are needed."
        )
    columns = basis.double()
    size = columns.abs().amax(0).clamp_min(torch.finfo(columns.dtype).tiny)
    rank = int(torch.linalg.matrix_rank(columns / size, rtol=n * torch.finfo(basis.dtype).eps))
    if rank < p:
        raise InputDataError(
            f"The {p} basis functions of the mean are linearly dependent at the points: their rank is {rank}. Leave "
            f"{p - rank} out, or add points that tell them apart."
        )
    if not bool((Y.amax() - Y.amin()).isfinite()):
        raise InputDataError(f"The values of train_Y differ by more than the largest number of {Y.dtype}; scale them.")
    if bool(Y.amax() == Y.amin()):
        raise InputDataError("All values of train_Y are equal; they say nothing about the scale of the outcome.")
    if is_combination(Y.squeeze(-1), basis):
        raise InputDataError(
            "train_Y is exactly a linear combination of the basis functions of the mean; it says nothing about the "
            "scale of the process. Use fewer basis functions."
        )
    lowest = lowest_outcome(warping)
    is_inside = lowest < Y
    if not bool(is_inside.all()):
        where = (~is_inside).squeeze(-1).nonzero().squeeze(-1)[:5].tolist()
        raise InputDataError(
            f"The warping is for outcomes above {lowest:g}; rows {where} of train_Y are not. Shift them, or put an "
            "Affine or Arcsinh warping inside."
        )
    return Y.squeeze(-1)


def check_left_out(y: Tensor, basis: Tensor) -> None:
    """Raise `UnsupportedError` if without one outcome, of `n`, a coefficient or the scale is not determined."""
    residual, spare, _ = _least_squares(y, basis)
    row = int(spare.argmin())
    if spare[row] < MIN_SPARE:
        raise UnsupportedError(
            f"Without row {row} the basis functions of the mean are linearly dependent, which leaves the mean of that "
            "outcome undetermined."
        )
    row = int((residual.square() / spare).argmax())  # without which the least is left
    rest = torch.arange(len(y), device=y.device) != row
    if is_combination(y[rest], basis[rest]):
        raise UnsupportedError(
            f"Without row {row} all outcomes are equal, or a linear combination of the basis functions of the mean, "
            "which leaves the scale of that outcome undetermined."
        )
