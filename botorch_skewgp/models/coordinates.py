r"""Unbounded coordinates of constrained parameters."""

from __future__ import annotations

from gpytorch.constraints import Interval
from torch import Tensor
from torch.distributions import Transform, biject_to, constraints


def constrained(constraint: Interval | None, raw: Tensor) -> Tensor:
    """The value of a parameter that GPyTorch holds as `raw`."""
    return raw if constraint is None else constraint.transform(raw)


def unconstrained(constraint: Interval | None, value: Tensor) -> Tensor:
    """What GPyTorch holds as `raw` for the value of a parameter."""
    return value if constraint is None else constraint.inverse_transform(value)


def to_unbounded(constraint: Interval | None, value: Tensor) -> Tensor:
    """Logarithm of the distance to a single bound, logit between two."""
    return _bijection(constraint, value).inv(value)


def from_unbounded(constraint: Interval | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """The value at unbounded coordinates and the logarithm of its slope."""
    bijection = _bijection(constraint, x)
    value = bijection(x)
    return value, bijection.log_abs_det_jacobian(x, value)


def _bijection(constraint: Interval | None, like: Tensor) -> Transform:
    """From unbounded coordinates to what a constraint admits."""
    if constraint is None:
        return biject_to(constraints.real)
    lower, upper = constraint.lower_bound.to(like), constraint.upper_bound.to(like)
    if lower.isinf() and upper.isinf():
        return biject_to(constraints.real)
    if upper.isinf():
        return biject_to(constraints.greater_than(lower))
    if lower.isinf():
        return biject_to(constraints.less_than(upper))
    return biject_to(constraints.interval(lower, upper))
