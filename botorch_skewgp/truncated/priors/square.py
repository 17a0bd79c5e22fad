r"""Products with sites of as many rows as latent coordinates or fewer, by the covariance of the rows.

.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning, section 3.6. MIT Press
   2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from botorch_skewgp.truncated.factorization import cholesky_of_precision
from botorch_skewgp.truncated.priors.base import Factor, Moments, Sites, eye_like

if TYPE_CHECKING:
    from botorch_skewgp.truncated.priors.low_rank import LowRankPrior

# Ratio of a site's precision to the prior's beyond which the product's moments are computed as corrections to the site.
PRECISE_SITE = 1e4
# Share of a site in its row's precision from which on the row's variance is computed from it.
MIN_SHARE = 1e-5


@dataclass(frozen=True, eq=False)
class SquareFactor(Factor):
    r"""The product by rows; `cholesky` is the factor of `B = I + S C S`, `S` the roots of the sites' precisions.

    Args:
        inverse: The inverse of `B` where it was computed.
    """

    prior: LowRankPrior
    inverse: Tensor | None = None

    @classmethod
    def of(cls, prior: LowRankPrior, mean: Tensor, sites: Sites) -> SquareFactor | None:
        """The product with one site for each row, of precisions that are not negative ([Rasmussen2006]_, 3.6.3)."""
        tau, C = sites.precision, prior.covariance
        offset, S = sites.shift - tau * mean, tau.sqrt()
        B = S.unsqueeze(-1) * C
        B *= S.unsqueeze(-2)  # in place: passes over the matrix are a third of a sweep
        B.diagonal(dim1=-2, dim2=-1).add_(1)
        cholesky, info = torch.linalg.cholesky_ex(B)
        del B  # as large as the covariance, as are the other matrices here
        if bool(info.any()):
            return None
        prior_variance = C.diagonal(dim1=-2, dim2=-1)
        # With B = I + S C S: 1 - tau variance = diag(B^-1), and mean = nu / tau - S^-1 B^-1 S (nu / tau - prior mean).
        share = tau * prior_variance
        least, most = map(float, share.aminmax()) if share.numel() else (0.0, 0.0)
        is_precise = most > PRECISE_SITE
        if least > MIN_SHARE and not is_precise:
            inverse = torch.cholesky_inverse(cholesky)
            left = inverse.diagonal(dim1=-2, dim2=-1)
            if float(left.amax()) < 1 - MIN_SHARE:
                # The covariance is S^-1 (I - B^-1) S^-1. Products with C, large where the prior is wide, would cancel.
                scaled = (offset / S).unsqueeze(-1)
                with_sites = mean + (scaled - inverse @ scaled).squeeze(-1) / S
                moments = Moments.with_cavity(with_sites, (1 - left) / tau, sites, left)
                return cls(prior, mean, sites, moments, cholesky, inverse)
            del inverse, left
        V = torch.linalg.solve_triangular(cholesky, S.unsqueeze(-1) * C, upper=False)
        with_sites = mean + (C @ offset.unsqueeze(-1) - V.mT @ (V @ offset.unsqueeze(-1))).squeeze(-1)
        variance = prior_variance - V.square().sum(-2)
        del V
        left = 1 - tau * variance
        moments = Moments.with_cavity(with_sites, variance, sites, left)
        if is_precise:
            precise, zero = share > PRECISE_SITE, torch.zeros_like(tau)
            half = torch.linalg.solve_triangular(cholesky, eye_like(C).expand_as(C), upper=False)
            left = torch.where(precise, half.square().sum(-2), left)
            residual = torch.where(tau > 0, offset / S, zero).unsqueeze(-1)
            correction = -(half.mT @ (half @ residual)).squeeze(-1)
            safe = torch.where(precise, tau, torch.ones_like(tau))
            reference = torch.where(precise, sites.shift / safe, zero)
            deviation = torch.where(precise, correction / safe.sqrt(), moments.deviation)
            cavity_deviation = torch.where(precise, deviation / left, moments.cavity_deviation)
            variance = torch.where(precise, (1 - left) / safe, variance)
            moments = Moments(
                mean=reference + deviation,
                variance=variance,
                cavity_mean=reference + cavity_deviation,
                cavity_variance=variance / left,
                reference=reference,
                deviation=deviation,
                cavity_deviation=cavity_deviation,
            )
        return cls(prior, mean, sites, moments, cholesky)

    def _pulls(self, offset: Tensor) -> Tensor:
        """`(I + T C)^-1` times vectors, `batch_shape x k x m`, as `S B^-1 S^-1` where sites have a precision."""
        S = self.sites.precision.sqrt().unsqueeze(-2)
        informed = S > 0
        if bool(informed.all()):
            return S * torch.cholesky_solve((offset / S).mT, self.cholesky).mT
        free = torch.where(informed, torch.zeros_like(offset), offset)
        scaled = torch.where(informed, offset / S, torch.zeros_like(offset)) - S * (free @ self.prior.covariance)
        return free + S * torch.cholesky_solve(scaled.mT, self.cholesky).mT

    def times(self, rows: Tensor) -> Tensor:
        return self._pulls(rows) @ self.prior.covariance

    def latent_given(self, offset: Tensor) -> Tensor:
        return self.prior.transposed_times(self._pulls(offset))

    @cached_property
    def latent_root(self) -> Tensor:
        cholesky = cholesky_of_precision(self.prior.root, self.sites.precision)
        return torch.linalg.solve_triangular(cholesky.mT, eye_like(cholesky), upper=True)

    def with_slope(self, value: Tensor, pull: Tensor) -> Tensor:
        if not self.prior.requires_grad:
            return value
        with torch.no_grad():
            S = self.sites.precision.sqrt()
            if self.inverse is None:
                half = torch.linalg.solve_triangular(self.cholesky, torch.diag_embed(S), upper=False)
                R = half.mT @ half
            else:
                R = S.unsqueeze(-1) * self.inverse * S.unsqueeze(-2)
            g = pull.unsqueeze(-1)
            slope = 0.5 * (g @ g.mT - R)
        return self.prior.with_slope_of_covariance(value, slope)

    def without_spare_parts(self) -> SquareFactor:
        return replace(self, inverse=None)
