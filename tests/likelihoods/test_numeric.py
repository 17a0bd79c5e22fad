"""The Gaussian likelihood of numbers: predictive distributions, gradients, parameters."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms import Standardize

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OutcomeScale, ProbitLikelihood
from botorch_skewgp.observations import Binary, Censored, Numeric
from botorch_skewgp.warpings import BoxCox

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


def test_censored_readings_use_the_learned_noise_and_numbers_their_own():
    likelihood = NumericLikelihood(noise=0.2)
    given = Numeric(torch.zeros(2, dtype=torch.float64), noise=0.5)
    scale = OutcomeScale(location=1.0, scale=2.0)
    assert torch.allclose(likelihood.rows(given, X).noise, torch.full((2,), 0.5).double())
    assert torch.allclose(likelihood.rows(given, X, scale).noise, torch.full((2,), 0.125).double())
    assert torch.allclose(likelihood.rows(CENSORED, X, scale).noise, likelihood.noise.expand(2))
    assert torch.allclose(likelihood.rows(CENSORED, X, scale).upper, torch.tensor([-0.45, INF]).double())


def test_bounds_without_noise_are_bounds_of_the_function(generator):
    """In units of the outcome: quantiles at the stated points end at the bound, and draws of the prior there agree."""
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    numbers = Numeric(torch.tensor([3.2, 4.1, 3.4], dtype=torch.float64), noise=0.04, index=[0, 2, 4])
    bound = Censored(3.0, [torch.inf] * 3, index=[1, 3, 5], noise=0.0)

    def build(*observations):
        model = SkewGP(X, [numbers, *observations], outcome_transform=Standardize(m=1))
        model.covar_module.base_kernel.lengthscale = 0.3
        return model

    plain, bounded = build(), build(bound)
    stated = X[[1, 3, 5]]
    assert float(plain.posterior(stated).quantile(torch.tensor([0.01]).double()).min()) < 3.0
    assert float(bounded.posterior(stated).quantile(torch.tensor([1e-4]).double()).min()) > 3.0 - 1e-6
    samples = plain.posterior(X).rsample(torch.Size([200_000])).squeeze(-1)
    kept = samples[(samples[:, [1, 3, 5]] > 3.0).all(-1)]
    found = bounded.posterior(X)
    error = kept.std(0) / math.sqrt(len(kept)) + found.variance.squeeze(-1).sqrt() / math.sqrt(500)
    assert ((found.mean.squeeze(-1) - kept.mean(0)).abs() / error).max() < 4


def test_known_variances_of_bounds():
    """Those of the noisy reading; a likelihood's noise of the same size has the same evidence."""
    X = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)
    values = []
    for noise, likelihood in ((None, NumericLikelihood(noise=0.3)), (0.3, NumericLikelihood(noise=0.05))):
        observed = Censored([0.1, -torch.inf], [torch.inf, 0.4], index=[0, 3], noise=noise)
        values.append(float(SkewGP(X, observed, likelihood).log_marginal_likelihood("ep").value))
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    assert Censored([0.0], [1.0], noise=0.1, count=[3]).noise.tolist() == pytest.approx([0.1] * 3)
    for noise in (-1.0, [0.1, 0.2], torch.inf):
        with pytest.raises(InputDataError, match="noise must hold one finite non-negative variance"):
            Censored([0.0], [1.0], noise=noise)
    with pytest.raises(UnsupportedError, match="Leave the observations' noise out"):
        SkewGP(X, Censored([0.5], [1.0], noise=0.1), NumericLikelihood(warping=BoxCox()))
    SkewGP(X, Censored([0.5], [1.0], noise=0.0), NumericLikelihood(warping=BoxCox())).posterior(X)


def test_presence_at_a_known_limit_is_a_label_of_that_threshold_with_the_noise_of_numbers():
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    numbers = Numeric([0.4, 1.3, -0.2], index=[0, 2, 4])
    limit, present = 0.7, torch.tensor([True, False, True])
    lower, upper = torch.where(present, limit, -INF), torch.where(present, INF, limit)
    values = []
    for observed, likelihood in (
        (Censored(lower, upper, index=[1, 3, 5]), NumericLikelihood(noise=0.21)),
        (
            Binary(present, index=[1, 3, 5]),
            MixedLikelihood(NumericLikelihood(noise=0.21), ProbitLikelihood(threshold=limit, noise=0.21)),
        ),
    ):
        values.append(float(SkewGP(X, [numbers, observed], likelihood).log_marginal_likelihood("ep").value))
    assert values[0] == pytest.approx(values[1], abs=1e-6)
