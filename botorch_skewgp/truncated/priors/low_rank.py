r"""Covariances given by a root, of few latent coordinates for many rows or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import squared_lengths, with_slope
from botorch_skewgp.truncated.factorization import cholesky_of_precision
from botorch_skewgp.truncated.priors.base import Factor, Map, Moments, RowPrior, Sites, eye_like
from botorch_skewgp.truncated.priors.square import SquareFactor

MAX_PRECISION = 1e8  # precision of a site over the prior's, beyond which sums of products lose the identity


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

    def minimal_root(self) -> Tensor:
        return self.root


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
