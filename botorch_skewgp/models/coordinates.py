r"""Unbounded coordinates of constrained parameters."""

from __future__ import annotations

import torch
from gpytorch.constraints import Interval
from torch import Tensor


def constrained(constraint: Interval | None, raw: Tensor) -> Tensor:
    """The value of a parameter that GPyTorch holds as `raw`."""
    return raw if constraint is None else constraint.transform(raw)


def unconstrained(constraint: Interval | None, value: Tensor) -> Tensor:
    """What GPyTorch holds as `raw` for the value of a parameter."""
    return value if constraint is None else constraint.inverse_transform(value)


def to_unbounded(constraint: Interval | None, value: Tensor) -> Tensor:
    """Logarithm of the distance to a single bound, logit between two."""
    lower, upper = _bounds(constraint, value)
    if lower.isinf() and upper.isinf():
        return value
    if upper.isinf():
        return (value - lower).log()
    if lower.isinf():
        return (upper - value).log()
    return torch.logit((value - lower) / (upper - lower))


def from_unbounded(constraint: Interval | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """The value at unbounded coordinates and the logarithm of its slope."""
    lower, upper = _bounds(constraint, x)
    if lower.isinf() and upper.isinf():
        return x, 0 * x  # with a graph, as in the other cases
    if upper.isinf():
        return lower + x.exp(), x
    if lower.isinf():
        return upper - x.exp(), x
    log_slope = (upper - lower).log() + torch.nn.functional.logsigmoid(x) + torch.nn.functional.logsigmoid(-x)
    return lower + (upper - lower) * torch.sigmoid(x), log_slope


def _bounds(constraint: Interval | None, like: Tensor) -> tuple[Tensor, Tensor]:
    if constraint is None:
        return like.new_tensor(-torch.inf), like.new_tensor(torch.inf)
    return constraint.lower_bound.to(like), constraint.upper_bound.to(like)
