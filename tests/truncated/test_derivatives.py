"""Derivatives in closed form against autograd and finite differences."""

import torch
from torch.autograd import gradcheck, gradgradcheck

from botorch_skewgp.truncated.derivatives import squared_lengths, with_slopes


def test_with_slopes(generator):
    """Known derivatives in two tensors, beside a graph of the value's own."""
    x, y = (torch.randn(4, 2, dtype=torch.float64, generator=generator, requires_grad=True) for _ in range(2))
    scale = torch.rand((), dtype=torch.float64, generator=generator, requires_grad=True)

    def value(x, y, scale):
        a, b = x.detach(), y.detach()
        slopes = [(x, lambda: scale * a.cos()), (y, lambda: scale * b)]
        return with_slopes(scale * (a.sin().sum() + 0.5 * b.square().sum()), slopes)

    assert gradcheck(value, (x, y, scale))
    assert gradcheck(lambda scale: value(x.detach(), y, scale), (scale,))


def test_squared_lengths(generator):
    x = torch.randn(2, 3, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    torch.testing.assert_close(squared_lengths(x), x.square().sum(-1))
    assert gradcheck(squared_lengths, (x,))
    assert gradgradcheck(squared_lengths, (x,))
    zeros = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    squared_lengths(zeros).sum().backward()
    assert zeros.grad.tolist() == torch.zeros(3, 2).tolist()
