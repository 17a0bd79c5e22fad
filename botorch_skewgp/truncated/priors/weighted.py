r"""Low-rank covariances of rows that weigh few values each, and the products that sweeps need.

Duels between `n` items are differences of two: their root is `F = W R`, with a root `R` of the covariance of the items.
Sums over rows go by pairs of items, `F^T diag(tau) F = R^T (W^T diag(tau) W) R`: `O(m n + n^3)`, not `O(m n^2)`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import Slope, squared_lengths
from botorch_skewgp.truncated.priors.low_rank import LowRankPrior, Map

# Variance of the noiseless part of a row, as a share of what it would be if all its terms added up, below which sums by
# pairs of points lose digits.
MIN_SHARE = 1e-4
MAX_KNOWN = 1e8  # prior variance of a point over the variance that rows leave it, up to which sums keep the prior
MAX_ENTRIES = 2**17  # of vectors of rows made at a time, which a cache can hold


class WeightedPrior(LowRankPrior):
    """A prior whose root's rows, `F = W R`, weigh the rows `index` of a matrix `R` by `weight`, both `m x k`."""

    def __init__(self, index: Tensor, weight: Tensor, matrix: Tensor) -> None:
        super().__init__(matrix)
        self.index, self.weight = index, weight

    @property
    def num_rows(self) -> int:
        return len(self.index)

    @property
    def root(self) -> Tensor:
        return self._vectors(self.matrix, self.index, self.weight)

    def map(self, change: Map) -> WeightedPrior:
        return WeightedPrior(self.index.to(change(self.matrix).device), change(self.weight), change(self.matrix))

    def _by_pairs(self, precision: Tensor) -> Tensor:
        """`W^T diag(precision) W`."""
        n = self.matrix.shape[0]
        place = self.index.unsqueeze(-1) * n + self.index.unsqueeze(-2)
        product = (precision.unsqueeze(-1) * self.weight).unsqueeze(-1) * self.weight.unsqueeze(-2)
        return self.matrix.new_zeros(n * n).index_add_(0, place.flatten(), product.flatten()).view(n, n)

    def _by_points(self, values: Tensor) -> Tensor:
        """`values W`, `k x n` for `k x m`."""
        sums = values.new_zeros(*values.shape[:-1], self.matrix.shape[0])
        for i, w in zip(self.index.mT, self.weight.mT, strict=True):
            sums.index_add_(-1, i, values * w)
        return sums

    def _vectors(self, matrix: Tensor, index: Tensor, weight: Tensor) -> Tensor:
        terms = [w.unsqueeze(-1) * matrix.index_select(0, i) for i, w in zip(index.mT, weight.mT, strict=True)]
        return sum(terms[1:], terms[0])

    def _lengths(self, matrix: Tensor) -> Tensor:
        """The squared lengths of the rows of `W matrix`."""
        size = max(1, MAX_ENTRIES // self.rank)
        parts = zip(self.index.split(size), self.weight.split(size), strict=True)
        return torch.cat([squared_lengths(self._vectors(matrix, *part)) for part in parts])

    @property
    def variances(self) -> Tensor:
        return self._lengths(self.matrix)

    def times(self, latent: Tensor) -> Tensor:
        at = latent @ self.matrix.mT
        terms = [at[..., i].mul_(w) for i, w in zip(self.index.mT, self.weight.mT, strict=True)]
        return sum(terms[1:], terms[0])

    def transposed_times(self, rows: Tensor) -> Tensor:
        return self._by_points(rows) @ self.matrix

    def information(self, precision: Tensor) -> Tensor:
        return self.matrix.mT @ (self._by_pairs(precision) @ self.matrix)

    def variances_given(self, cholesky: Tensor) -> Tensor:
        return self._lengths(torch.linalg.solve_triangular(cholesky, self.matrix.mT, upper=False).mT.contiguous())

    def slope(self, pull: Tensor, precision: Tensor, cholesky: Tensor) -> Slope:
        R = self.matrix

        def slope() -> Tensor:
            g = self._by_points(pull)
            return torch.outer(g, g @ R) - self._by_pairs(precision) @ (R @ torch.cholesky_inverse(cholesky))

        return R, slope


@torch.no_grad()
def keeps_digits(index: Tensor, weight: Tensor, covariance: Tensor, precision: Tensor) -> bool:
    """Whether sums by pairs keep digits: not for nearly equal values, or rows so precise that they drown the prior."""
    n = covariance.shape[0]
    single = (covariance.diagonal().sqrt()[index] * weight.abs()).sum(-1).square()
    of_pairs = covariance.flatten()[index.unsqueeze(-1) * n + index.unsqueeze(-2)]
    of_rows = (weight.unsqueeze(-2) @ of_pairs @ weight.unsqueeze(-1)).reshape(-1)
    return bool((of_rows >= MIN_SHARE * single).all()) and bool((of_rows * precision <= MAX_KNOWN).all())
