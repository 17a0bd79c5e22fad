r"""Dense covariances of the rows, whose latent coordinates are the noiseless rows less their mean.

.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning, section 3.6. MIT Press
   2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import with_slope
from botorch_skewgp.truncated.factorization import (
    RELATIVE_JITTER,
    cholesky_as_it_is,
    cholesky_with_noise,
    times_transpose,
)
from botorch_skewgp.truncated.priors.base import (
    Factor,
    Map,
    Moments,
    NoisyPrior,
    PriorGivenSites,
    RowPrior,
    Sites,
    evenly,
    eye_like,
)

# Ratio of a site's precision to the prior's beyond which the product's moments are computed as corrections to the site.
PRECISE_SITE = 1e4
# Share of a site in its row's precision from which on the row's variance is computed from it.
LEAST_SHARE = 1e-5
# Least squared pivot of the Cholesky factor, relative to its row's variance, at which a covariance counts as of
# full rank. Rows that others determine more closely are started from a point of the latent space.
FULL_RANK_PIVOT = 1e-6


class DensePrior(RowPrior):
    r"""A prior with a dense covariance.

    Args:
        covariance: A `batch_shape x m x m` tensor, positive semi-definite.
        has_jitter: Whether it already has the jitter of rows with less noise than that, which must not be added twice.
    """

    def __init__(self, covariance: Tensor, has_jitter: bool = False) -> None:
        self._covariance, self.has_jitter = covariance, has_jitter

    @property
    def num_rows(self) -> int:
        return self._covariance.shape[-1]

    @property
    def rank(self) -> int:
        return self.num_rows

    @property
    def covariance(self) -> Tensor:
        return self._covariance

    @property
    def variances(self) -> Tensor:
        return self._covariance.diagonal(dim1=-2, dim2=-1)

    def map(self, change: Map) -> DensePrior:
        return DensePrior(change(self._covariance), self.has_jitter)

    def select(self, index: Tensor) -> DensePrior:
        if index.dtype == torch.bool:
            return DensePrior(self._covariance[..., index, :][..., index], self.has_jitter)
        return DensePrior(self._covariance[index.unsqueeze(-1), index.unsqueeze(-2)], self.has_jitter)

    @classmethod
    def stack(cls, priors: Sequence[RowPrior]) -> DensePrior | None:
        dense = [prior for prior in priors if isinstance(prior, DensePrior)]
        if len(dense) < len(priors):
            return None
        return DensePrior(torch.stack([prior.covariance for prior in dense]), dense[0].has_jitter)

    def times(self, latent: Tensor) -> Tensor:
        return latent

    def transposed_times(self, rows: Tensor) -> Tensor:
        return rows

    def given(self, mean: Tensor, sites: Sites, total: Sites) -> DenseFactor | None:
        """The product with one site for each row ([Rasmussen2006]_, section 3.6.3)."""
        tau, C = sites.precision, self._covariance
        offset, S = sites.shift - tau * mean, tau.sqrt()
        B = S.unsqueeze(-1) * C
        B *= S.unsqueeze(-2)  # in place: passes over the matrix are a third of a sweep
        B.diagonal(dim1=-2, dim2=-1).add_(1)
        cholesky, info = torch.linalg.cholesky_ex(B)
        del B  # as large as the covariance, as are the other matrices here
        if bool(info.any()):
            return None
        prior_variance, zero = self.variances, torch.zeros_like(tau)
        # With B = I + S C S: 1 - tau variance = diag(B^-1), and mean = nu / tau - S^-1 B^-1 S (nu / tau - prior mean).
        precise = tau * prior_variance > PRECISE_SITE
        if not bool(precise.any()):
            inverse = torch.cholesky_inverse(cholesky)
            left = inverse.diagonal(dim1=-2, dim2=-1)
            if bool((1 - left > LEAST_SHARE).all()):
                # The covariance is S^-1 (I - B^-1) S^-1. Products with C, large where the prior is wide, would cancel.
                scaled = (offset / S).unsqueeze(-1)
                with_sites = mean + (scaled - inverse @ scaled).squeeze(-1) / S
                moments = Moments.with_cavity(with_sites, (1 - left) / tau, sites, left)
                return DenseFactor(self, mean, sites, moments, cholesky, inverse)
            del inverse, left
        V = torch.linalg.solve_triangular(cholesky, S.unsqueeze(-1) * C, upper=False)
        with_sites = mean + (C @ offset.unsqueeze(-1) - V.mT @ (V @ offset.unsqueeze(-1))).squeeze(-1)
        variance = prior_variance - V.square().sum(-2)
        del V
        left = 1 - tau * variance
        moments = Moments.with_cavity(with_sites, variance, sites, left)
        if bool(precise.any()):
            half = torch.linalg.solve_triangular(cholesky, eye_like(C).expand_as(C), upper=False)
            left = torch.where(precise, half.square().sum(-2), left)
            residual = torch.where(tau > 0, offset / S, torch.zeros_like(offset)).unsqueeze(-1)
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
        return DenseFactor(self, mean, sites, moments, cholesky)

    def given_sites(self, which: Tensor, sites: Sites, mean: Tensor) -> PriorGivenSites:
        C = self._covariance
        offset = (sites.shift / sites.precision - mean[..., which]).unsqueeze(-1)
        L = cholesky_with_noise(C[..., which, :][..., which], 1 / sites.precision)
        half = torch.linalg.solve_triangular(L, C[..., which, :], upper=False)
        mean = mean + (half.mT @ torch.linalg.solve_triangular(L, offset, upper=False)).squeeze(-1)
        return PriorGivenSites(mean, DensePrior(C - half.mT @ half, self.has_jitter))

    def with_noise(self, noise: Tensor) -> NoisyDensePrior:
        return NoisyDensePrior(self, noise)

    def minimal_root(self) -> Tensor:
        values, vectors = torch.linalg.eigh(self._covariance)
        rounding = max(self.num_rows * torch.finfo(values.dtype).eps, 4 * RELATIVE_JITTER[values.dtype])
        positive = values > rounding * values[..., -1:]
        size = int(positive.sum(-1).max())
        root = vectors * torch.where(positive, values, torch.zeros_like(values)).sqrt().unsqueeze(-2)
        return root[..., self.num_rows - size :]

    def by_minimal_root(self, latent: Tensor, root: Tensor) -> Tensor:
        norms = root.square().sum(-2).unsqueeze(-1)
        products = root.mT @ latent.unsqueeze(-1)
        return (products / torch.where(norms > 0, norms, torch.ones_like(norms))).squeeze(-1)


@dataclass(frozen=True, eq=False)
class DenseFactor(Factor):
    r"""A dense prior times sites; `cholesky` is the factor of `I + S C S`, `S` the roots of the sites' precisions.

    Args:
        inverse: The inverse of `I + S C S` where it was computed.
    """

    inverse: Tensor | None = None

    @property
    def num_foreseen(self) -> int:
        return 4  # more than elsewhere, as all squares are at hand

    @property
    def latent_mean(self) -> Tensor:
        return self.moments.mean - self.prior_mean

    @cached_property
    def latent_root(self) -> Tensor:
        """A root of the covariance, `batch_shape x m x m`, which is singular where a row occurs twice."""
        V = self._half
        eigenvalues, vectors = torch.linalg.eigh(self.prior.covariance - V.mT @ V)
        return vectors * eigenvalues.clamp(min=0).sqrt().unsqueeze(-2)

    @property
    def _half(self) -> Tensor:
        """A matrix `V` such that the covariance is `C - V^T V`."""
        scaled = self.sites.precision.sqrt().unsqueeze(-1) * self.prior.covariance
        return torch.linalg.solve_triangular(self.cholesky, scaled, upper=False)

    def covariance_rows(self) -> Map:
        C, half = self.prior.covariance, self._half
        return lambda rows: C[..., rows, :] - half[..., rows].mT @ half

    def responses(self) -> tuple[Map, Map] | None:
        if self.inverse is None:
            return None
        S = self.sites.precision.sqrt()
        V = self.inverse / (-S.unsqueeze(-1))
        V /= S.unsqueeze(-2)
        V.diagonal(dim1=-2, dim2=-1).copy_(self.moments.variance)
        squares = V.square()
        return (lambda vector: _times(V, vector)), (lambda vector: _times(squares, vector))

    def with_slope(self, value: Tensor, pull: Tensor) -> Tensor:
        C = self.prior.covariance
        if not C.requires_grad:
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
        return with_slope(value, C, slope)

    def without_spare_parts(self) -> DenseFactor:
        return replace(self, inverse=None)


class NoisyDensePrior(NoisyPrior):
    """Rows with a dense covariance and noise."""

    @cached_property
    def cholesky(self) -> Tensor:
        """The lower Cholesky factor of `Gamma`; noise less than `1e-12` of a row's variance is raised to that, once."""
        assert isinstance(self.prior, DensePrior)
        return cholesky_as_it_is(self.covariance) if self.prior.has_jitter else super().cholesky

    @property
    def has_full_rank(self) -> bool:  # type: ignore[override]
        factor, info = torch.linalg.cholesky_ex(self.covariance)
        pivots = factor.diagonal(dim1=-2, dim2=-1).square()
        return not bool(info.any()) and bool((pivots > FULL_RANK_PIVOT * self.variances).all())

    @property
    def num_normals(self) -> int:
        return self.prior.num_rows

    def colour(self, like: Tensor) -> Map:
        L = self.cholesky.to(like)
        return lambda normal: times_transpose(normal, L)

    @property
    def coloured_covariance(self) -> Tensor:
        variance = self.cholesky.square().sum(-1)
        covariance = self.prior.covariance.expand(*variance.shape, -1)
        return torch.diagonal_scatter(covariance, variance, dim1=-2, dim2=-1)

    @property
    def own_variances(self) -> Tensor:
        L = self.cholesky
        inverse = torch.linalg.solve_triangular(L, eye_like(L).to(self.noise), upper=False)
        return 1 / inverse.square().sum(-2)

    def sample_latent(self, num_draws: int, generator: torch.Generator | None) -> Tensor:
        """`E[h | u] - mean` at draws of `u`: less spread than draws of `h`, and no factor of `C` is needed."""
        L = self.cholesky
        shape = (*self.noise.shape[:-1], num_draws, self.prior.num_rows)
        normal = torch.randn(shape, dtype=self.noise.dtype, device=self.noise.device, generator=generator)
        return (self.prior.covariance @ torch.linalg.solve_triangular(L.mT, normal.mT, upper=True)).mT

    def expected_latent(self, residual: Tensor) -> Tensor:
        return (self.prior.covariance @ torch.cholesky_solve(residual.mT, self.cholesky)).mT

    def draw_latent(self, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draws of `h - mean` given `u`, by Matheron's rule."""
        C = self.prior.covariance
        # an eigendecomposition, as cycles of duels and repeated points make the covariance singular
        eigenvalues, vectors = torch.linalg.eigh(C)
        root = vectors * eigenvalues.clamp(min=0).sqrt().unsqueeze(-2)  # rounding only
        residual, noise = residual.to(root), self.noise.unsqueeze(-2)
        kind = {"dtype": root.dtype, "device": root.device, "generator": generator}
        h = torch.randn(residual.shape, **kind) @ root.mT
        u = h + noise.sqrt() * torch.randn(residual.shape, **kind)
        return h + (residual - u) @ torch.cholesky_solve(C, self.cholesky)

    def predict(self, residual: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor, None]:
        m_old = residual.shape[-1]
        cholesky = self.cholesky[..., :m_old, :m_old]  # of the leading block
        whitened = torch.linalg.solve_triangular(cholesky, self.prior.covariance[..., :m_old, :], upper=False)
        centre = whitened.mT @ torch.linalg.solve_triangular(cholesky, residual.mT, upper=False)
        variance = self.variances - whitened.square().sum(-2)
        least = torch.finfo(variance.dtype).eps * self.variances
        return centre.mT, torch.maximum(variance, least).sqrt(), None

    def expectations(self) -> Map:
        """`E[h_i | u] - mean_i` of up to `MAX_WATCHED` rows, and the squared Mahalanobis length of `u - mean`."""
        L = self.cholesky
        watched = evenly(self.prior.num_rows, L.device)
        gain = torch.cholesky_solve(self.prior.covariance.to(L)[..., watched], L)

        def of_rows(residual: Tensor) -> Tensor:
            residual = residual.to(L)
            length = torch.linalg.solve_triangular(L, residual.mT, upper=False).square().sum(-2).unsqueeze(-1)
            return torch.cat([residual @ gain, length], dim=-1)

        return of_rows


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
