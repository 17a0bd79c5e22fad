"""Priors of all kinds map latent coordinates to rows, and back, as the matrices do that they stand for."""

import pytest
import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import BorderedPrior, DensePrior, LowRankPrior, RowPrior, WeightedPrior

M, N = 40, 7


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def bordered() -> BorderedPrior:
    block = torch.randint(6, (M,), generator=torch.Generator().manual_seed(0))
    within = randn(M, 3, seed=2)
    within[::5] = 0  # rows that share nothing
    within[block == 2, 1] = 0  # and a block that shares less
    return BorderedPrior(randn(M, N, seed=1), within, block)


def wide_form(prior: BorderedPrior) -> Tensor:
    """The root with a column for whatever a block's rows share, block by block."""
    columns = list(prior.root.mT)
    for b in prior.block.unique():
        for column in (prior.block_root * (prior.block == b).unsqueeze(-1)).mT:
            if bool(column.any()):
                columns.append(column)
    return torch.stack(columns, dim=-1)


def weighted() -> tuple[WeightedPrior, Tensor]:
    index = torch.randint(N, (M, 2), generator=torch.Generator().manual_seed(0))
    weight, matrix = randn(M, 2, seed=1), randn(N, N, seed=2).triu()
    W = torch.zeros(M, N, dtype=torch.float64).scatter_add(-1, index, weight)
    return WeightedPrior(index, weight, matrix), W @ matrix


def kinds() -> dict[str, tuple[RowPrior, Tensor]]:
    F = randn(M, N, seed=3)
    C = F @ F.mT + torch.eye(M, dtype=torch.float64)
    many = BorderedPrior(randn(M, N, seed=1), torch.eye(M, dtype=torch.float64), torch.zeros(M, dtype=torch.long))
    return {
        "dense": (DensePrior(C), torch.linalg.cholesky(C)),
        "low rank": (LowRankPrior(F), F),
        "weighted": weighted(),
        "bordered": (bordered(), wide_form(bordered())),
        "bordered, more columns than rows": (many, wide_form(many)),
    }


@pytest.mark.parametrize("kind", kinds())
def test_maps_are_those_of_the_matrix(kind):
    prior, F = kinds()[kind]
    assert prior.rank == F.shape[-1]
    latent, rows = randn(3, F.shape[-1], seed=4), randn(3, M, seed=5)
    torch.testing.assert_close(prior.times(latent), latent @ F.mT)
    torch.testing.assert_close(prior.transposed_times(rows), rows @ F)
    torch.testing.assert_close(prior.times(latent[0]), F @ latent[0])
    torch.testing.assert_close(prior.transposed_times(rows[0]), rows[0] @ F)
