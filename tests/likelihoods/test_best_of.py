"""Probabilities of choices in the tails, of two, with options that are not available, and with repeats."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gpytorch.distributions import MultivariateNormal

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods.predictions import best_of_probabilities
from botorch_skewgp.observations import Binary, Choice
from botorch_skewgp.posteriors import SkewGPPosterior

double = torch.double
X = torch.rand(12, 2, dtype=double, generator=torch.Generator().manual_seed(0))
OPTIONS = torch.stack([torch.randperm(12, generator=torch.Generator().manual_seed(i))[:4] for i in range(12)])


def model_of(observations, **settings):
    model = SkewGP(X, observations, **settings)
    model.covar_module.outputscale = 10.0
    return model


def test_rare_choices_keep_their_digits():
    # independent utilities far apart: the worst of three is best with the product of two tails, nearly
    mean, covariance = torch.tensor([0.0, 14.0, 28.0], dtype=double), 1e-8 * torch.eye(3, dtype=double)
    posterior = SkewGPPosterior.from_gaussian(MultivariateNormal(mean, covariance))
    found = best_of_probabilities(posterior, torch.tensor(1.0, dtype=double))
    # u_0 > u_2 alone is a matter of Phi(-28 / sqrt(2)), and bounds it from above; u_1 < u_0 then is likely
    bound = torch.special.log_ndtr(torch.tensor(-28 / 2**0.5, dtype=double))
    assert bound - 2 < found[0].log() <= bound


def test_points_have_to_be_numbers():
    model, broken = model_of(Choice(OPTIONS[:6]), approximation="ep"), X[:4].clone()
    broken[3] = torch.nan
    available = torch.tensor([True, True, True, False])
    with pytest.raises(InputDataError, match="Unavailable options need values"):
        model.predictive(broken, available=available)
    assert model.predictive(X[:4], available=available).probs[3] == 0


def test_two_items_are_a_duel():
    posterior = model_of(Choice(OPTIONS), approximation="ep").latent_posterior(X[:2])
    noise = torch.ones(1, dtype=double)
    difference = posterior.affine(torch.tensor([[1.0, -1.0]], dtype=double)).add_noise(2 * noise)
    wins = difference.probability_above(torch.zeros(1, dtype=double)).squeeze()
    assert torch.allclose(best_of_probabilities(posterior, noise)[0], wins, atol=1e-9)


def test_unavailable_options_are_as_if_they_were_not_there():
    model = model_of(Choice(OPTIONS), approximation="ep")
    Q = X[:8].view(2, 4, 2)
    available = torch.tensor([[True, True, False, True], [True, True, True, True]])
    found = model.predictive(Q, available=available).probs
    assert found[0, 2] == 0
    assert torch.allclose(found[0, [0, 1, 3]], model.predictive(Q[0, [0, 1, 3]]).probs, atol=1e-3)
    assert torch.allclose(found[1], model.predictive(Q[1]).probs, atol=1e-9)
    some = available[0] & torch.tensor([True, False, True, True])  # two are left: a duel
    duel = model.predictive(Q[0], available=some).probs[0]
    assert torch.allclose(duel, model.predictive(Q[0, [0, 3]]).probs, atol=1e-3)


@pytest.mark.parametrize("approximation", [None, "ep"])
def test_probabilities_are_differentiable(approximation):
    model = model_of(Choice(OPTIONS), approximation=approximation)
    point = X[:4].clone().requires_grad_()
    weights = torch.tensor([1.0, -0.5, 2.0, 0.3], dtype=double)
    assert torch.autograd.gradcheck(lambda Q: (model.predictive(Q).probs * weights).sum(), point, atol=1e-5)


def test_options_that_are_the_same_have_noise_of_their_own():
    """With f constant the first of three equal options wins a third of the time; exactly, an orthant of two rows."""
    model = model_of(Choice([[0, 0, 0]]))
    assert model.log_marginal_likelihood("exact").value.exp() == pytest.approx(1 / 3, abs=0.01)
    repeated = model_of([Choice([[0, 1, 1]])]).log_marginal_likelihood("exact").value
    X2 = torch.cat([X[:2], X[1:2]])
    named = SkewGP(X2, Choice([[0, 1, 2]]))
    named.covar_module.outputscale = 10.0
    assert repeated == pytest.approx(float(named.log_marginal_likelihood("exact").value), abs=0.01)


def test_what_cannot_be_is_refused_in_words():
    model = model_of(Choice(OPTIONS), approximation="ep")
    for available in (torch.tensor([True, False, False, False]), torch.ones(3, dtype=torch.bool), torch.ones(4)):
        with pytest.raises(InputDataError, match="available"):
            model.predictive(X[:4], available=available)
    labels = SkewGP(X, Binary([1], index=[0]), approximation="ep")
    with pytest.raises(UnsupportedError, match="available is for choices"):
        labels.predictive(X[:4], available=torch.ones(4, dtype=torch.bool))
