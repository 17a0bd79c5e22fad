"""Derivatives in closed form against autograd and finite differences."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from botorch_skewgp.truncated.derivatives import squared_lengths, with_slope


@pytest.mark.parametrize("batch_shape", [(), (3,)])
def test_with_slope(batch_shape, generator):
    x = torch.randn(*batch_shape, 4, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    scale = torch.rand(batch_shape, dtype=torch.float64, generator=generator, requires_grad=True)

    def function(x, scale):  # of which only the first factor's graph is kept
        rest = x.detach()
        return with_slope(scale * rest.sin().sum((-2, -1)), x, lambda: scale[..., None, None] * rest.cos())

    def plain(x, scale):
        return scale * x.sin().sum((-2, -1))

    assert torch.equal(function(x, scale), plain(x, scale))
    weight = torch.randn(batch_shape, dtype=torch.float64, generator=generator)
    for found, expected in zip(
        *(torch.autograd.grad((weight * f(x, scale)).sum(), (x, scale)) for f in (function, plain)), strict=True
    ):
        torch.testing.assert_close(found, expected)


def test_squared_lengths(generator):
    x = torch.randn(2, 3, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    torch.testing.assert_close(squared_lengths(x), x.square().sum(-1))
    assert gradcheck(squared_lengths, (x,))
    assert gradgradcheck(squared_lengths, (x,))
    zeros = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    squared_lengths(zeros).sum().backward()
    assert zeros.grad.tolist() == torch.zeros(3, 2).tolist()
