"""Kernels of items, entry by entry."""

import torch

from botorch_skewgp.kernels import ItemEffectKernel


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
