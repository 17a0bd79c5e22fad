r"""Coordinates of the noiseless rows that are standard normal under the Gaussian of expectation propagation.

Rows are `h = centre + B w` with `B B^T` their covariance in the Gaussian. Where rows weigh few points, or share noise
in blocks, `B` is not built. Chains come last, `p x k`, so that all that is picked and summed is contiguous.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import BorderedPrior, RowPrior, WeightedPrior
from botorch_skewgp.truncated.priors.bordered import BorderedFactor
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class PriorCoordinates(NamedTuple):
    """The prior of the coordinates, as latent coordinates `z = mean + root w` are standard normal before the rows."""

    mean: Tensor  # r x 1
    root: Tensor  # r x r, upper triangular

    def coordinates(self, latent: Tensor) -> Tensor:
        """Coordinates of the Gaussian at latent coordinates, `r x k`."""
        return torch.linalg.solve_triangular(self.root, latent - self.mean, upper=True)

    def log_density(self, w: Tensor) -> Tensor:
        """The log density of the prior at coordinates `w`, `r x k`, up to the constant of a standard normal's."""
        latent = self.mean + self.root @ w
        return -0.5 * latent.square().sum(0) + self.root.diagonal().abs().log().sum()


class Coordinates(ABC):
    """Rows as affine functions of coordinates."""

    size: int  # p
    prior: PriorCoordinates | None = None  # where it is at hand

    def __init__(self, centre: Tensor) -> None:
        self.centre = centre.unsqueeze(-1)

    def times(self, w: Tensor) -> Tensor:
        """Rows, `m x k`, at coordinates, `p x k`."""
        return self.centre + self.linear(w)

    @abstractmethod
    def linear(self, w: Tensor) -> Tensor:
        """Rows less their centre, `m x k`."""

    @abstractmethod
    def transposed_times(self, values: Tensor) -> Tensor:
        """The transpose of `linear`, `p x k` for values of rows `m x k`."""


class MatrixCoordinates(Coordinates):
    """Rows by a matrix, `m x p`."""

    def __init__(self, centre: Tensor, matrix: Tensor) -> None:
        super().__init__(centre)
        self.matrix, self.size = matrix.contiguous(), matrix.shape[-1]

    def times(self, w: Tensor) -> Tensor:
        return torch.addmm(self.centre, self.matrix, w)

    def linear(self, w: Tensor) -> Tensor:
        return self.matrix @ w

    def transposed_times(self, values: Tensor) -> Tensor:
        return self.matrix.mT @ values


class WeightedCoordinates(Coordinates):
    """Rows that weigh few points each, which a matrix `n x p` gives."""

    def __init__(self, centre: Tensor, index: Tensor, weight: Tensor, matrix: Tensor) -> None:
        super().__init__(centre)
        self.matrix, self.size = matrix.contiguous(), matrix.shape[-1]
        row = torch.arange(len(index), device=index.device).unsqueeze(-1).expand_as(index)
        self._weights, self._transposed = _sparse(row, index, weight, len(matrix))

    def linear(self, w: Tensor) -> Tensor:
        return torch.sparse.mm(self._weights, self.matrix @ w)

    def transposed_times(self, values: Tensor) -> Tensor:
        return self.matrix.mT @ torch.sparse.mm(self._transposed, values)


class BlockCoordinates(Coordinates):
    """Coordinates that all rows share and, after them, those of each block."""

    def __init__(self, centre: Tensor, factor: BorderedFactor) -> None:
        super().__init__(centre)
        shared = factor.weight @ factor.shared_root
        self.shared, first, m = shared.contiguous(), 0, len(shared)
        rows, columns, values = [], [], []
        for index, half in zip(factor.prior.blocks.index, factor.halves, strict=True):  # b x s and b x q x s
            b, q, _ = half.shape
            column = first + torch.arange(b * q, device=index.device).view(b, q, 1)
            row, column = index.unsqueeze(-2).expand_as(half), column.expand_as(half)
            used = row < m  # the rest is padding
            rows.append(row[used])
            columns.append(column[used])
            values.append(half[used])
            first += b * q
        self._own, self._transposed = _sparse(torch.cat(rows), torch.cat(columns), torch.cat(values), first, m)
        self.size = shared.shape[-1] + first

    def linear(self, w: Tensor) -> Tensor:
        r = self.shared.shape[-1]
        return torch.addmm(torch.sparse.mm(self._own, w[r:]), self.shared, w[:r])

    def transposed_times(self, values: Tensor) -> Tensor:
        return torch.cat([self.shared.mT @ values, torch.sparse.mm(self._transposed, values)])


def _sparse(
    row: Tensor, column: Tensor, values: Tensor, num_columns: int, num_rows: int | None = None
) -> tuple[Tensor, Tensor]:
    """A sparse matrix and its transpose, by the places and values of entries; as many rows as first ones if `None`."""
    places = torch.stack([row.flatten(), column.flatten()])
    shape = (len(row) if num_rows is None else num_rows, num_columns)
    with torch.sparse.check_sparse_tensor_invariants():  # torch warns where nobody said whether it should check
        matrix = torch.sparse_coo_tensor(places, values.flatten(), shape).coalesce()
        return matrix, matrix.mT.coalesce()


def coordinates_of(distribution: TruncatedNormal, approximation: ExpectationPropagation) -> Coordinates:
    """The coordinates of a distribution's rows. In double precision."""
    prior, factor, centre = distribution.prior, approximation.factor, approximation.mean.to(distribution.mean)
    if isinstance(factor, BorderedFactor):
        return BlockCoordinates(centre, factor)
    root = approximation.latent_root.to(centre)
    if isinstance(prior, WeightedPrior):
        coordinates: Coordinates = WeightedCoordinates(centre, prior.index, prior.weight, prior.matrix @ root)
    else:
        coordinates = MatrixCoordinates(centre, prior.times(root.mT).mT)
    coordinates.prior = PriorCoordinates(approximation.latent_mean.to(centre).unsqueeze(-1), root)
    return coordinates


def num_entries(prior: RowPrior) -> int:
    """The entries of the matrices by which coordinates of a prior become rows."""
    if isinstance(prior, BorderedPrior):
        return prior.root.numel() + sum(index.numel() * prior.block_root.shape[-1] for index in prior.blocks.index)
    if isinstance(prior, WeightedPrior):
        return prior.matrix.numel()
    return prior.num_rows * prior.rank
