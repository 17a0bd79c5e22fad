"""The Gaussian likelihood of numbers: predictive distributions, gradients, parameters."""

import math

import gpytorch
import pytest
import torch

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import NumericLikelihood, OutcomeScale
from botorch_skewgp.observations import Censored, Numeric

INF = math.inf
X = torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1)
NUMERIC = Numeric(torch.tensor([0.3, -0.5, 1.0], dtype=torch.float64), index=torch.tensor([0, 2, 4]))
CENSORED = Censored(torch.tensor([-INF, 0.2]).double(), torch.tensor([0.1, INF]).double(), index=torch.tensor([1, 3]))


def build(observations, likelihood, **kwargs) -> SkewGP:
    return SkewGP(X, observations, likelihood=likelihood, **kwargs)


def test_samples_give_a_normal_law():
    likelihood = NumericLikelihood(noise=0.25)
    f = torch.tensor([[0.1, -2.0]], dtype=torch.float64)
    distribution = likelihood(f)
    assert torch.equal(distribution.mean, f)
    assert torch.allclose(distribution.variance, torch.full_like(f, 0.25), rtol=1e-7)


def test_predictive_law_of_a_reading_is_the_noisy_posterior(generator):
    model = build([NUMERIC, CENSORED], NumericLikelihood(noise=0.25))
    predictive, posterior = model.predictive(X), model.posterior(X)
    assert torch.allclose(predictive.mean, posterior.mean)
    assert torch.allclose(predictive.variance, posterior.variance + model.likelihood.noise)
    means, sd = posterior.component_means.detach(), posterior.gaussian_variance.detach().unsqueeze(-1).sqrt()
    draws = means + sd * torch.randn(200, *means.shape, dtype=means.dtype, generator=generator)
    draws = draws + 0.5 * torch.randn(draws.shape, dtype=draws.dtype, generator=generator)
    below = (draws <= 0.3).double().mean((0, -1))
    # draws of one component are independent given the component
    assert torch.allclose(predictive.cdf(0.3).squeeze(-1), below, atol=4 * 0.5 / (200 * means.shape[-1]) ** 0.5)


def test_gaussian_law_of_the_latent_function():
    distribution = gpytorch.distributions.MultivariateNormal(
        torch.tensor([0.5, 1.0]).double(), 2 * torch.eye(2).double()
    )
    predictive = NumericLikelihood(noise=0.25)(distribution)
    assert torch.allclose(predictive.mean.squeeze(-1), distribution.mean)
    assert torch.allclose(predictive.variance.squeeze(-1), distribution.variance + 0.25, rtol=1e-7)


def test_censored_readings_use_the_learned_noise_and_numbers_their_own():
    likelihood = NumericLikelihood(noise=0.2)
    given = Numeric(torch.zeros(2, dtype=torch.float64), noise=0.5)
    scale = OutcomeScale(location=1.0, scale=2.0)
    assert torch.allclose(likelihood.rows(given, X).noise, torch.full((2,), 0.5).double())
    assert torch.allclose(likelihood.rows(given, X, scale).noise, torch.full((2,), 0.125).double())
    assert torch.allclose(likelihood.rows(CENSORED, X, scale).noise, likelihood.noise.expand(2))
    assert torch.allclose(likelihood.rows(CENSORED, X, scale).upper, torch.tensor([-0.45, INF]).double())


def test_default_prior_is_that_of_a_learned_noise():
    assert [name for name, *_ in NumericLikelihood().named_priors()] == ["noise_prior"]
    assert list(NumericLikelihood(learn_noise=False).named_priors()) == []
    assert not NumericLikelihood(learn_noise=False).raw_noise.requires_grad


def test_setting_and_sampling_through_the_prior():
    likelihood = NumericLikelihood()
    likelihood.noise = 0.7
    assert likelihood.noise.item() == pytest.approx(0.7)
    likelihood.sample_from_prior("noise_prior")
    assert likelihood.noise.item() > 0
