r"""The posterior as a unified skew-normal vector, in the papers' terms and as BoTorch's class.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.probability import TruncatedMultivariateNormal, UnifiedSkewNormal
from torch import Tensor
from torch.distributions import MultivariateNormal

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

    Raises:
        UnsupportedError: If answers may be slips.
    """
    _refuse_slips(distribution)
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
        UnsupportedError: If there are no rows, or answers may be slips.
    """
    _refuse_slips(distribution)
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


def _refuse_slips(distribution: TruncatedNormal) -> None:
    if distribution.heights is not None:
        raise UnsupportedError("With answers that may be slips the posterior is no unified skew-normal vector.")
