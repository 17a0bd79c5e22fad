"""Kernels of items and judges, entry by entry, and sums with a linear kernel, which are added up as matrices."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import ConstantKernel, Kernel, LinearKernel, RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels import ItemEffectKernel
from botorch_skewgp.kernels.evaluation import covariance_between
from botorch_skewgp.kernels.judges import JudgeKernel, LinearTastesKernel
from botorch_skewgp.observations import Preference


def test_items_share_nothing_but_with_themselves():
    x = torch.tensor([[0.0, 5.0], [1.0, 5.0], [0.0, 7.0]]).double()
    z = torch.tensor([[1.0, 9.0], [0.0, 9.0]]).double()
    kernel = ItemEffectKernel(active_dims=[0])
    assert torch.equal(kernel(x, z).to_dense(), torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]).double())
    assert torch.equal(kernel(x).to_dense(), torch.tensor([[1, 0, 1], [0, 1, 0], [1, 0, 1]]).double())
    assert torch.equal(kernel(x, diag=True), torch.ones(3).double())
    both = ItemEffectKernel()(x).to_dense()
    assert torch.equal(both, torch.eye(3).double())


def test_batches():
    x = torch.randint(3, (4, 5, 1)).double()
    z = torch.randint(3, (6, 1)).double()
    matrix = ItemEffectKernel()(x, z).to_dense()
    assert matrix.shape == (4, 5, 6)
    for b in range(4):
        assert torch.equal(matrix[b], ItemEffectKernel()(x[b], z).to_dense())


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


DOUBLE = torch.float64
X = torch.tensor([[0.1, 0.4], [0.1, 0.4], [0.1, 0.4 + 1e-9], [0.8, 0.3], [0.5, 0.9]], dtype=DOUBLE)


def nested() -> Kernel:
    inner = ScaleKernel(RBFKernel(active_dims=(1,)) + LinearKernel(ard_num_dims=2)) * ConstantKernel()
    return (ScaleKernel(inner + LinearKernel(active_dims=(0,))) + RBFKernel()).double()


def batched() -> Kernel:
    kernel = ScaleKernel(RBFKernel(batch_shape=torch.Size([2])) + LinearKernel(), batch_shape=torch.Size([2]))
    kernel.outputscale = torch.tensor([1.0, 3.0])
    return kernel


@pytest.mark.parametrize(
    "kernel",
    [
        RBFKernel() + LinearKernel(),
        LinearKernel() + RBFKernel(),
        ScaleKernel(RBFKernel() + LinearKernel(), active_dims=(1,)),
        LinearKernel() + ScaleKernel(RBFKernel(active_dims=(1,))),  # whose inputs GPyTorch copies to the scale
        JudgeKernel(RBFKernel() + LinearKernel(), LinearTastesKernel(1)),
        nested(),
        batched(),
        RBFKernel() + ScaleKernel(RBFKernel()),
        LinearKernel(),
    ],
)
def test_covariance_without_jitter(kernel):
    """Equal points, at which a decomposition needs jitter; blocks of unequal size are never decomposed."""
    kernel = kernel.double()
    with torch.no_grad():
        found = covariance_between(kernel, X).to_dense()
        expected = torch.cat([kernel(X, X[:2]).to_dense(), kernel(X, X[2:]).to_dense()], dim=-1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(found[..., 0, :], found[..., 1, :])
