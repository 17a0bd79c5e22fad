"""Gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def assert_gradient(
    function: Callable[[Tensor], Tensor], X: Tensor, step: float = 1e-5, rtol: float = 1e-5, atol: float = 1e-7
) -> Tensor:
    """Compare a function's derivatives in `batch_shape x q x d` points, value by value, with central differences.

    Each value, of shape `batch_shape`, depends on its own points alone. The gradient, to look at further.
    """
    X = X.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(X).sum(), X)
    differences = torch.empty_like(gradient)
    with torch.no_grad():
        for i in range(X.shape[-2]):
            for k in range(X.shape[-1]):
                shift = torch.zeros_like(X)
                shift[..., i, k] = step
                differences[..., i, k] = (function(X + shift) - function(X - shift)) / (2 * step)
    torch.testing.assert_close(gradient, differences, rtol=rtol, atol=atol)
    return gradient
