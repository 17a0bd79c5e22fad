"""Covariances given as they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import with_slope
from botorch_skewgp.truncated.factorization import RELATIVE_JITTER
from botorch_skewgp.truncated.priors.base import Map, RowPrior
from botorch_skewgp.truncated.priors.low_rank import LowRankPrior


class DensePrior(LowRankPrior):
    """A prior given by its covariance, of which a root is made if one is needed.

    `has_jitter`: it already has the jitter of rows with less noise than that, which must not be added twice.
    """

    def __init__(self, covariance: Tensor, has_jitter: bool = False) -> None:
        self._covariance, self.has_jitter = covariance, has_jitter

    @cached_property
    def matrix(self) -> Tensor:  # type: ignore[override]
        """A root, `batch_shape x m x m`, without a graph; no Cholesky factor, as rows may repeat, or all be noise."""
        values, vectors = torch.linalg.eigh(self._covariance.detach())
        return vectors * values.clamp(min=0).sqrt().unsqueeze(-2)  # rounding only

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

    @property
    def requires_grad(self) -> bool:
        return self._covariance.requires_grad

    def with_slope_of_covariance(self, value: Tensor, slope: Tensor) -> Tensor:
        return with_slope(value, self._covariance, slope)

    def with_slope(self, value: Tensor, pull: Tensor, precision: Tensor, cholesky: Tensor) -> Tensor:
        with torch.no_grad():
            T, g = precision.unsqueeze(-1), pull.unsqueeze(-1)
            half = torch.linalg.solve_triangular(cholesky, (T * self.matrix).mT, upper=False)
            slope = 0.5 * (g @ g.mT + half.mT @ half - torch.diag_embed(precision))
        return with_slope(value, self._covariance, slope)

    def minimal_root(self) -> Tensor:
        values, vectors = torch.linalg.eigh(self._covariance)
        rounding = max(self.num_rows * torch.finfo(values.dtype).eps, 4 * RELATIVE_JITTER[values.dtype])
        positive = values > rounding * values[..., -1:]
        size = int(positive.sum(-1).max())
        root = vectors * torch.where(positive, values, torch.zeros_like(values)).sqrt().unsqueeze(-2)
        return root[..., self.num_rows - size :]  # the last columns of `matrix`
