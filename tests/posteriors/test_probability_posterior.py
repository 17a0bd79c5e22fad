"""The posterior of a probability against quadrature over the mixture, and against draws of the latent function."""

import math

import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary
from botorch_skewgp.posteriors import ProbabilityPosterior, RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.draws import DrawSettings


def labels_model(labels=(1, 1, 1, 0, 1, 0, 0, 0)):
    X = torch.linspace(0, 1, len(labels), dtype=torch.float64).unsqueeze(-1)
    model = SkewGP(X, Binary(list(labels)), draw_settings=DrawSettings(num_draws=64))
    model.covar_module.base_kernel.lengthscale = 0.2
    model.covar_module.outputscale = 4.0
    return model.eval()


def latent_posterior(batch_shape=(), q=3, num_draws=20, widest=5.0, seed=0) -> SkewGPPosterior:
    """An explicit mixture of normals with different means; standard deviations from tiny to `widest`."""
    g = torch.Generator().manual_seed(seed)

    def randn(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    cross = randn(*batch_shape, q, 2)
    root = torch.linalg.qr(randn(q, q)).Q * torch.logspace(-1.5, math.log10(widest), q, dtype=torch.float64)[:, None]
    mixture = RepresenterMixture(randn(2, num_draws).square() - 0.7, torch.zeros(2, 0, dtype=torch.float64))
    covariance = (root @ root.mT).expand(*batch_shape, q, q)
    return SkewGPPosterior(randn(*batch_shape, q), cross, covariance, mixture)


def by_quadrature(latent: SkewGPPosterior, noise: float, power: int) -> Tensor:
    """`E Phi(f / sqrt(noise))^power` by the trapezoid rule in each component of the mixture."""
    z = torch.linspace(-10, 10, 20_001, dtype=torch.float64)
    f = latent.component_means.unsqueeze(-1) + latent.gaussian_variance.sqrt()[..., None, None] * z
    values = torch.from_numpy(norm.cdf(f.numpy() / noise**0.5) ** power * norm.pdf(z.numpy()))
    return torch.trapezoid(values, z).mean(-1, keepdim=True)


NOISES = [0.01, 1.0, 30.0]


@pytest.mark.parametrize("noise", NOISES)
def test_moments_against_quadrature(noise):
    latent = latent_posterior()
    posterior = ProbabilityPosterior(latent, torch.tensor([noise]))
    mean, second = by_quadrature(latent, noise, 1), by_quadrature(latent, noise, 2)
    assert torch.allclose(posterior.mean, mean, rtol=0, atol=1e-9)
    assert torch.allclose(posterior.variance, second - mean.square(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("batch_shape", [(), (2,), (2, 3)])
def test_moments_and_quantiles_against_draws(batch_shape):
    latent = latent_posterior(batch_shape, widest=0.5, seed=1)  # so that no probability rounds to 1
    posterior = ProbabilityPosterior(latent, torch.tensor([0.5]))
    num = 40_000
    p = torch.special.ndtr(latent.rsample(torch.Size([num])) / 0.5**0.5)
    shape = torch.Size([*batch_shape, 3, 1])
    assert posterior.mean.shape == posterior.variance.shape == posterior._extended_shape() == shape
    assert ((posterior.mean - p.mean(0)).abs() < 5 * p.std(0) / num**0.5).all()
    squares = (p - p.mean(0)).square()
    assert ((posterior.variance - squares.mean(0)).abs() < 5 * squares.std(0) / num**0.5 + 1e-12).all()
    levels = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    quantiles = posterior.quantile(levels)
    assert quantiles.shape == (3, *shape)
    share = (p < quantiles.unsqueeze(1)).double().mean(1)
    wanted = levels.reshape(-1, *[1] * len(shape))
    assert ((share - wanted).abs() < 5 * (wanted * (1 - wanted) / num).sqrt()).all()


def test_quantiles_of_a_mixture_of_one_normal():
    """Where there is one component, quantiles of the probability are in closed form."""
    latent = latent_posterior(num_draws=1)
    posterior = ProbabilityPosterior(latent, torch.tensor([0.25]))
    z = float(norm.ppf(0.8))
    expected = torch.special.ndtr((latent.mean + z * latent.variance.sqrt()) / 0.5)
    assert torch.allclose(posterior.quantile(torch.tensor(0.8)), expected, atol=1e-10)


def test_far_from_zero():
    """Certain labels: the mean keeps its digits near zero, and the variance is neither negative nor NaN."""
    mixture = RepresenterMixture(torch.zeros(1, 2, dtype=torch.float64), torch.zeros(1, 0, dtype=torch.float64))
    location = torch.tensor([-20.0, 20.0, -8.0], dtype=torch.float64)
    latent = SkewGPPosterior(
        location, torch.zeros(3, 1, dtype=torch.float64), 0.1 * torch.eye(3, dtype=torch.float64), mixture
    )
    posterior = ProbabilityPosterior(latent, torch.tensor([0.9], dtype=torch.float64))
    expected = torch.from_numpy(norm.cdf(location.numpy())).unsqueeze(-1)
    assert torch.allclose(posterior.mean, expected, rtol=1e-9, atol=0)
    assert (posterior.variance >= 0).all()
    assert (posterior.variance < 1e-14).all()


def test_samples_are_probabilities_of_the_latent_samples():
    latent = latent_posterior((2,))
    posterior = ProbabilityPosterior(latent, torch.tensor([4.0]))
    base = torch.randn(7, *posterior.base_sample_shape, dtype=torch.float64)
    samples = posterior.rsample_from_base_samples(torch.Size([7]), base)
    assert samples.shape == (7, 2, 3, 1)
    expected = torch.special.ndtr(latent.rsample_from_base_samples(torch.Size([7]), base) / 2)
    assert torch.allclose(samples, expected, rtol=1e-12)
    assert torch.equal(posterior.rsample_from_base_samples(torch.Size([7]), base), samples)
    assert posterior.rsample().shape == (1, 2, 3, 1)
    assert posterior.rsample(torch.Size([5, 4])).shape == (5, 4, 2, 3, 1)


@pytest.mark.parametrize("value", ["mean", "variance", "quantile", "sample"])
def test_gradients(value):
    model = labels_model()
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(4, 3, generator=generator, dtype=torch.float64)

    def function(X: Tensor) -> Tensor:
        posterior = ProbabilityPosterior(model.posterior(X), torch.tensor([0.7]))
        if value == "quantile":
            return posterior.quantile(torch.tensor(0.2))
        if value == "sample":
            return posterior.rsample_from_base_samples(torch.Size([4]), base)
        return getattr(posterior, value)

    X = torch.tensor([[0.23], [0.61]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, X, eps=1e-6, atol=1e-5)


def test_gradients_of_the_noise():
    latent = latent_posterior()
    noise = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: ProbabilityPosterior(latent, s).mean, noise)
    assert torch.autograd.gradcheck(lambda s: ProbabilityPosterior(latent, s).variance, noise)


def test_dtype_follows_the_latent_posterior():
    posterior = ProbabilityPosterior(latent_posterior(), torch.ones(1, dtype=torch.float32))
    assert posterior.dtype == posterior.mean.dtype == posterior.variance.dtype == torch.float64
    assert posterior.device == torch.device("cpu")
