"""Derivatives in closed form of functions of large matrices, without autograd's copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class _WithSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, tensor: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (slope,) = ctx.saved_tensors
        return grad, grad.reshape(*grad.shape, *(1,) * (slope.ndim - grad.ndim)) * slope, None


def with_slope(value: Tensor, tensor: Tensor, slope: Callable[[], Tensor]) -> Tensor:
    """The value with a known derivative, the slope, in another tensor, if that needs one; differentiable once."""
    if not tensor.requires_grad:
        return value
    with torch.no_grad():
        known = slope()
    return _WithSlope.apply(value, tensor, known)


class _SquaredLengths(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(vectors)
        return torch.linalg.vector_norm(vectors, dim=-1).square()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (vectors,) = ctx.saved_tensors
        return (2 * grad).unsqueeze(-1) * vectors


def squared_lengths(vectors: Tensor) -> Tensor:
    r"""The squared lengths of vectors, `... x k` for `... x k x r`; differentiable."""
    return _SquaredLengths.apply(vectors)
