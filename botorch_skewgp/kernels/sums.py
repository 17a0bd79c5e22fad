"""Sums of kernels with a linear part, added as matrices without any decomposition."""

from __future__ import annotations

import torch
from gpytorch.kernels import AdditiveKernel, Kernel, LinearKernel, ProductKernel, ScaleKernel
from linear_operator.operators import DenseLinearOperator, LinearOperator
from torch import Tensor


def covariance_of_points(kernel: Kernel, X: Tensor) -> LinearOperator:
    """The covariance of a kernel at points; sums are added as matrices, which linear_operator would decompose."""
    kinds = {type(part) for part in kernel.modules()}
    if {AdditiveKernel, LinearKernel} <= kinds:
        return DenseLinearOperator(_matrix(kernel, X))
    return kernel(X)


def _matrix(kernel: Kernel, X: Tensor) -> Tensor:
    if not isinstance(kernel, AdditiveKernel | ProductKernel | ScaleKernel):
        return kernel(X).to_dense()
    is_copied = isinstance(kernel, ScaleKernel) and kernel.base_kernel.active_dims is not None  # by GPyTorch
    if kernel.active_dims is not None and not is_copied:
        X = X.index_select(-1, kernel.active_dims)
    if isinstance(kernel, ScaleKernel):
        return kernel.outputscale.unsqueeze(-1).unsqueeze(-1) * _matrix(kernel.base_kernel, X)
    parts = torch.broadcast_tensors(*(_matrix(part, X) for part in kernel.kernels))
    stacked = torch.stack(parts)
    return stacked.sum(0) if isinstance(kernel, AdditiveKernel) else stacked.prod(0)
