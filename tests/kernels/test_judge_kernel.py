"""Kernels of several judges, entry by entry."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import RBFKernel

from botorch_skewgp.kernels.judges import JudgeKernel, LinearTastesKernel


def test_own_parts_are_added_for_the_same_judge_and_for_nobody_in_particular_never():
    shared, own = RBFKernel(), RBFKernel()
    shared.lengthscale, own.lengthscale = 0.5, 0.2
    kernel = JudgeKernel(shared, own).double()
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(6, 2, dtype=torch.double, generator=generator)
    judge = torch.tensor([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]).double()
    points = torch.cat([X, judge.unsqueeze(-1)], dim=-1)

    def value(i: int, j: int) -> float:
        distance = (X[i] - X[j]).square().sum()
        both = torch.exp(-0.5 * distance / 0.5**2)
        is_own = judge[i] == judge[j] and judge[i] != 0
        return float(both + is_own * torch.exp(-0.5 * distance / 0.2**2))

    expected = torch.tensor([[value(i, j) for j in range(6)] for i in range(6)]).double()
    torch.testing.assert_close(kernel(points).to_dense(), expected)
    torch.testing.assert_close(kernel(points, points[:4]).to_dense(), expected[:, :4])
    torch.testing.assert_close(kernel(points, diag=True), expected.diagonal())


@pytest.mark.parametrize("dim", [-1, 1.5, "two"])
def test_tastes_need_a_number_of_inputs(dim):
    with pytest.raises(InputDataError, match="dim must be an integer of at least 0"):
        LinearTastesKernel(dim)


def test_without_inputs_judges_differ_in_their_level_alone():
    kernel, X = LinearTastesKernel(dim=0), torch.rand(4, 3, dtype=torch.double)
    kernel.raw_root.data.fill_(1.5)
    torch.testing.assert_close(kernel(X).to_dense(), torch.full((4, 4), 2.25, dtype=torch.double))
    torch.testing.assert_close(kernel(X, X[:2], diag=False).to_dense(), torch.full((4, 2), 2.25, dtype=torch.double))
    torch.testing.assert_close(kernel(X, diag=True), torch.full((4,), 2.25, dtype=torch.double))
