"""Posteriors of outcomes whose warped values are skewed, against the latent posterior, integrals and samples."""

import math

import pytest
import torch
from botorch.sampling.get_sampler import get_sampler

from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior, WarpedPosterior
from botorch_skewgp.warpings import Arcsinh, BoxCox, SinhArcsinh

DOUBLE = torch.float64
LOCATION, SCALE = 2.0, 3.0


def latent(generator):
    cross = torch.randn(3, 2, dtype=DOUBLE, generator=generator)
    weights = torch.randn(2, 50, dtype=DOUBLE, generator=generator)
    prior = cross @ cross.mT + torch.diag(torch.tensor([0.3, 0.5, 0.4], dtype=DOUBLE))
    return SkewGPPosterior(
        torch.zeros(3, dtype=DOUBLE), cross, prior, RepresenterMixture(weights, torch.eye(2).double())
    )


def tilted():
    warping = SinhArcsinh()
    warping.skewness, warping.tail_weight = 0.3, 0.7
    return warping


@pytest.fixture(params=[tilted, Arcsinh, BoxCox])
def posterior(request, generator):
    return WarpedPosterior(latent(generator), request.param(), LOCATION, SCALE)


def test_distribution_functions_agree(posterior):
    levels = torch.tensor([0.3, 0.5, 0.9, 0.99], dtype=DOUBLE)
    y = posterior.quantile(levels)
    assert y.shape == (4, 3, 1)
    inside = y > (LOCATION if isinstance(posterior.warping, BoxCox) else -math.inf)
    expected = levels.view(4, 1, 1).expand(4, 3, 1)
    torch.testing.assert_close(posterior.cdf(y)[inside], expected[inside])
    torch.testing.assert_close(posterior.probability_above(y)[inside], 1 - expected[inside])
    y = y.clone().requires_grad_()
    (slope,) = torch.autograd.grad(posterior.cdf(y).sum(), y)
    torch.testing.assert_close(posterior.density(y)[inside], slope[inside], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(posterior.median, posterior.quantile(0.5))


def test_values_at_every_point(posterior):
    values = torch.tensor([2.5, 4.0], dtype=DOUBLE)
    for function in (posterior.cdf, posterior.probability_above, posterior.density):
        together = function(values)
        assert together.shape == (2, 3, 1)
        torch.testing.assert_close(together[0], function(2.5))
        torch.testing.assert_close(together, function(values.view(2, 1, 1).expand(2, 3, 1)))


def test_below_the_domain(generator):
    posterior = WarpedPosterior(latent(generator), BoxCox(), LOCATION, SCALE)
    assert (posterior.cdf(LOCATION - 0.1) == 0).all()
    assert (posterior.probability_above(LOCATION - 0.1) == 1).all()
    assert (posterior.density(LOCATION - 0.1) == 0).all()


def test_moments_and_samples(generator):
    posterior = WarpedPosterior(latent(generator), tilted(), LOCATION, SCALE)
    sampler = get_sampler(posterior, torch.Size([4096]), seed=0)
    samples = sampler(posterior)
    assert samples.shape == (4096, 3, 1)
    error = samples.std(0) / 64
    assert ((samples.mean(0) - posterior.mean).abs() < 4 * error).all()
    squares = (samples - posterior.mean).square()
    assert ((squares.mean(0) - posterior.variance).abs() < 4 * squares.std(0) / 64).all()
    below = (samples <= 3.0).double().mean(0)
    assert ((below - posterior.cdf(3.0)).abs() < 4 * 0.5 / 64).all()


def test_moments_of_an_exponential():
    # far in the tail sinh(z) is half of exp(z), whose moments are known
    none = RepresenterMixture(torch.zeros(0, 1, dtype=DOUBLE), torch.zeros(0, 0, dtype=DOUBLE))
    mean, sd = 20.0, 1.5
    normal = SkewGPPosterior(
        torch.full((1,), mean, dtype=DOUBLE), torch.zeros(1, 0, dtype=DOUBLE), torch.full((1, 1), sd**2).double(), none
    )
    posterior = WarpedPosterior(normal, Arcsinh())
    expected = 0.5 * math.exp(mean + sd**2 / 2)
    assert posterior.mean.item() == pytest.approx(expected, rel=1e-8)
    assert posterior.variance.item() == pytest.approx(expected**2 * math.expm1(sd**2), rel=1e-6)
