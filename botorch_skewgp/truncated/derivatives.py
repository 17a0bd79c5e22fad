"""Derivatives in closed form of functions of large matrices, without autograd's copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Slope = tuple[Tensor, Callable[[], Tensor]]  # a tensor, and the derivative in it, of its shape


class _WithSlopes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, slopes: list[Tensor], *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*slopes)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad, None, *(grad * slope for slope in ctx.saved_tensors)


def with_slopes(value: Tensor, slopes: Sequence[Slope]) -> Tensor:
    """A scalar with known derivatives in other tensors, of those that need some; differentiable once."""
    needed = [(tensor, slope) for tensor, slope in slopes if tensor.requires_grad]
    if not needed:
        return value
    with torch.no_grad():
        known = [slope() for _, slope in needed]
    return _WithSlopes.apply(value, known, *(tensor for tensor, _ in needed))


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
