"""Low-rank covariances of many rows over few latent coordinates, given by a root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import squared_lengths, with_slope
from botorch_skewgp.truncated.factorization import RELATIVE_JITTER, cholesky_of_precision
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
from botorch_skewgp.truncated.priors.dense import DensePrior


class LowRankPrior(RowPrior):
    r"""A prior with the covariance `F F^T`.

    Args:
        matrix: The root `F`, `batch_shape x m x r`.
    """

    is_low_rank = True

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    @property
    def root(self) -> Tensor:
        """The root `F` as a matrix, `batch_shape x m x r`, which may be large; differentiable."""
        return self.matrix

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

    def map(self, change: Map) -> LowRankPrior:
        return LowRankPrior(change(self.matrix))

    def select(self, index: Tensor) -> RowPrior:
        return low_rank_prior(self.root[..., index, :] if index.dtype == torch.bool else self.root[index])

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

    def cholesky_of_precision(self, precision: Tensor) -> Tensor:
        r"""The lower Cholesky factor of `I + F^T diag(precision) F`, `batch_shape x r x r`; not differentiable."""
        return cholesky_of_precision(self.matrix, precision)

    def variances_given(self, cholesky: Tensor) -> Tensor:
        r"""The diagonal of `F (L L^T)^-1 F^T`, `batch_shape x m`, for a lower factor `L`."""
        half = torch.linalg.solve_triangular(cholesky, self.matrix.mT, upper=False)
        return torch.linalg.vector_norm(half, dim=-2).square()  # without a copy of what may be large

    def with_slope(self, value: Tensor, pull: Tensor, precision: Tensor, cholesky: Tensor) -> Tensor:
        r"""A value whose derivative in the covariance `F F^T` is half of `g g^T - (F F^T + diag(1 / tau))^-1`.

        Args:
            value: A `batch_shape` tensor.
            pull: The vectors `g`, `batch_shape x m`.
            precision: The precisions `tau`, `batch_shape x m`.
            cholesky: The lower factor of `I + F^T diag(tau) F`.
        """
        with torch.no_grad():
            g = pull.unsqueeze(-1)
            slope = self.matrix @ -torch.cholesky_inverse(cholesky)
            slope *= precision.unsqueeze(-1)
            slope += g @ (g.mT @ self.matrix)
        return with_slope(value, self.matrix, slope)

    def given(self, mean: Tensor, sites: Sites, total: Sites) -> LowRankFactor | None:
        offset = (total.shift - total.precision * mean).unsqueeze(-2)
        information = self.information(total.precision)
        cholesky, info = torch.linalg.cholesky_ex(eye_like(information) + information)
        if bool(info.any()):
            return None
        latent = torch.cholesky_solve(self.transposed_times(offset).mT, cholesky).mT
        variance = self.variances_given(cholesky)
        moments = Moments.with_cavity(
            mean + self.times(latent).squeeze(-2), variance, sites, 1 - sites.precision * variance
        )
        return LowRankFactor(self, mean, total, moments, cholesky)

    def given_sites(self, which: Tensor, sites: Sites, mean: Tensor) -> LowRankPriorGivenSites:
        F = self.root
        offset = (sites.shift / sites.precision - mean[..., which]).unsqueeze(-1)
        cholesky = cholesky_of_precision(F[..., which, :], sites.precision)
        weighted = F[..., which, :].mT @ (sites.precision.unsqueeze(-1) * offset)
        centre = torch.cholesky_solve(weighted, cholesky).mT
        left = torch.linalg.solve_triangular(cholesky, F.mT, upper=False).mT
        mean = mean + (F @ centre.mT).squeeze(-1)
        return LowRankPriorGivenSites(mean, LowRankPrior(left), centre, cholesky)

    def with_noise(self, noise: Tensor) -> NoisyLowRankPrior:
        return NoisyLowRankPrior(self, noise)

    def minimal_root(self) -> Tensor:
        return self.root

    def by_minimal_root(self, latent: Tensor, root: Tensor) -> Tensor:
        return latent


def low_rank_prior(root: Tensor) -> RowPrior:
    r"""The prior with covariance `F F^T`: low rank if `F` has fewer columns than rows, dense otherwise.

    Args:
        root: The root `F`, `batch_shape x m x r`.
    """
    prior = LowRankPrior(root)
    return prior if prior.rank < prior.num_rows else DensePrior(prior.covariance)


@dataclass(frozen=True, eq=False)
class LowRankPriorGivenSites(PriorGivenSites):
    r"""Latent coordinates given sites, `z = centre + L^-T z'`.

    Args:
        centre: Their mean, `batch_shape x 1 x r`.
        cholesky: The lower factor `L` of their precision, `batch_shape x r x r`.
    """

    centre: Tensor
    cholesky: Tensor

    def before(self, latent: Tensor) -> Tensor:
        return self.centre + torch.linalg.solve_triangular(self.cholesky.mT, latent.mT, upper=True).mT

    def after(self, latent: Tensor) -> Tensor:
        return (self.cholesky.mT @ (latent - self.centre).mT).mT


@dataclass(frozen=True, eq=False)
class LowRankFactor(Factor):
    """A low-rank prior times sites; `cholesky` is the factor of `I + F^T tau F`, the latent coordinates' precision."""

    prior: LowRankPrior

    @cached_property
    def latent_mean(self) -> Tensor:
        return self._projected(self.offset)

    def _projected(self, vector: Tensor) -> Tensor:
        """The covariance of latent coordinates and rows times a vector of rows, `batch_shape x r`."""
        return torch.cholesky_solve(self.prior.transposed_times(vector.unsqueeze(-2)).mT, self.cholesky).squeeze(-1)

    @cached_property
    def latent_root(self) -> Tensor:
        return torch.linalg.solve_triangular(self.cholesky.mT, eye_like(self.cholesky), upper=True)

    def covariance_rows(self) -> Map:
        half = torch.linalg.solve_triangular(self.cholesky, self.prior.root.mT, upper=False)
        return lambda rows: half[..., rows].mT @ half

    def responses(self) -> tuple[Map, Map]:
        return (
            lambda vector: self.prior.times(self._projected(vector).unsqueeze(-2)).squeeze(-2),
            lambda vector: self.moments.variance.square() * vector,
        )

    def with_slope(self, value: Tensor, pull: Tensor) -> Tensor:
        if not self.prior.matrix.requires_grad:
            return value
        return self.prior.with_slope(value, pull, self.sites.precision, self.cholesky)


