"""Sums with a linear kernel are added up as matrices."""

import pytest
import torch
from gpytorch.kernels import ConstantKernel, Kernel, LinearKernel, RBFKernel, ScaleKernel

from botorch_skewgp.kernels.judges import covariance_of_points

DOUBLE = torch.float64
X = torch.tensor([[0.1, 0.4], [0.1, 0.4], [0.1, 0.4 + 1e-9], [0.8, 0.3], [0.5, 0.9]], dtype=DOUBLE)


def nested() -> Kernel:
    inner = ScaleKernel(RBFKernel(active_dims=(1,)) + LinearKernel(ard_num_dims=2)) * ConstantKernel()
    return (ScaleKernel(inner + LinearKernel(active_dims=(0,))) + RBFKernel()).double()


@pytest.mark.parametrize(
    "kernel",
    [
        RBFKernel() + LinearKernel(),
        LinearKernel() + RBFKernel(),
        ScaleKernel(RBFKernel() + LinearKernel(), active_dims=(1,)),
        nested(),
        RBFKernel() + ScaleKernel(RBFKernel()),
        LinearKernel(),
    ],
)
def test_covariance_without_jitter(kernel):
    """Equal points, at which a decomposition needs jitter; blocks of unequal size are never decomposed."""
    kernel = kernel.double()
    with torch.no_grad():
        found = covariance_of_points(kernel, X).to_dense()
        expected = torch.cat([kernel(X, X[:2]).to_dense(), kernel(X, X[2:]).to_dense()], dim=-1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(found[0], found[1])


def test_batches():
    kernel = ScaleKernel(RBFKernel(batch_shape=torch.Size([2])) + LinearKernel(), batch_shape=torch.Size([2])).double()
    kernel.outputscale = torch.tensor([1.0, 3.0], dtype=DOUBLE)
    with torch.no_grad():
        found = covariance_of_points(kernel, X).to_dense()
        expected = torch.cat([kernel(X, X[:2]).to_dense(), kernel(X, X[2:]).to_dense()], dim=-1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_scaled_parts_of_some_inputs_select_them_once():
    """GPyTorch copies the inputs of a kernel to the scale around it."""
    X = torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    kernel = (LinearKernel() + ScaleKernel(RBFKernel(active_dims=[1, 2]))).double()
    expected = sum(part(X, X.clone()).to_dense() for part in kernel.kernels)
    assert torch.allclose(covariance_of_points(kernel, X).to_dense(), expected)
