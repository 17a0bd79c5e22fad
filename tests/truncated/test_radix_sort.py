"""The compiled sort against torch's."""

import math

import pytest
import torch

pytest.importorskip("numba")
from botorch_skewgp.truncated.radix_sort import argsort


def lists(shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("shape", [(3, 1000), (2, 2, 257), (5,), (4, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-310])
def test_equal_to_torch(shape, scale):
    values = scale * lists(shape)
    assert torch.equal(argsort(values), values.argsort(dim=-1, stable=True))


def test_equal_values_in_the_order_they_come():
    values = lists((4, 500)).round()
    values[values == 0] = 0.0  # to torch -0 is equal to 0
    assert torch.equal(argsort(values), values.argsort(dim=-1, stable=True))


def test_infinite_and_undefined_values():
    values = lists((20,))
    values[3], values[7], values[11] = math.inf, -math.inf, math.nan
    assert torch.equal(argsort(values), values.argsort(dim=-1, stable=True))


def test_views_are_left_as_they_are():
    values = lists((50, 6)).mT[::2]
    before = values.clone()
    assert torch.equal(argsort(values), values.argsort(dim=-1, stable=True))
    assert torch.equal(values, before)
