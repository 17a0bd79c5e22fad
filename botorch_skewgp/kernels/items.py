"""Kernels of numbered things: items, groups, categories."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.kernels import CategoricalKernel
from gpytorch import settings
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_skewgp.kernels.evaluation import with_changed_parts


class ItemEffectKernel(Kernel):
    r"""`k(x, z) = 1` where `x = z`, else 0: an independent effect for each item.

    Points hold the number of an item, or of a group of items, in the kernel's active dimensions. The standard deviation
    of the effects is the square root of the output scale of a `ScaleKernel` around this one. This is the random
    intercept of a mixed model, and the prior of a Bradley-Terry or Thurstone model.

    Example:
        >>> kernel = ItemEffectKernel(active_dims=[0])
        >>> covariance = kernel(torch.tensor([[0.0, 0.3], [1.0, 0.3], [0.0, 0.7]])).to_dense()
    """

    has_lengthscale = False

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""
        if diag:
            return (x1 == x2).all(-1).to(x1.dtype)
        shape = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
        same = torch.ones(*shape, x1.shape[-2], x2.shape[-2], dtype=torch.bool, device=x1.device)
        for dim in range(x1.shape[-1]):  # mostly one; no n x m x d tensor
            same &= x1[..., dim].unsqueeze(-1) == x2[..., dim].unsqueeze(-2)
        return same.to(x1.dtype)


def categorical_inputs(kernel: Kernel, dim: int) -> list[int]:
    """Which of `dim` inputs a kernel, or a part of it, reads as numbers of categories."""
    seen: list[Tensor] = []

    def let_report(part: Any) -> None:
        reads_categories = isinstance(part, CategoricalKernel | ItemEffectKernel)
        if reads_categories:
            forward = part.forward

            def reported(x1: Tensor, x2: Tensor, **params: Any) -> Tensor:
                seen.append(x1)
                return forward(x1, x2, **params)

            part.forward = reported

    with torch.enable_grad(), settings.lazily_evaluate_kernels(False):
        like = next(kernel.parameters(), torch.zeros((), dtype=torch.double))
        x = like.new_zeros(1, dim).requires_grad_()
        with_changed_parts(kernel, let_report)(x)
        reached = torch.zeros_like(x)
        for inputs in seen:
            reached += torch.autograd.grad(inputs.sum(), x)[0]
    return reached.squeeze(0).nonzero().squeeze(-1).tolist()
