r"""Covariances that are low rank plus block diagonal: what rows share, and what those of one block have in common.

Rows are `h = mean + U z + w`, with `z ~ N(0, I_r)` shared by all and `w_b ~ N(0, N_b N_b^T)` by the rows of block `b`:
one person's answers, or one choice among several. Given sites of precisions `T` the blocks are eliminated one by one,
all of one size at once, and what is left is of size `r` ([Rasmussen2006]_, appendix A.3). With `Q_b = I + N_b^T T N_b`,
`V_b = N_b Q_b^-1 N_b^T` and `G_b = (I - V_b T) U_b`, the covariance of `h` given the sites is `V + G A^-1 G^T`,
where `A = I + U^T T G`. A sweep costs `O(m r^2 + sum_b p_b^3)` for blocks of `p_b` rows; nothing is of size `m x m`.

.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning. MIT Press 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from linear_operator.operators import LinearOperator
from torch import Tensor

from botorch_skewgp.truncated.derivatives import squared_lengths, with_slope

LEAST_SIZE = 4  # of a block after padding


class BorderedLinearOperator(LinearOperator):
    r"""The matrix `U U^T + D`, with `D` the part of `N N^T` within blocks.

    Args:
        root: The `m x r` root `U`.
        block_root: The `m x p` root `N`, whose columns are each block's own.
        block: An `m`-dim integer tensor, the block of each row.
    """

    def __init__(self, root: Tensor, block_root: Tensor, block: Tensor) -> None:
        super().__init__(root, block_root, block)
        self.root, self.block_root, self.block = root, block_root, block

    def _size(self) -> torch.Size:
        return torch.Size([len(self.root), len(self.root)])

    def _transpose_nonbatch(self) -> BorderedLinearOperator:
        return self

    def _matmul(self, rhs: Tensor) -> Tensor:
        return self.to_dense() @ rhs

    def to_dense(self) -> Tensor:
        """The matrix, `m x m`."""
        within = self.block_root @ self.block_root.mT * (self.block.unsqueeze(-1) == self.block)
        return self.root @ self.root.mT + within

    @cached_property
    def blocks(self) -> Blocks:
        """The rows of each block."""
        return Blocks(self.block, (self.block_root.detach() != 0).any(-1))

    @cached_property
    def squared_lengths(self) -> Tensor:
        """The diagonal, of size `m`; differentiable."""
        return squared_lengths(self.root) + squared_lengths(self.block_root)

    @cached_property
    def wide_root(self) -> Tensor:
        """A root of the matrix, with columns for each block."""
        label = self.block.unique(return_inverse=True)[1]
        p = self.block_root.shape[-1]
        place = label.unsqueeze(-1) * p + torch.arange(p, device=label.device)
        wide = self.block_root.new_zeros(len(label), p * (int(label.max()) + 1) if len(label) else 0)
        wide = wide.scatter(-1, place, self.block_root)
        return torch.cat([self.root, wide[:, (wide.detach() != 0).any(0)]], dim=-1)


class Blocks:
    r"""The rows of each block, in groups of blocks of about the same size.

    Args:
        block: An `m`-dim integer tensor, the block of each row.
        shares: Which rows share anything with others of their block; the others are blocks of their own.
        padded: Whether blocks of nearly the same size are one group, padded to the largest.
    """

    def __init__(self, block: Tensor, shares: Tensor, padded: bool = True) -> None:
        self.num_rows, device = len(block), block.device
        which = shares.nonzero().squeeze(-1)
        label, size = block[which].unique(return_inverse=True, return_counts=True)[1:]
        order = label.argsort(stable=True)
        place = torch.arange(len(order), device=device) - (size.cumsum(0) - size)[label[order]]
        width = size
        if padded:  # to sizes a factor of 1.41 apart
            width = (2 ** (size.clamp(min=LEAST_SIZE).double().log2() * 2).ceil().div(2)).ceil().long()
        self.single = (~shares).nonzero().squeeze(-1)
        self.index: list[Tensor] = []  # each b x s, padded by m
        for s in width.unique().tolist():
            chosen = width == s
            rank = chosen.cumsum(0) - 1
            mine = chosen[label[order]]
            index = torch.full((int(chosen.sum()), s), self.num_rows, device=device)
            index[rank[label[order][mine]], place[mine]] = which[order[mine]]
            self.index.append(index)

    def gather(self, values: Tensor) -> list[Tensor]:
        """Rows of an `m x k` tensor by blocks, each `b x s x k`, with zeros as padding."""
        padded = torch.cat([values, values.new_zeros(1, values.shape[-1])])
        return [padded[index] for index in self.index]

    def scatter(self, parts: Sequence[Tensor], like: Tensor) -> Tensor:
        """Blocks `b x s x k` as rows of an `m x k` tensor, beside zeros for rows in none; the inverse of `gather`."""
        rows = like.new_zeros(self.num_rows + 1, like.shape[-1])
        for index, part in zip(self.index, parts, strict=True):
            rows[index] = part
        return rows[:-1]


@dataclass(frozen=True, eq=False)
class BorderedProduct:
    r"""The normal distribution with a bordered covariance times sites.

    Args:
        covariance: The covariance of the rows before.
        precision: The sites' precisions, `m`.
        halves: For each group of blocks the `b x p x s` matrices `L^-1 N^T`, with `L L^T = Q`.
        weight: The `m x r` matrix `G`.
        cholesky: The lower factor of `A`, `r x r`.
        log_det: Half of the log determinant of `I + S C S`, with `S = sqrt(T)`; a number.
    """

    covariance: BorderedLinearOperator
    precision: Tensor
    halves: list[Tensor]
    weight: Tensor
    cholesky: Tensor
    log_det: Tensor

    @classmethod
    def of(cls, covariance: BorderedLinearOperator, precision: Tensor) -> BorderedProduct | None:
        """The product; `None` where rounding leaves no positive definite matrix."""
        U, blocks = covariance.root, covariance.blocks
        T = precision.unsqueeze(-1)
        halves, reduced, log_det = [], [], U.new_zeros(())
        for N, t, tu in zip(blocks.gather(covariance.block_root), blocks.gather(T), blocks.gather(T * U), strict=True):
            p = min(N.shape[-1], N.shape[-2])
            if p < N.shape[-1]:  # a root that is padded for larger blocks
                N = N[..., :p] if not bool(N[..., p:].any()) else torch.linalg.qr(N.mT, mode="r").R.mT
            Q = N.mT @ (t * N)
            Q.diagonal(dim1=-2, dim2=-1).add_(1)
            L, info = torch.linalg.cholesky_ex(Q)
            if bool(info.any()):
                return None
            half = torch.linalg.solve_triangular(L, N.mT, upper=False)
            log_det = log_det + L.diagonal(dim1=-2, dim2=-1).log().sum()
            halves.append(half)
            reduced.append(half.mT @ (half @ tu))
        weight = U - blocks.scatter(reduced, U)
        A = (T * U).mT @ weight
        A = 0.5 * (A + A.mT)
        A.diagonal().add_(1)
        cholesky, info = torch.linalg.cholesky_ex(A)
        if bool(info):
            return None
        return cls(covariance, precision, halves, weight, cholesky, log_det + cholesky.diagonal().log().sum())

    def times(self, vector: Tensor) -> Tensor:
        r"""The covariance given the sites times vectors, `m x k`."""
        blocks = self.covariance.blocks
        inner = [half.mT @ (half @ v) for half, v in zip(self.halves, blocks.gather(vector), strict=True)]
        return blocks.scatter(inner, vector) + self.weight @ torch.cholesky_solve(
            self.weight.mT @ vector, self.cholesky
        )

    @cached_property
    def variance(self) -> Tensor:
        """The variances given the sites, `m`."""
        inner = [half.square().sum(-2).unsqueeze(-1) for half in self.halves]
        outer = torch.linalg.solve_triangular(self.cholesky, self.weight.mT, upper=False).square().sum(0)
        return self.covariance.blocks.scatter(inner, outer.unsqueeze(-1)).squeeze(-1) + outer

    def latent_mean(self, offset: Tensor) -> Tensor:
        r"""The mean of the shared coordinates `z`, `r`.

        Args:
            offset: The linear terms of the sites less their precisions times the prior mean, `m`.
        """
        return torch.cholesky_solve(self.weight.mT @ offset.unsqueeze(-1), self.cholesky).squeeze(-1)

    def with_slope(self, value: Tensor, pull: Tensor) -> Tensor:
        r"""A value whose derivative in the covariance `C` is half of `g g^T - (C + T^-1)^-1`.

        Args:
            value: A number.
            pull: The vector `g`, `m`.
        """
        U, N, blocks = self.covariance.root, self.covariance.block_root, self.covariance.blocks
        with torch.no_grad():
            g, T = pull.unsqueeze(-1), self.precision.unsqueeze(-1)
            # (C + T^-1)^-1 = T - T V T - T G A^-1 G^T T
            left = T * torch.cholesky_solve(self.weight.mT, self.cholesky).mT
            slope_U = g @ (g.mT @ U) - left
        value = with_slope(value, U, slope_U)
        if not N.requires_grad:
            return value
        with torch.no_grad():
            parts = []
            for half, n, tn, t, g_b, l_b, w in zip(
                self.halves,
                *(blocks.gather(x) for x in (N, T * N, T, g, left, self.weight)),
                strict=True,
            ):
                given = t * (n - half.mT @ (half @ tn)) - l_b @ (w.mT @ tn)
                parts.append(g_b @ (g_b.mT @ n) - given)
            slope_N = blocks.scatter(parts, N)
        return with_slope(value, N, slope_N)
