"""The bivariate normal cdf against quadrature and differences."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.special import ndtr
from torch.autograd import gradcheck

from botorch_skewgp.acquisition.bivariate_normal import bivariate_normal_cdf


@pytest.mark.parametrize("rho", [-0.999, -0.95, -0.93, -0.92, -0.3, 0.0, 0.5, 0.92, 0.93, 0.99])
def test_bivariate_cdf(rho, generator):
    h, k = torch.randn(2, 12, generator=generator, dtype=torch.float64) * 2
    value = bivariate_normal_cdf(h, k, torch.tensor(rho, dtype=torch.float64))
    expected = [_by_quadrature(a, b, rho) for a, b in zip(h.tolist(), k.tolist(), strict=True)]
    torch.testing.assert_close(value, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-10)


def _by_quadrature(h, k, rho):
    """The integral over the first variable of the probability that the second is below `k` given it."""
    scale = math.sqrt(1 - rho**2)
    bend = [x for x in (k / rho + step * scale for step in (-5, 0, 5)) if -12 < x < h] if rho else None
    density = lambda x: math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * ndtr((k - rho * x) / scale)  # noqa: E731
    return quad(density, -12, h, points=bend or None, epsabs=1e-13, epsrel=1e-12, limit=400)[0]


def test_limits_of_the_bivariate_cdf():
    zero, rho = torch.zeros(1, dtype=torch.float64), torch.linspace(-1, 1, 21, dtype=torch.float64)
    torch.testing.assert_close(bivariate_normal_cdf(zero, zero, rho), 0.25 + rho.asin() / (2 * math.pi))
    h = torch.tensor([-40.0, -3.0, 0.5, 40.0], dtype=torch.float64)
    k = torch.tensor([0.3], dtype=torch.float64)
    for r in (-0.97, 0.4):
        both = bivariate_normal_cdf(h, k.expand(4), torch.tensor([r], dtype=torch.float64))
        torch.testing.assert_close(both[0], torch.zeros((), dtype=torch.float64))
        torch.testing.assert_close(both[3:], torch.special.ndtr(k))


@pytest.mark.parametrize("far", [False, True])
def test_derivatives_of_the_bivariate_cdf(far, generator):
    h, k = (
        torch.randn(3, 1, generator=generator, dtype=torch.float64),
        torch.randn(4, generator=generator, dtype=torch.float64),
    )
    rho = torch.rand(3, 4, generator=generator, dtype=torch.float64) * 1.6 - 0.8
    rho = rho.sign() * (0.94 + 0.05 * rho.abs()) if far else rho
    inputs = [x.requires_grad_() for x in (h, k, rho)]
    assert gradcheck(bivariate_normal_cdf, inputs, eps=1e-5, atol=1e-7)
