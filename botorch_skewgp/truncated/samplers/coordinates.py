"""Coordinates `w`, `h = centre + B w`, that are standard normal under the Gaussian of expectation propagation.

`B` is not built where rows weigh few points or share noise in blocks. Chains come last, so that sums are contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import BorderedPrior, LowRankPrior, WeightedPrior
from botorch_skewgp.truncated.priors.bordered import BorderedSiteProduct
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class Sparse(NamedTuple):
    """A sparse matrix and its transpose."""

    matrix: Tensor
    transposed: Tensor

    @classmethod
    def of(cls, row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Sparse:
        """From the places of entries and their values."""
        places = torch.stack([row.flatten(), column.flatten()])
        with torch.sparse.check_sparse_tensor_invariants():  # torch warns where nobody said whether it should check
            matrix = torch.sparse_coo_tensor(places, values.flatten(), shape).coalesce()
            return cls(matrix, matrix.mT.coalesce())


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows `centre + W M w + N v`: weights `W` of few points, parts `N` of blocks in own coordinates `v`, the last."""

    centre: Tensor  # m x 1
    matrix: Tensor  # contiguous
    weights: Sparse | None = None
    own: Sparse | None = None

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.matrix.shape[-1] + (0 if self.own is None else len(self.own.transposed))

    def times(self, w: Tensor) -> Tensor:
        """Rows, `m x k`, at coordinates, `p x k`."""
        return self.linear(w).add_(self.centre)

    def linear(self, w: Tensor) -> Tensor:
        """Rows less their centre, `m x k`."""
        k = self.matrix.shape[-1]
        rows = self.matrix @ w[:k]
        if self.weights is not None:
            rows = torch.sparse.mm(self.weights.matrix, rows)
        return rows if self.own is None else rows.add_(torch.sparse.mm(self.own.matrix, w[k:]))

    def transposed_times(self, values: Tensor) -> Tensor:
        """The transpose of `linear`, `p x k` for values of rows `m x k`."""
        at_points = values if self.weights is None else torch.sparse.mm(self.weights.transposed, values)
        shared = self.matrix.mT @ at_points
        return shared if self.own is None else torch.cat([shared, torch.sparse.mm(self.own.transposed, values)])


def coordinates_of(distribution: TruncatedNormal, approximation: ExpectationPropagation) -> Coordinates:
    """The coordinates of a distribution's rows."""
    prior, product = distribution.prior, approximation.product
    centre = approximation.mean.unsqueeze(-1)
    if isinstance(product, BorderedSiteProduct):
        return Coordinates(centre, (product.weight @ product.shared_root).contiguous(), own=_parts_of_blocks(product))
    root = product.latent_root
    if not isinstance(prior, WeightedPrior):
        return Coordinates(centre, prior.times(root.mT).mT.contiguous())
    row = torch.arange(prior.num_rows, device=centre.device).unsqueeze(-1).expand_as(prior.index)
    weights = Sparse.of(row, prior.index, prior.weight, (prior.num_rows, len(prior.matrix)))
    return Coordinates(centre, (prior.matrix @ root).contiguous(), weights)


def _parts_of_blocks(product: BorderedSiteProduct) -> Sparse:
    """The rows' parts in coordinates of each block."""
    first, m = 0, product.prior.num_rows
    rows, columns, values = [], [], []
    for index, half in zip(product.prior.blocks.index, product.halves, strict=True):  # b x s and b x q x s
        b, q, _ = half.shape
        column = first + torch.arange(b * q, device=index.device).view(b, q, 1)
        row, column = index.unsqueeze(-2).expand_as(half), column.expand_as(half)
        used = row < m  # the rest is padding
        rows.append(row[used])
        columns.append(column[used])
        values.append(half[used])
        first += b * q
    return Sparse.of(torch.cat(rows), torch.cat(columns), torch.cat(values), (m, first))


def num_entries(prior: LowRankPrior) -> int:
    """The entries of the matrices by which coordinates of a prior become rows."""
    if isinstance(prior, BorderedPrior):
        return prior.matrix.numel() + sum(index.numel() * prior.block_root.shape[-1] for index in prior.blocks.index)
    if isinstance(prior, WeightedPrior):
        return prior.matrix.numel()
    return prior.num_rows * prior.rank
