"""Kernels of items and of judges who follow what all share more or less, entry by entry."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_skewgp.kernels import ItemEffectKernel, ReliabilityKernel
from botorch_skewgp.kernels.judges import JudgeKernel


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


def reliable(weights):
    kernel = ReliabilityKernel(ScaleKernel(RBFKernel()).double(), num_judges=len(weights))
    kernel.relative_weights = weights
    return kernel


def test_a_common_factor_of_the_weights_is_none():
    once, thrice = reliable([0.5, 1.0, 2.0]), reliable([1.5, 3.0, 6.0])
    assert torch.allclose(once.weights, thrice.weights)
    assert once.weights.pow(4).mean().item() == pytest.approx(1.0)
    assert (once.weights[2] / once.weights[0]).item() == pytest.approx(4.0)


def test_weights_multiply_what_is_shared_and_nothing_else():
    own = reliable([0.3, 1.0])
    shared = RBFKernel().double()
    points = torch.rand(6, 2).double()
    codes = torch.tensor([0, 1, 2, 1, -1, 3]).double()  # shared, judges 0 and 1, 0 again, new, and one without answers
    X = torch.cat([points, codes.unsqueeze(-1)], dim=-1)
    kernel = JudgeKernel(shared, own)
    matrix = kernel(X).to_dense()
    factor = {0: 1.0, 1: own.weights[0].item(), 2: own.weights[1].item(), -1: 1.0, 3: 1.0}
    for i in range(6):
        for j in range(6):
            k, g = (part(points[i : i + 1], points[j : j + 1]).to_dense().item() for part in (shared, own.own))
            same = codes[i] == codes[j] != 0
            expected = factor[int(codes[i])] * factor[int(codes[j])] * k + (g if same else 0.0)
            assert matrix[i, j].item() == pytest.approx(expected, rel=1e-10)
    assert torch.allclose(kernel(X, diag=True), matrix.diagonal())


def test_weights_are_refused_that_cannot_be():
    kernel = reliable([1.0, 1.0])
    with pytest.raises(InputDataError, match="relative_weights"):
        kernel.relative_weights = [1.0, -1.0]
    with pytest.raises(InputDataError, match="num_judges"):
        ReliabilityKernel(RBFKernel(), 0)


def test_weights_can_be_sampled_from_their_prior():
    kernel = reliable([1.0, 1.0])
    kernel.sample_from_prior("weights_prior")
    assert (kernel.relative_weights > 0).all()
