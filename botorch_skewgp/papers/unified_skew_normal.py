r"""The posterior as a unified skew-normal vector, in the papers' terms and as BoTorch's class.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.utils.probability import TruncatedMultivariateNormal, UnifiedSkewNormal
from torch import Tensor
from torch.distributions import MultivariateNormal

from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.protocols import check_skew_gp
from botorch_skewgp.truncated.factorization import cholesky_with_noise
from botorch_skewgp.truncated.priors import DensePrior
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class UnifiedSkewNormalParameters(NamedTuple):
    """The parameters of a unified skew-normal vector, see `sun_parameters`."""

    location: Tensor
    scale: Tensor
    skewness: Tensor
    truncation: Tensor
    latent_covariance: Tensor


@torch.no_grad()
def sun_parameters(model: SkewGP, X: Tensor) -> UnifiedSkewNormalParameters:
    r"""The posterior at new points as a unified skew-normal vector ([Benavoli2021unified]_, Theorems 3.1-3.3).

    `f(X) = location + D_scale (r_0 + skewness latent_covariance^-1 r_1)` with `D_scale` the diagonal matrix of
    standard deviations of `scale`, `r_1 ~ N(0, latent_covariance)` truncated to `r_1 > -truncation`, and `r_0` an
    independent normal vector. Numbers are conditioned on; a one-sided row is one latent dimension, a two-sided row two,
    whose latent covariance is singular. The rows of a skew prior come first. Without observations this is the prior.

    The parameters are called xi, Omega, Delta, gamma and Gamma in the papers; they are in float64 and units of the
    latent function. Raises `InputDataError` or `BotorchTensorDimensionError` unless points are `q x d` numbers, and
    `UnsupportedError` if answers may be slips.

    Example:
        >>> location, scale, skewness, truncation, latent_covariance = sun_parameters(model, X)
    """
    location, scale, cross, rows = _joint_normal(model, X)
    # one latent dimension for each finite bound, that below before that above
    bounds = torch.stack([rows.lower, rows.upper], dim=-1)
    which, is_upper = bounds.isfinite().nonzero(as_tuple=True)
    sign = torch.where(is_upper == 1, -1.0, 1.0).to(location)
    latent_covariance = rows.prior.covariance[which][:, which]
    return UnifiedSkewNormalParameters(
        location,
        scale,
        skewness=sign * cross[:, which] / scale.diagonal().sqrt().unsqueeze(-1),
        truncation=sign * (rows.mean[which] - bounds[which, is_upper]),
        latent_covariance=sign.unsqueeze(-1) * latent_covariance * sign,
    )


@torch.no_grad()
def unified_skew_normal(model: SkewGP, X: Tensor) -> UnifiedSkewNormal:
    r"""The posterior at new points, `q x d`, as BoTorch's `UnifiedSkewNormal`, for small cases.

    Points must be distinct from each other and from noise-free training points. Raises as `sun_parameters`, and
    `UnsupportedError` if there are no interval rows.
    """
    location, scale, cross, rows = _joint_normal(model, X)
    mean, covariance, lower, upper = rows.mean, rows.prior.covariance, rows.lower, rows.upper
    if not len(mean):
        raise UnsupportedError("Without interval rows the posterior is normal; use posterior(X).moment_matched().")
    # BoTorch's sampler takes finite bounds only: 30 standard deviations beyond the rest stand for infinity
    far = 30 * covariance.diagonal().sqrt()
    lowest = torch.minimum(mean, upper) - far
    highest = torch.maximum(mean, lower) + far
    lower = torch.where(lower.isfinite(), lower, lowest)
    upper = torch.where(upper.isfinite(), upper, highest)
    bounds = torch.stack([lower, upper], dim=-1)
    truncated = TruncatedMultivariateNormal(loc=mean, covariance_matrix=covariance, bounds=bounds)
    return UnifiedSkewNormal(truncated, MultivariateNormal(location, scale), cross.mT)


def _joint_normal(model: SkewGP, X: Tensor) -> tuple[Tensor, Tensor, Tensor, TruncatedNormal]:
    """Mean and covariance of values at points, their covariance with interval rows, and these, given the numbers."""
    check_skew_gp(model, "A unified skew-normal vector")
    X, fitted = model.checked_query(X), model.fitted()
    if X.ndim != 2:
        raise BotorchTensorDimensionError(f"X must be q x d; got shape {tuple(X.shape)}.")
    points = fitted.inputs_at(X).double()
    prior, row_model = fitted.data.single_rows(fitted.judge)
    if row_model.intervals.heights is not None:
        raise UnsupportedError("With answers that may be slips the posterior is no unified skew-normal vector.")
    rows, cross = row_model.rows, prior.cross_covariance(points)
    if row_model.column_root is not None:
        cross = torch.linalg.solve_triangular(row_model.column_root, cross.mT, upper=False).mT
    e, numbers = len(points), rows.is_equality
    row_covariance = rows.covariance(row_model.covariance) + torch.diag(rows.noise)
    mean = torch.cat([prior.mean_at(points), rows.mean(row_model.mean)])
    with_rows = rows.times(cross.mT).mT
    of_values = torch.cat([prior.covariance_at(points).to_dense(), with_rows], dim=-1)
    of_rows = torch.cat([with_rows.mT, row_covariance], dim=-1)
    covariance = torch.cat([of_values, of_rows])
    # given the numbers, Gaussian conditioning of the values and the interval rows
    free = torch.cat([numbers.new_ones(e), ~numbers])
    noise = rows.noise[numbers]
    L = cholesky_with_noise(covariance[~free][:, ~free] - torch.diag(noise), noise)
    cross_covariance = covariance[~free][:, free]
    weights = torch.cholesky_solve(cross_covariance, L).mT
    mean = mean[free] + weights @ (rows.lower[numbers] - mean[~free])
    covariance = covariance[free][:, free] - weights @ cross_covariance
    lower, upper = rows.lower[~numbers], rows.upper[~numbers]
    interval_rows = TruncatedNormal(mean[e:], DensePrior(covariance[e:, e:]), lower, upper, torch.zeros_like(lower))
    return mean[:e], covariance[:e, :e], covariance[:e, e:], interval_rows
