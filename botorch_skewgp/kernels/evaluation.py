"""Covariances of kernels, each evaluated by the kernel itself: what it says of its inputs and parts holds here too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from gpytorch import settings
from gpytorch.kernels import AdditiveKernel, ConstantKernel, Kernel, LinearKernel
from linear_operator import to_dense
from linear_operator.operators import LinearOperator
from torch import Tensor


class PlusConstantKernel(Kernel):
    """`k(x, z) + c`. GPyTorch's `+` would take a sum apart, and drop what its class overrides.

    Args:
        base_kernel: The kernel `k`, of any class.
        constant: The constant `c`, without a batch shape.
    """

    has_lengthscale = False

    def __init__(self, base_kernel: Kernel, constant: ConstantKernel) -> None:
        super().__init__()
        self.base_kernel, self.constant = base_kernel, constant

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""
        covariance = to_dense(self.base_kernel(x1, x2, diag=diag, **params))
        return covariance + self.constant.constant.to(covariance)


def covariance_between(kernel: Kernel, X: Tensor, Z: Tensor | None = None) -> LinearOperator:
    """The covariance of a kernel between two sets of points, or one; parts of sums are added as matrices.

    At equal sets GPyTorch's linear kernel gives a root, and linear_operator would decompose what is added to that.
    """
    has_root, has_sum = (
        any(isinstance(part, kind) for part in kernel.modules()) for kind in (LinearKernel, AdditiveKernel)
    )
    if not (has_root and has_sum):
        return kernel(X, Z)
    with settings.lazily_evaluate_kernels(False):
        return with_changed_parts(kernel, _give_matrices)(X, Z)


def _give_matrices(kernel: Kernel) -> None:
    forward = kernel.forward
    kernel.forward = lambda *args, **kwargs: to_dense(forward(*args, **kwargs))


def with_changed_parts(kernel: Kernel, change: Callable[[Kernel], None]) -> Kernel:
    """A copy of a kernel, with the parameters themselves, whose parts `change` has altered; to be evaluated at once."""
    copies: dict[int, torch.nn.Module] = {}

    def copied(module: torch.nn.Module) -> torch.nn.Module:
        if id(module) not in copies:
            copy: Any = module.__new__(type(module))
            copies[id(module)] = copy
            fields = vars(module)
            children = {name: child and copied(child) for name, child in fields["_modules"].items()}
            vars(copy).update(fields, _modules=children)
            if isinstance(copy, Kernel):
                change(copy)
        return copies[id(module)]

    changed = copied(kernel)
    assert isinstance(changed, Kernel)
    return changed
