"""Kernels of several judges, entry by entry."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels import ItemEffectKernel
from botorch_skewgp.kernels.judges import JudgeKernel, LinearTastesKernel
from botorch_skewgp.observations import Preference


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


@pytest.mark.parametrize("kernel", ["sum", "product", "items"])
def test_numbers_of_categories_are_no_quantities_to_judges(kernel, generator):
    """Another numbering of the categories leaves evidence and predictions as they are, also of each judge."""
    numbers = torch.rand(12, 2, dtype=torch.double, generator=generator)
    line = torch.arange(12).remainder(4).double().unsqueeze(-1)
    other = torch.tensor([3.0, 0.0, 7.0, 1.0]).double()[line.long()]
    smooth = ScaleKernel(RBFKernel(active_dims=(0, 1)))
    by_line = {
        "sum": lambda: smooth + ScaleKernel(CategoricalKernel(active_dims=(2,))),
        "product": lambda: ScaleKernel(RBFKernel(active_dims=(0, 1)) * CategoricalKernel(active_dims=(2,))),
        "items": lambda: smooth + ItemEffectKernel(active_dims=(2,)),
    }[kernel]
    answers = Preference([[0, 1], [2, 3], [4, 5], [6, 7], [9, 8]], judge=[0, 1, 0, 1, 2])
    found = []
    for column in (line, other):
        points = torch.cat([numbers, column], dim=-1)
        model = SkewGP(points, answers, covar_module=by_line(), approximation="ep")
        predicted = torch.stack([model.predictive(points[:2], judge=judge).probs for judge in (0, 1, "new")])
        found.append(torch.cat([predicted.detach(), model.log_marginal_likelihood("ep").value.view(1)]))
        assert model.judge_covar_module.kernels[0].active_dims.tolist() == [0, 1]
    torch.testing.assert_close(*found, atol=1e-6, rtol=0)
    own = model.judge_covar_module.kernels[-1]
    assert isinstance(own.base_kernel, ItemEffectKernel)
    assert own(points[:1], points[4:5]).to_dense().item() == pytest.approx(1.0)  # the same line
    assert own(points[:1], points[1:2]).to_dense().item() == 0
