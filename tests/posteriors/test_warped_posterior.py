"""Posteriors of warped outcomes and of probabilities, against the latent posterior, integrals and samples."""

import math
from functools import partial

import pytest
import torch
from botorch.sampling.get_sampler import get_sampler
from scipy.stats import norm
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary
from botorch_skewgp.posteriors import ProbabilityPosterior, RepresenterMixture, SkewGPPosterior, WarpedPosterior
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import Arcsinh, BoxCox, SinhArcsinh

DOUBLE = torch.float64
LOCATION, SCALE = 2.0, 3.0


def latent(generator):
    cross = torch.randn(3, 2, dtype=DOUBLE, generator=generator)
    weights = torch.randn(2, 50, dtype=DOUBLE, generator=generator)
    prior = cross @ cross.mT + torch.diag(torch.tensor([0.3, 0.5, 0.4], dtype=DOUBLE))
    mixture = RepresenterMixture(weights, torch.eye(2).double())
    return SkewGPPosterior(torch.zeros(3, dtype=DOUBLE), cross, prior, mixture)


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


# Probabilities


def latent_posterior(batch_shape=(), q=3, num_draws=20, widest=5.0, seed=0) -> SkewGPPosterior:
    """An explicit mixture of normals with different means; standard deviations from tiny to `widest`."""
    g = torch.Generator().manual_seed(seed)
    randn = partial(torch.randn, generator=g, dtype=DOUBLE)
    cross = randn(*batch_shape, q, 2)
    root = torch.linalg.qr(randn(q, q)).Q * torch.logspace(-1.5, math.log10(widest), q, dtype=DOUBLE)[:, None]
    mixture = RepresenterMixture(randn(2, num_draws).square() - 0.7, torch.zeros(2, 0, dtype=DOUBLE))
    covariance = (root @ root.mT).expand(*batch_shape, q, q)
    return SkewGPPosterior(randn(*batch_shape, q), cross, covariance, mixture)


@pytest.mark.parametrize("batch_shape", [(), (2, 3)])
@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_moments_against_quadrature(noise, batch_shape):
    """`E Phi(f / sqrt(noise))^power` by the trapezoid rule in each component of the mixture."""
    latent = latent_posterior(batch_shape)
    posterior = ProbabilityPosterior(latent, torch.tensor([noise]))
    z = torch.linspace(-10, 10, 20_001, dtype=DOUBLE)
    f = latent.component_means.unsqueeze(-1) + latent.gaussian_variance.sqrt()[..., None, None] * z
    p, density = (torch.from_numpy(x) for x in (norm.cdf(f.numpy() / noise**0.5), norm.pdf(z.numpy())))
    mean, second = (torch.trapezoid(p**power * density, z).mean(-1, keepdim=True) for power in (1, 2))
    assert torch.allclose(posterior.mean, mean, rtol=0, atol=1e-9)
    assert torch.allclose(posterior.variance, second - mean.square(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("batch_shape", [(), (2,), (2, 3)])
def test_quantiles_against_draws(batch_shape):
    latent = latent_posterior(batch_shape, widest=0.5, seed=1)  # so that no probability rounds to 1
    posterior = ProbabilityPosterior(latent, torch.tensor([0.5]))
    num, shape, levels = 40_000, (*batch_shape, 3, 1), torch.tensor([0.1, 0.5, 0.9], dtype=DOUBLE)
    p = torch.special.ndtr(latent.rsample(torch.Size([num])) / 0.5**0.5)
    assert posterior.mean.shape == posterior.variance.shape == posterior._extended_shape() == shape
    quantiles = posterior.quantile(levels)
    assert quantiles.shape == (3, *shape)
    share = (p < quantiles.unsqueeze(1)).double().mean(1)
    wanted = levels.reshape(-1, *[1] * len(shape))
    assert ((share - wanted).abs() < 5 * (wanted * (1 - wanted) / num).sqrt()).all()


def test_far_from_zero():
    """Certain labels: the mean keeps its digits near zero, and the variance is neither negative nor NaN."""
    mixture = RepresenterMixture(torch.zeros(1, 2, dtype=DOUBLE), torch.zeros(1, 0, dtype=DOUBLE))
    location = torch.tensor([-20.0, 20.0, -8.0], dtype=DOUBLE)
    latent = SkewGPPosterior(location, torch.zeros(3, 1, dtype=DOUBLE), 0.1 * torch.eye(3, dtype=DOUBLE), mixture)
    posterior = ProbabilityPosterior(latent, torch.tensor([0.9], dtype=DOUBLE))
    expected = torch.from_numpy(norm.cdf(location.numpy())).unsqueeze(-1)
    assert torch.allclose(posterior.mean, expected, rtol=1e-9, atol=0)
    assert (posterior.variance >= 0).all()
    assert (posterior.variance < 1e-14).all()


def test_samples_are_probabilities_of_the_latent_samples():
    latent = latent_posterior((2,))
    posterior = ProbabilityPosterior(latent, torch.tensor([4.0]))
    base = torch.randn(7, *posterior.base_sample_shape, dtype=DOUBLE)
    samples = posterior.rsample_from_base_samples(torch.Size([7]), base)
    assert samples.shape == (7, 2, 3, 1)
    expected = torch.special.ndtr(latent.rsample_from_base_samples(torch.Size([7]), base) / 2)
    assert torch.allclose(samples, expected, rtol=1e-12)
    assert posterior.rsample(torch.Size([5, 4])).shape == (5, 4, 2, 3, 1)


VALUES = {
    "mean": lambda posterior: posterior.mean,
    "variance": lambda posterior: posterior.variance,
    "quantile": lambda posterior: posterior.quantile(torch.tensor(0.2)),
    "sample": lambda posterior: posterior.rsample_from_base_samples(torch.Size([4]), torch.ones(4, 3, dtype=DOUBLE)),
}


@pytest.mark.parametrize("value", VALUES)
def test_gradients_of_probabilities(value):
    """In points, and in the noise."""
    X = torch.linspace(0, 1, 8, dtype=DOUBLE).unsqueeze(-1)
    model = SkewGP(X, Binary([1, 1, 1, 0, 1, 0, 0, 0]), draw_settings=DrawSettings(num_draws=64))
    model.covar_module.base_kernel.lengthscale = 0.2

    def function(X: Tensor, noise: Tensor) -> Tensor:
        return VALUES[value](ProbabilityPosterior(model.posterior(X), noise))

    given = torch.tensor([[0.23], [0.61]], dtype=DOUBLE), torch.tensor([0.7], dtype=DOUBLE)
    assert torch.autograd.gradcheck(function, [entry.requires_grad_() for entry in given], eps=1e-6, atol=1e-5)