class NoisyLowRankPrior(NoisyPrior):
    """Rows with a low-rank covariance and noise."""

    prior: LowRankPrior

    def precision(self, residual: Tensor) -> tuple[Tensor, Tensor]:
        """The diagonal of `Gamma^-1` and its product with residuals, by latent coordinates if every row has noise."""
        if not bool((self.noise > 0).all()):
            return super().precision(residual)
        F, noise = self.prior.root, self.noise.unsqueeze(-2)
        half = torch.linalg.solve_triangular(cholesky_of_precision(F, 1 / self.noise), (F / noise.mT).mT, upper=False)
        return 1 / noise - half.square().sum(-2, keepdim=True), residual / noise - (residual @ half.mT) @ half

    @property
    def num_normals(self) -> int:
        return self.prior.rank + self.prior.num_rows

    def colour(self, like: Tensor) -> Map:
        prior, scale = self.prior.map(lambda values: values.to(like)), self.noise.sqrt().to(like).unsqueeze(-2)
        r = self.prior.rank
        return lambda normal: prior.times(normal[..., :r]) + scale * normal[..., r:]

    @property
    def coloured_covariance(self) -> Tensor:
        F = self.prior.root
        return F @ F.mT + torch.diag_embed(self.noise)

    @property
    def own_variances(self) -> Tensor:
        return self.noise

    def sample_latent(self, num_draws: int, generator: torch.Generator | None) -> Tensor:
        shape = (*self.noise.shape[:-1], num_draws, self.prior.rank)
        return torch.randn(shape, dtype=self.noise.dtype, device=self.noise.device, generator=generator)

    @cached_property
    def _least_noise(self) -> Tensor:
        """The noise, raised to the jitter."""
        return torch.maximum(self.noise, RELATIVE_JITTER[torch.float64] * self.variances)

    def expected_latent(self, residual: Tensor) -> Tensor:
        noise = self._least_noise
        pulls = self.prior.transposed_times(residual / noise.unsqueeze(-2))
        return torch.cholesky_solve(pulls.mT, self._latent_cholesky).mT

    @cached_property
    def _latent_cholesky(self) -> Tensor:
        """The lower factor of the precision of the latent coordinates given rows, `batch_shape x r x r`."""
        return self.prior.cholesky_of_precision(1 / self._least_noise)

    def draw_latent(self, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draws of `z` given `u`; rows without noise fix their directions exactly."""
        F, noise = self.prior.root, self._least_noise
        z = _latent_given_rows(F, noise, residual, generator)
        fixes = noise > self.noise
        if bool(fixes.any()):
            z = z + (residual - z @ F.mT) @ torch.linalg.pinv(F * fixes.unsqueeze(-1)).mT
        return z

    def predict(self, residual: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor]:
        """Noiseless rows at latent coordinates drawn given the first rows, and the deviation of the noise."""
        m_old = residual.shape[-1]
        z = _latent_given_rows(self.prior.root[..., :m_old, :], self.noise[..., :m_old], residual, generator)
        return self.prior.times(z), self.noise.sqrt(), z

    def expectations(self) -> Map:
        """`E[z_j | u]` of up to `MAX_WATCHED` latent coordinates, and their squared length; in double precision."""
        double = NoisyLowRankPrior(self.prior.map(Tensor.double), self.noise.double())
        some = evenly(self.prior.rank, self.noise.device)

        def of_latent(residual: Tensor) -> Tensor:
            latent = double.expected_latent(residual.double())
            return torch.cat([latent[..., some], latent.square().sum(-1, keepdim=True)], dim=-1)

        return of_latent


def _latent_given_rows(root: Tensor, noise: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw `z` given `F z + v = residual`, a Gaussian, for residuals `batch_shape x k x m`."""
    weighted = root / noise.unsqueeze(-1)
    cholesky = cholesky_of_precision(root, 1 / noise)
    mean = torch.cholesky_solve((residual @ weighted).mT, cholesky)
    normal = torch.randn(mean.shape, dtype=root.dtype, device=root.device, generator=generator)
    return (mean + torch.linalg.solve_triangular(cholesky.mT, normal, upper=True)).mT
