"""The bivariate normal cdf against scipy's and BoTorch's, and its derivatives against differences."""

import math

import pytest
import torch
from scipy.stats import multivariate_normal

from botorch_skewgp.acquisition.bivariate import bivariate_normal_cdf

DOUBLE = torch.float64


@pytest.mark.parametrize("rho", [-0.999, -0.95, -0.93, -0.92, -0.3, 0.0, 0.5, 0.92, 0.93, 0.99])
def test_is_the_cdf(rho, generator):
    h, k = torch.randn(2, 12, generator=generator, dtype=DOUBLE) * 2
    value = bivariate_normal_cdf(h, k, torch.tensor(rho, dtype=DOUBLE))
    law = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    expected = [law.cdf([a, b]) for a, b in zip(h.tolist(), k.tolist(), strict=True)]
    torch.testing.assert_close(value, torch.tensor(expected, dtype=DOUBLE), rtol=0, atol=2e-8)  # scipy's own error


def test_limits():
    zero, rho = torch.zeros(1, dtype=DOUBLE), torch.linspace(-1, 1, 21, dtype=DOUBLE)
    torch.testing.assert_close(bivariate_normal_cdf(zero, zero, rho), 0.25 + rho.asin() / (2 * math.pi))
    h = torch.tensor([-40.0, -3.0, 0.5, 40.0], dtype=DOUBLE)
    k = torch.tensor([0.3], dtype=DOUBLE)
    for r in (-0.97, 0.4):
        both = bivariate_normal_cdf(h, k.expand(4), torch.tensor([r], dtype=DOUBLE))
        torch.testing.assert_close(both[0], torch.zeros((), dtype=DOUBLE))
        torch.testing.assert_close(both[3:], torch.special.ndtr(k))


@pytest.mark.parametrize("far", [False, True])
def test_derivatives(far, generator):
    h, k = torch.randn(3, 1, generator=generator, dtype=DOUBLE), torch.randn(4, generator=generator, dtype=DOUBLE)
    rho = torch.rand(3, 4, generator=generator, dtype=DOUBLE) * 1.6 - 0.8
    rho = rho.sign() * (0.94 + 0.05 * rho.abs()) if far else rho
    inputs = [x.requires_grad_() for x in (h, k, rho)]
    assert torch.autograd.gradcheck(bivariate_normal_cdf, inputs, eps=1e-5, atol=1e-7)
