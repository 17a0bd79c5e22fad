r"""The posterior as a unified skew-normal vector, in the papers' terms and as BoTorch's class.

.. [Benavoli2020skew] A. Benavoli, D. Azzimonti, D. Piga. Skew Gaussian processes for classification. Machine Learning
   109, 2020.
.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.utils.probability import TruncatedMultivariateNormal, UnifiedSkewNormal
from torch import Tensor
from torch.distributions import MultivariateNormal

from botorch_skewgp.models.inducing import WhiteRows, white_row_model
from botorch_skewgp.models.inputs import check_query
from botorch_skewgp.models.latent_model import LatentModel
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class UnifiedSkewNormalParameters(NamedTuple):
    """The parameters of a unified skew-normal vector; see `SkewGP.sun_parameters`."""

    location: Tensor
    scale: Tensor
    skewness: Tensor
    truncation: Tensor
    latent_covariance: Tensor


def unified_skew_normal_parameters(
    distribution: TruncatedNormal, location: Tensor, scale: Tensor, cross: Tensor
) -> UnifiedSkewNormalParameters:
    r"""The parameters of values that are jointly normal with rows; see `SkewGP.sun_parameters`.

    Args:
        distribution: The rows, `m`.
        location: The mean of the values before truncation, `e`.
        scale: Their covariance before truncation, `e x e`.
        cross: Their covariance with the rows before truncation, `e x m`.
    """
    has_lower, has_upper = distribution.lower.isfinite(), distribution.upper.isfinite()
    sign = torch.cat([location.new_ones(int(has_lower.sum())), -location.new_ones(int(has_upper.sum()))])
    which = torch.cat([has_lower.nonzero().squeeze(-1), has_upper.nonzero().squeeze(-1)])
    order = which.argsort(stable=True)
    sign, which = sign[order], which[order]
    bound = torch.where(sign > 0, distribution.lower[which], distribution.upper[which])
    gamma = distribution.gamma
    return UnifiedSkewNormalParameters(
        location=location,
        scale=scale,
        skewness=sign * cross[:, which] / scale.diagonal().sqrt().unsqueeze(-1),
        truncation=sign * (distribution.mean[which] - bound),
        latent_covariance=sign.unsqueeze(-1) * gamma[which][:, which] * sign,
    )


def botorch_unified_skew_normal(
    distribution: TruncatedNormal, location: Tensor, scale: Tensor, cross: Tensor
) -> UnifiedSkewNormal:
    r"""The same distribution as BoTorch's `UnifiedSkewNormal`.

    Args:
        distribution: The rows, `m`; at least one.
        location: The mean of the values before truncation, `e`.
        scale: Their covariance before truncation, `e x e`.
        cross: Their covariance with the rows before truncation, `e x m`.

    Raises:
        UnsupportedError: If there are no rows.
    """
    if distribution.num_rows == 0:
        raise UnsupportedError("Without interval rows the posterior is normal; use posterior(X).moment_matched().")
    gamma = distribution.gamma
    # BoTorch's sampler takes finite bounds only: 30 standard deviations beyond the rest stand for infinity
    far = 30 * distribution.gamma_diagonal.sqrt()
    mean, lower, upper = distribution.mean, distribution.lower, distribution.upper
    lowest = torch.where(upper.isfinite(), torch.minimum(mean, upper), mean) - far
    highest = torch.where(lower.isfinite(), torch.maximum(mean, lower), mean) + far
    bounds = torch.stack(
        [torch.where(lower.isfinite(), lower, lowest), torch.where(upper.isfinite(), upper, highest)], dim=-1
    )
    truncated = TruncatedMultivariateNormal(loc=mean, covariance_matrix=gamma, bounds=bounds)
    return UnifiedSkewNormal(truncated, MultivariateNormal(location, scale), cross.mT)


class UnifiedSkewNormalMixin(LatentModel):
    """The posterior of a SkewGP in the papers' terms."""

    @torch.no_grad()
    def sun_parameters(self, X: Tensor) -> UnifiedSkewNormalParameters:
        r"""The posterior at new points as a unified skew-normal vector ([Benavoli2021unified]_, Theorems 3.1-3.3).

        `f(X) = location + D_scale (r_0 + skewness latent_covariance^-1 r_1)` with `D_scale` the diagonal matrix of
        standard deviations of `scale`, `r_1 ~ N(0, latent_covariance)` truncated to `r_1 > -truncation`, and `r_0`
        an independent normal vector. Numbers are conditioned on; a one-sided row is one latent dimension, a two-sided
        row two, whose latent covariance is singular. The rows of a skew prior come first. Without observations this
        is the prior.

        Args:
            X: A `q x d` tensor; in units of the latent function, before any outcome transform is undone.

        Returns:
            `(location, scale, skewness, truncation, latent_covariance)`, called xi, Omega, Delta, gamma and Gamma in
            the papers, in float64.
        """
        row_model, location, scale, cross = self._joint_with_rows(X)
        return unified_skew_normal_parameters(row_model.truncated_normal, location, scale, cross)

    @torch.no_grad()
    def unified_skew_normal(self, X: Tensor) -> UnifiedSkewNormal:
        r"""The posterior at new points as BoTorch's `UnifiedSkewNormal`, for small cases.

        Args:
            X: A `q x d` tensor of points, distinct from each other and from noise-free training points.
        """
        row_model, location, scale, cross = self._joint_with_rows(X)
        return botorch_unified_skew_normal(row_model.truncated_normal, location, scale, cross)

    def _joint_with_rows(self, X: Tensor) -> tuple[RowModel, Tensor, Tensor, Tensor]:
        """The rows, and the normal distribution of the latent function at new points and its covariance with them."""
        X = check_query(X, self.datapoints)
        if any(hasattr(part, "raw_slip") or hasattr(part, "raw_guess") for part in self.likelihood.modules()):
            raise UnsupportedError("With answers that may be slips the posterior is no unified skew-normal vector.")
        if X.ndim != 2:
            raise BotorchTensorDimensionError(f"X must be q x d; got shape {tuple(X.shape)}.")
        now = self._now()
        model = now.model
        # nearly equal points have a covariance in double precision only
        X = self._inputs_at(X, now).double()
        rows, prior = model._rows(now.prior.columns(), None, False), now.prior
        if isinstance(rows, WhiteRows):
            root, rows, residuals = rows.for_judges([self._judge])
            row_model, prior = white_row_model(root, rows), replace(prior, residuals=residuals)
        else:
            row_model = model.row_model(prior.columns())
        cross, covariance = prior.cross_covariance(X), prior.covariance_at(X).to_dense()
        return row_model, *row_model.joint_given_numbers(prior.mean_at(X), cross, covariance)
