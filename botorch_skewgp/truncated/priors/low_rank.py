r"""Covariances given by a root, and their products with sites: by latent coordinates, or by rows where these are fewer.

.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning, section 3.6. MIT Press
   2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import squared_lengths, with_slope
from botorch_skewgp.truncated.factorization import cholesky_of_precision
from botorch_skewgp.truncated.priors.base import Factor, Map, Moments, RowPrior, Sites, eye_like

MAX_PRECISION = 1e8  # precision of a site over the prior's, beyond which sums of products lose the identity
# Ratio of a site's precision to the prior's beyond which the product's moments are computed as corrections to the site.
PRECISE_SITE = 1e4


class LowRankPrior(RowPrior):
    """A prior with the covariance `F F^T`."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    @property
    def root(self) -> Tensor:
        """The root `F` as a matrix, `batch_shape x m x r`, which may be large; differentiable."""
        return self.matrix

    @property
    def wide(self) -> LowRankPrior:
        return self

    @property
    def num_rows(self) -> int:
        return self.matrix.shape[-2]

    @property
    def rank(self) -> int:
        return self.matrix.shape[-1]

    @cached_property
    def covariance(self) -> Tensor:
        F = self.root
        return F @ F.mT

    @property
    def variances(self) -> Tensor:
        return squared_lengths(self.matrix)

    @cached_property
    def _sizes(self) -> Tensor:
        """The variances without a graph."""
        return self.variances.detach()

    def map(self, change: Map) -> LowRankPrior:
        return LowRankPrior(change(self.matrix))

    def select(self, index: Tensor) -> RowPrior:
        return LowRankPrior(self.root[..., index, :] if index.dtype == torch.bool else self.root[index])

    @classmethod
    def stack(cls, priors: Sequence[RowPrior]) -> RowPrior | None:
        if any(type(prior) is not LowRankPrior for prior in priors):
            return None
        return LowRankPrior(torch.stack([prior.matrix for prior in priors if isinstance(prior, LowRankPrior)]))

    def times(self, latent: Tensor) -> Tensor:
        return latent @ self.matrix.mT

    def transposed_times(self, rows: Tensor) -> Tensor:
        return rows @ self.matrix

    def information(self, precision: Tensor) -> Tensor:
        r"""`F^T diag(precision) F`, `batch_shape x r x r`; only its lower triangle counts."""
        return self.matrix.mT @ (precision.unsqueeze(-1) * self.matrix)

    def cholesky_of_precision(self, precision: Tensor) -> Tensor | None:
        r"""The lower Cholesky factor of `I + F^T diag(precision) F`, `batch_shape x r x r`; `None` if there is none.

        By rotations of the root where sums of products lose the identity. Not differentiable.
        """
        if bool((precision * self._sizes > MAX_PRECISION).any()) and bool((precision >= 0).all()):
            return cholesky_of_precision(self.root, precision)
        information = self.information(precision)
        cholesky, info = torch.linalg.cholesky_ex(eye_like(information) + information)
        return None if bool(info.any()) else cholesky

    def variances_given(self, cholesky: Tensor) -> Tensor:
        r"""The diagonal of `F (L L^T)^-1 F^T`, `batch_shape x m`, for a lower factor `L`."""
        half = torch.linalg.solve_triangular(cholesky, self.matrix.mT, upper=False)
        return torch.linalg.vector_norm(half, dim=-2).square()  # without a copy of what may be large

    @property
    def requires_grad(self) -> bool:
        """Whether derivatives in the prior are asked for."""
        return self.matrix.requires_grad

    def with_slope_of_covariance(self, value: Tensor, slope: Tensor) -> Tensor:
        """A value, `batch_shape`, with its derivative in the covariance, `batch_shape x m x m` and symmetric."""
        return with_slope(value, self.matrix, 2 * slope @ self.matrix.detach())

    def with_slope(self, value: Tensor, pull: Tensor, precision: Tensor, cholesky: Tensor) -> Tensor:
        """A value whose derivative in the covariance `F F^T` is half of `g g^T - (F F^T + diag(1 / tau))^-1`.

        With pulls `g` and precisions `tau`, `batch_shape x m`, and the lower factor of `I + F^T diag(tau) F`.
        """
        with torch.no_grad():
            g = pull.unsqueeze(-1)
            slope = self.matrix @ -torch.cholesky_inverse(cholesky)
            slope *= precision.unsqueeze(-1)
            slope += g @ (g.mT @ self.matrix)
        return with_slope(value, self.matrix, slope)

    def given(self, mean: Tensor, sites: Sites, total: Sites) -> Factor | None:
        is_single = total.precision is sites.precision
        if self.rank >= self.num_rows and is_single and bool((sites.precision >= 0).all()):
            return SquareFactor.of(self, mean, sites)
        cholesky = self.cholesky_of_precision(total.precision)
        if cholesky is None:
            return None
        offset = (total.shift - total.precision * mean).unsqueeze(-2)
        latent = torch.cholesky_solve(self.transposed_times(offset).mT, cholesky).mT
        variance = self.variances_given(cholesky)
        moments = Moments.with_cavity(
            mean + self.times(latent).squeeze(-2), variance, sites, 1 - sites.precision * variance
        )
        return LatentFactor(self, mean, total, moments, cholesky)


@dataclass(frozen=True, eq=False)
class LatentFactor(Factor):
    """The product by latent coordinates; `cholesky` is the factor of their precision `I + F^T T F`."""

    prior: LowRankPrior

    def latent_given(self, offset: Tensor) -> Tensor:
        return torch.cholesky_solve(self.prior.transposed_times(offset).mT, self.cholesky).mT

    @cached_property
    def latent_root(self) -> Tensor:
        return torch.linalg.solve_triangular(self.cholesky.mT, eye_like(self.cholesky), upper=True)

    def times(self, rows: Tensor) -> Tensor:
        return self.prior.times(self.latent_given(rows))

    def with_slope(self, value: Tensor, pull: Tensor) -> Tensor:
        if not self.prior.requires_grad:
            return value
        return self.prior.with_slope(value, pull, self.sites.precision, self.cholesky)


@dataclass(frozen=True, eq=False)
class SquareFactor(Factor):
    """The product by rows; `cholesky` is the factor of `B = I + S C S`, `S` the roots of the sites' precisions."""

    prior: LowRankPrior

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
        is_precise = bool((share > PRECISE_SITE).any())
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
            g, inverse = pull.unsqueeze(-1), torch.cholesky_inverse(self.cholesky)
            slope = 0.5 * (g @ g.mT - S.unsqueeze(-1) * inverse * S.unsqueeze(-2))
        return self.prior.with_slope_of_covariance(value, slope)
