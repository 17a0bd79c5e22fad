r"""Covariances that are low rank plus block diagonal: parts that all rows share, and parts that those of a block share.

Rows are `h = mean + U z + w`, with `z ~ N(0, I_r)` shared by all and `w_b ~ N(0, N_b N_b^T)` by the rows of block `b`:
one person's answers, or one choice among several. Given sites of precisions `T` the blocks are eliminated one by one,
all of one size at once, and what is left is of size `r` ([Rasmussen2006]_, appendix A.3). With `Q_b = I + N_b^T T N_b`,
`V_b = N_b Q_b^-1 N_b^T` and `G_b = (I - V_b T) U_b`, the covariance of `h` given the sites is `V + G A^-1 G^T`,
where `A = I + U^T T G`. A sweep costs `O(m r^2 + sum_b p_b^3)` for blocks of `p_b` rows; nothing is of size `m x m`.

.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning. MIT Press 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import Slope, squared_lengths
from botorch_skewgp.truncated.priors.low_rank import (
    LowRankPrior,
    Map,
    Moments,
    SiteProduct,
    Sites,
    inverse_of_transpose,
)


class BorderedPrior(LowRankPrior):
    """A prior with the covariance `U U^T + D`, with `D` the part of `N N^T` within blocks, whose numbers are `block`;
    roots are `m x r` and `m x p`, and latent coordinates those that all rows share, then those of each block.
    """

    def __init__(self, root: Tensor, block_root: Tensor, block: Tensor) -> None:
        super().__init__(root)
        self.block_root, self.block = block_root, block

    @cached_property
    def root(self) -> Tensor:
        column, rank = self._columns
        wide = torch.cat([self.matrix, self.matrix.new_zeros(self.num_rows, rank - self.num_shared)], dim=-1)
        return wide.scatter_add(-1, column % rank, self.block_root)

    @property
    def wide(self) -> LowRankPrior:
        return LowRankPrior(self.root)

    @property
    def rank(self) -> int:
        return self._columns[1]

    @property
    def num_shared(self) -> int:
        return self.matrix.shape[-1]

    @cached_property
    def _columns(self) -> tuple[Tensor, int]:
        """The columns of the wide root in which entries of `block_root` stand, `m x p`, `-1` for none; their number."""
        label, p = self.block.unique(return_inverse=True)[1], self.block_root.shape[-1]
        entry = self.block_root.detach() != 0
        place = label.unsqueeze(-1) * p + torch.arange(p, device=label.device)
        used, column = place[entry].unique(return_inverse=True)
        r = self.num_shared
        return torch.full_like(place, -1).masked_scatter(entry, r + column), r + len(used)

    @cached_property
    def covariance(self) -> Tensor:
        within = self.block_root @ self.block_root.mT * (self.block.unsqueeze(-1) == self.block)
        return self.matrix @ self.matrix.mT + within

    @cached_property
    def variances(self) -> Tensor:
        return squared_lengths(self.matrix) + squared_lengths(self.block_root)

    @cached_property
    def blocks(self) -> Blocks:
        """The rows of each block."""
        return Blocks(self.block, (self.block_root.detach() != 0).any(-1))

    def map(self, change: Map) -> BorderedPrior:
        matrix = change(self.matrix)
        return BorderedPrior(matrix, change(self.block_root), self.block.to(matrix.device))

    def times(self, latent: Tensor) -> Tensor:
        rows = latent[..., : self.num_shared] @ self.matrix.mT
        for column, weight in zip(self._columns[0].mT, self.block_root.mT, strict=True):
            rows += latent[..., column] * weight  # zero where there is no column
        return rows

    def transposed_times(self, rows: Tensor) -> Tensor:
        own = rows.new_zeros(*rows.shape[:-1], self.rank - self.num_shared)
        latent = torch.cat([rows @ self.matrix, own], dim=-1)
        for column, weight in zip(self._columns[0].mT, self.block_root.mT, strict=True):
            latent.index_add_(-1, column % self.rank, rows * weight)
        return latent

    def given(self, mean: Tensor, sites: Sites, total: Sites) -> BorderedSiteProduct | None:
        U, blocks = self.matrix, self.blocks
        T = total.precision.unsqueeze(-1)
        halves, reduced, log_det = [], [], U.new_zeros(())
        for N, t, tu in zip(blocks.gather(self.block_root), blocks.gather(T), blocks.gather(T * U), strict=True):
            used = (N != 0).flatten(0, 1).any(0).nonzero()
            N = N[..., : int(used[-1]) + 1 if len(used) else 1]  # a root that is padded for larger blocks
            if N.shape[-1] > N.shape[-2]:
                N = torch.linalg.qr(N.mT, mode="r").R.mT
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
        outer = torch.linalg.solve_triangular(cholesky, weight.mT, upper=False)
        inner = [half.square().sum(-2).unsqueeze(-1) for half in halves]
        variance = blocks.scatter(inner, U[:, :1]).squeeze(-1) + outer.square().sum(0)
        offset = total.shift - total.precision * mean
        shift = _times(blocks, halves, weight, cholesky, offset.unsqueeze(0)).squeeze(0)
        moments = Moments.with_cavity(mean + shift, variance, sites)
        return BorderedSiteProduct(self, mean, total, moments, cholesky, halves, weight, log_det)


def _times(blocks: Blocks, halves: list[Tensor], weight: Tensor, cholesky: Tensor, values: Tensor) -> Tensor:
    """The covariance given sites, `V + G A^-1 G^T`, times each row of a `k x m` matrix."""
    inner = [half.mT @ (half @ v) for half, v in zip(halves, blocks.gather(values.mT), strict=True)]
    outer = weight @ torch.cholesky_solve(weight.mT @ values.mT, cholesky)
    return (blocks.scatter(inner, values.mT) + outer).mT


class Blocks:
    """The rows of each block, of those that share something, in groups of one size, or nearly one if `padded`."""

    def __init__(self, block: Tensor, shares: Tensor, padded: bool = True) -> None:
        self.num_rows, device = len(block), block.device
        which = shares.nonzero().squeeze(-1)
        label, size = block[which].unique(return_inverse=True, return_counts=True)[1:]
        order = label.argsort(stable=True)
        place = torch.arange(len(order), device=device) - (size.cumsum(0) - size)[label[order]]
        width = size
        if padded:  # to sizes from 4 on, a factor of 1.41 apart
            width = (2 ** (size.clamp(min=4).double().log2() * 2).ceil().div(2)).ceil().long()
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

    def scatter(self, parts: list[Tensor], like: Tensor) -> Tensor:
        """Blocks `b x s x k` as rows of an `m x k` tensor, beside zeros for rows in none; the inverse of `gather`."""
        rows = like.new_zeros(self.num_rows + 1, like.shape[-1])
        for index, part in zip(self.index, parts, strict=True):
            rows[index] = part
        return rows[:-1]


@dataclass(frozen=True, eq=False)
class BorderedSiteProduct(SiteProduct):
    """A bordered prior times sites; `cholesky` is the factor of `A`, the precision of the shared coordinates."""

    prior: BorderedPrior
    halves: list[Tensor]  # for each group of blocks the `b x p x s` matrices `L^-1 N^T`, with `L L^T = Q`
    weight: Tensor  # `G`, `m x r`
    block_log_det: Tensor  # the blocks' part of half of the log determinant

    @property
    def log_det(self) -> Tensor:
        return self.block_log_det + super().log_det

    def times(self, rows: Tensor) -> Tensor:
        return _times(self.prior.blocks, self.halves, self.weight, self.cholesky, rows)

    def latent_given(self, offset: Tensor) -> Tensor:
        return self.prior.transposed_times(offset - self.sites.precision.unsqueeze(-2) * self.times(offset))

    @cached_property
    def latent_root(self) -> Tensor:
        cholesky = self.prior.wide.cholesky_of_precision(self.sites.precision)
        assert cholesky is not None
        return inverse_of_transpose(cholesky)

    def shared_given(self, offset: Tensor) -> Tensor:
        return torch.cholesky_solve(self.weight.mT @ offset.mT, self.cholesky).mT

    @property
    def shared_root(self) -> Tensor:
        return inverse_of_transpose(self.cholesky)

    def slopes(self, pull: Tensor) -> list[Slope]:
        U, N, blocks = self.prior.matrix, self.prior.block_root, self.prior.blocks
        g, T = pull.unsqueeze(-1), self.sites.precision.unsqueeze(-1)

        @cache  # of both roots
        def left() -> Tensor:
            return T * torch.cholesky_solve(self.weight.mT, self.cholesky).mT

        def slope_of_blocks() -> Tensor:
            parts, sources = [], (N, T * N, T, g, left(), self.weight)
            for half, n, tn, t, g_b, l_b, w in zip(self.halves, *map(blocks.gather, sources), strict=True):
                given = t * (n - half.mT @ (half @ tn)) - l_b @ (w.mT @ tn)
                parts.append(g_b @ (g_b.mT @ n) - given)
            return blocks.scatter(parts, N)

        # (C + T^-1)^-1 = T - T V T - T G A^-1 G^T T
        return [(U, lambda: g @ (g.mT @ U) - left()), (N, slope_of_blocks)]
