"""Unbounded coordinates: there and back, and the slope against automatic derivatives."""

import pytest
import torch
from gpytorch.constraints import GreaterThan, Interval, LessThan, Positive

from botorch_skewgp.models.coordinates import constrained, from_unbounded, to_unbounded, unconstrained


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        (None, [-3.0, 0.0, 7.0]),
        (Positive(), [1e-6, 1.0, 50.0]),
        (GreaterThan(0.5), [0.5001, 1.0, 30.0]),
        (LessThan(-1.0), [-40.0, -2.0, -1.001]),
        (Interval(-2.0, 3.0), [-1.999, 0.0, 2.9]),
    ],
)
def test_there_and_back_with_the_slope(constraint, values):
    value = torch.tensor(values, dtype=torch.float64)
    x = to_unbounded(constraint, value).requires_grad_()
    back, log_slope = from_unbounded(constraint, x)
    torch.testing.assert_close(back, value, rtol=1e-9, atol=1e-12)
    slope = torch.autograd.grad(back.sum(), x)[0]
    torch.testing.assert_close(log_slope, slope.abs().log())
    torch.testing.assert_close(constrained(constraint, unconstrained(constraint, value)), value)
    assert to_unbounded(constraint, value).diff().gt(0).all() != (isinstance(constraint, LessThan))
