r"""A smooth function at very many points, from few values of it.

.. [Trefethen2019approximation] L. N. Trefethen. Approximation Theory and Approximation Practice, extended edition.
   SIAM 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MIN_NODES = 12
MIN_REACH = 0.01  # widths from the middle; derivatives between closer nodes have few digits
MIN_SAVING = 4  # points for each node, below which the function itself is cheaper


class _ChebyshevSeries(torch.autograd.Function):
    """Sums of Chebyshev polynomials with `... x n` coefficients at `... x S` points of [-1, 1], by recurrences."""

    @staticmethod
    def forward(ctx: Any, coefficients: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(coefficients, y)
        return _sum(coefficients, y)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        coefficients, y = ctx.saved_tensors
        last, polynomial = torch.ones_like(y), y
        in_coefficients = [gradient.sum(-1), (gradient * y).sum(-1)]
        for _ in range(2, coefficients.shape[-1]):
            last, polynomial = polynomial, 2 * y * polynomial - last
            in_coefficients.append((gradient * polynomial).sum(-1))
        return torch.stack(in_coefficients, dim=-1), gradient * _sum(_derivative(coefficients), y)


def _sum(coefficients: Tensor, y: Tensor) -> Tensor:
    """Clenshaw's recurrence."""
    twice, later, latest = 2 * y, torch.zeros_like(y), torch.zeros_like(y)
    first, *others = coefficients.unsqueeze(-1).unbind(-2)
    for coefficient in reversed(others):
        later, latest = torch.addcmul(coefficient - latest, twice, later), later
    return torch.addcmul(first - latest, y, later)


def _derivative(coefficients: Tensor) -> Tensor:
    """The coefficients of the derivative; the last one is zero."""
    n = coefficients.shape[-1]
    weighted = 2 * torch.arange(n, dtype=coefficients.dtype, device=coefficients.device) * coefficients
    found = torch.zeros_like(coefficients)
    for k in range(n - 2, -1, -1):
        found[..., k] = weighted[..., k + 1] + (found[..., k + 2] if k + 2 < n else 0)
    found[..., 0] *= 0.5
    return found


def interpolated(function: Callable[[Tensor], Tensor], x: Tensor, width: Tensor, nodes_per_width: float) -> Tensor:
    r"""An analytic function at many arguments, from its values at Chebyshev nodes between the least and the largest.

    The error falls geometrically in the number of nodes ([Trefethen2019approximation]_, chapter 8). Once
    differentiable, in the arguments and in whatever else the function depends on.

    Args:
        function: A function of the last dimension, from `... x n` to `... x n`.
        x: The arguments, `... x S`.
        width: The distance over which the function changes, of a shape that broadcasts with `... x 1`.
        nodes_per_width: The number of nodes for each of these; more nodes make the error smaller.

    Returns:
        Its values, `... x S`.
    """
    low, high = x.detach().aminmax(dim=-1, keepdim=True)
    middle, half = 0.5 * (low + high), torch.maximum(0.5 * (high - low), MIN_REACH * width)
    num_nodes = MIN_NODES + nodes_per_width * float((2 * half / width).max())
    if not num_nodes * MIN_SAVING < x.shape[-1]:
        return function(x)
    order = torch.arange(math.ceil(num_nodes), dtype=x.dtype, device=x.device)
    angle = (order + 0.5) * (math.pi / len(order))
    values = function(middle + half * angle.cos())
    coefficients = values @ (angle.unsqueeze(-1) * order).cos() * (2 / len(angle))
    coefficients = torch.cat([0.5 * coefficients[..., :1], coefficients[..., 1:]], dim=-1)
    return _ChebyshevSeries.apply(coefficients, (x - middle) / half)
