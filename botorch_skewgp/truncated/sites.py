r"""Gaussian sites in the place of rows: their product with the prior, and what they are to be.

.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning, section 3.6. MIT Press
   2006.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.bordered import BorderedProduct
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import interval_moments

# Ratio of a site's precision to the prior's beyond which the product's moments are computed as corrections to the site.
PRECISE_SITE = 1e4
# Share of a site in its row's precision from which on the row's variance is computed from it.
LEAST_SHARE = 1e-5


class Sites(NamedTuple):
    r"""The Gaussian sites; what a warm start needs.

    Args:
        precision: The `batch_shape x m` precisions `tau`, non-negative since every factor is log-concave.
        shift: The `batch_shape x m` linear terms `nu`.
    """

    precision: Tensor
    shift: Tensor


class Gaussian(NamedTuple):
    """The product of the prior of `h` and the sites: moments of the rows, with and without their own site.

    Where a site is far more precise than the prior, means agree with the site's own, `nu / tau`, to many digits, and
    differences of them matter. They are kept as deviations from a reference: that value there, zero elsewhere.
    """

    mean: Tensor  # batch x m
    variance: Tensor  # batch x m
    cavity_mean: Tensor  # batch x m; given all other rows
    cavity_variance: Tensor  # batch x m
    reference: Tensor  # batch x m
    deviation: Tensor  # batch x m; mean - reference
    cavity_deviation: Tensor  # batch x m; cavity_mean - reference
    cholesky: Tensor  # of I + S C S with S = sqrt(tau), or of I + F^T tau F
    inverse: Tensor | None = None  # of I + S C S, where it was computed
    product: BorderedProduct | None = None  # where the covariance is bordered


def multiply_sites(distribution: TruncatedNormal, sites: Sites) -> Gaussian | None:
    """Rasmussen and Williams, section 3.6.3 (dense), or its dual in the coordinates of a low-rank root.

    `None` if the sites are so precise that rounding of the covariance leaves no positive definite matrix.
    """
    tau, offset = sites.precision, sites.shift - sites.precision * distribution.mean
    if distribution.bordered is not None:
        product = BorderedProduct.of(distribution.bordered, distribution.times_count(tau))
        if product is None:
            return None
        mean = distribution.mean + product.times(distribution.times_count(offset).unsqueeze(-1)).squeeze(-1)
        left, zero = 1 - tau * product.variance, torch.zeros_like(mean)
        cavity_mean, cavity_variance = (mean - sites.shift * product.variance) / left, product.variance / left
        return Gaussian(
            mean,
            product.variance,
            cavity_mean,
            cavity_variance,
            zero,
            mean,
            cavity_mean,
            product.cholesky,
            product=product,
        )
    root = distribution.row_root
    if root is not None:
        eye = torch.eye(root.rank, dtype=tau.dtype, device=tau.device)
        offset = distribution.times_count(offset).unsqueeze(-2)
        cholesky, info = torch.linalg.cholesky_ex(eye + root.information(distribution.times_count(tau)))
        if bool(info.any()):
            return None
        latent = torch.cholesky_solve(root.transposed_times(offset).mT, cholesky).mT
        mean = distribution.mean + root.times(latent).squeeze(-2)
        variance = root.variances(cholesky)
        left = 1 - tau * variance
        cavity_mean = (mean - sites.shift * variance) / left
        zero = torch.zeros_like(mean)
        return Gaussian(mean, variance, cavity_mean, variance / left, zero, mean, cavity_mean, cholesky)
    C, S = distribution.dense_covariance, tau.sqrt()
    B = S.unsqueeze(-1) * C
    B *= S.unsqueeze(-2)  # in place: passes over the matrix are a third of a sweep
    B.diagonal(dim1=-2, dim2=-1).add_(1)
    cholesky, info = torch.linalg.cholesky_ex(B)
    del B  # as large as the covariance, as are the other matrices here
    if bool(info.any()):
        return None
    prior_variance, zero = C.diagonal(dim1=-2, dim2=-1), torch.zeros_like(tau)
    # With B = I + S C S: 1 - tau variance = diag(B^-1), and mean = nu / tau - S^-1 B^-1 S (nu / tau - prior mean).
    precise = tau * prior_variance > PRECISE_SITE
    if not bool(precise.any()):
        inverse = torch.cholesky_inverse(cholesky)
        left = inverse.diagonal(dim1=-2, dim2=-1)
        if bool((1 - left > LEAST_SHARE).all()):
            # The covariance is S^-1 (I - B^-1) S^-1. Products with C, large where the prior is wide, would cancel.
            scaled = (offset / S).unsqueeze(-1)
            mean = distribution.mean + (scaled - inverse @ scaled).squeeze(-1) / S
            variance = (1 - left) / tau
            cavity_mean = (mean - sites.shift * variance) / left
            return Gaussian(mean, variance, cavity_mean, variance / left, zero, mean, cavity_mean, cholesky, inverse)
        del inverse, left
    V = torch.linalg.solve_triangular(cholesky, S.unsqueeze(-1) * C, upper=False)
    mean = distribution.mean + (C @ offset.unsqueeze(-1) - V.mT @ (V @ offset.unsqueeze(-1))).squeeze(-1)
    variance = prior_variance - V.square().sum(-2)
    del V
    left = 1 - tau * variance
    cavity_mean, reference = (mean - sites.shift * variance) / left, zero
    deviation, cavity_deviation = mean, cavity_mean
    if bool(precise.any()):
        eye = torch.eye(C.shape[-1], dtype=C.dtype, device=C.device)
        half = torch.linalg.solve_triangular(cholesky, eye.expand_as(C), upper=False)
        left = torch.where(precise, half.square().sum(-2), left)
        residual = torch.where(tau > 0, offset / S, torch.zeros_like(offset)).unsqueeze(-1)
        correction = -(half.mT @ (half @ residual)).squeeze(-1)
        safe = torch.where(precise, tau, torch.ones_like(tau))
        reference = torch.where(precise, sites.shift / safe, reference)
        deviation = torch.where(precise, correction / safe.sqrt(), deviation)
        cavity_deviation = torch.where(precise, deviation / left, cavity_deviation)
        mean, cavity_mean = reference + deviation, reference + cavity_deviation
        variance = torch.where(precise, (1 - left) / safe, variance)
    return Gaussian(mean, variance, cavity_mean, variance / left, reference, deviation, cavity_deviation, cholesky)


def match_moments(distribution: TruncatedNormal, mean: Tensor, variance: Tensor) -> Sites:
    """The sites that give the tilted distributions' moments, written without differences of precisions."""
    scale = (variance + distribution.noise).sqrt()
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))  # a row without any variance needs no site
    _, t_mean, t_variance = interval_moments((distribution.lower - mean) / scale, (distribution.upper - mean) / scale)
    lost = (1 - t_variance).clamp(min=0)  # truncation to an interval never widens a normal; rounding only
    left = distribution.noise + variance * t_variance
    left = torch.where(left > 0, left, torch.ones_like(left))
    certain = (variance <= 0) & (distribution.noise <= 0)
    precision = torch.where(certain, torch.zeros_like(lost), lost / left)
    shift = torch.where(certain, torch.zeros_like(lost), (t_mean * scale + mean * lost) / left)
    return Sites(precision, shift)


def next_sites(distribution: TruncatedNormal, gaussian: Gaussian, sites: Sites) -> Sites:
    """The sites that match moments; a row whose cavity is no distribution, up to rounding, keeps its own."""
    cavity_mean, cavity_variance = gaussian.cavity_mean, gaussian.cavity_variance
    proper = (cavity_variance >= 0) & cavity_mean.isfinite() & cavity_variance.isfinite()
    target = match_moments(
        distribution,
        torch.where(proper, cavity_mean, distribution.mean),
        torch.where(proper, cavity_variance, torch.ones_like(cavity_variance)),
    )
    proper = proper & target.precision.isfinite() & target.shift.isfinite()
    return Sites(*(torch.where(proper, new, old) for new, old in zip(target, sites, strict=True)))
