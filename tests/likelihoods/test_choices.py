"""Choices: rare ones, of two, with options that are not available, with repeats, and with none of them."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms import Standardize
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import LinearKernel
from gpytorch.means import ConstantMean

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_choice, recommend
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.likelihoods import PreferenceLikelihood, VoteLikelihood
from botorch_skewgp.likelihoods.predictions import best_of_probabilities
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import IntegratedConstantMean
from botorch_skewgp.observations import Binary, Choice, ChoiceOrNone, Numeric, Preference, Vote
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
    with pytest.raises(InputDataError, match="Options that are unavailable need values"):
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


Z = torch.rand(6, 2, dtype=double, generator=torch.Generator().manual_seed(3))
ASKED = [[1, 0, 2], [4, 3, -1], [5, -1, -1], [0, 3, 5]]
NONE = [False, True, True, False]
THRESHOLD, NOISE = 0.4, 0.6


@pytest.mark.parametrize("turned", [False, True])
def test_none_is_an_option_of_known_utility(turned):
    """As a choice beside a point at which the function is the threshold for certain."""
    points = torch.cat([Z - 0.5, torch.zeros(1, 2, dtype=double)])
    mean = ConstantMean().double()
    mean.initialize(constant=THRESHOLD)
    chosen = Choice([[1, 0, 2, 6], [6, 4, 3, -1], [6, 5, -1, -1], [0, 3, 5, 6]])
    found = []
    for answers in (ChoiceOrNone(ASKED, NONE), chosen):
        likelihood = PreferenceLikelihood(noise=NOISE, slip=0.1, threshold=THRESHOLD)
        seen = answers.reversed() if turned else answers
        model = SkewGP(points, seen, likelihood, LinearKernel().double(), mean, approximation="ep")
        none = answers is not chosen
        predicted = model.predictive(points[[1, 3, 4] if none else [1, 3, 4, 6]], none=none).probs
        found.append((model.log_marginal_likelihood("ep").value, predicted, model.posterior(points).mean))
    for one, other, tolerance in zip(*found, (1e-4, 2e-3, 1e-4), strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=0)


def test_unavailable_options_and_none():
    model = SkewGP(Z, ChoiceOrNone(ASKED, NONE), approximation="ep")
    for q in (1, 4):
        found = model.predictive(Z[:q], none=True).probs
        assert found.shape == (q + 1,)
        assert float(found.sum()) == pytest.approx(1)
    available = torch.tensor([[True, False, True], [False, False, True]])
    found = model.predictive(Z[:3].expand(2, 3, 2), available=available, none=True).probs
    assert found[0, 1] == found[1, 0] == found[1, 1] == 0 < found[1, 3]
    torch.testing.assert_close(found[1, [2, 3]], model.predictive(Z[2:3], none=True).probs, atol=2e-3, rtol=0)
    with pytest.raises(UnsupportedError, match="none is for choices"):
        SkewGP(Z, Binary([1, 0])).predictive(Z[:2], none=True)


def test_the_level_is_learned_by_the_mean_or_beside_numbers():
    alone = SkewGP(Z, ChoiceOrNone(ASKED, NONE))
    assert isinstance(alone.mean_module, IntegratedConstantMean)
    assert not alone.likelihood.shift.requires_grad
    numbers = Numeric([3.0, 5.0, 4.0], index=[0, 1, 2])
    seen = [numbers, ChoiceOrNone(ASKED, NONE)]
    model = SkewGP(Z, seen, outcome_transform=Standardize(1))
    assert model.likelihood.for_kind(ChoiceOrNone).shift.requires_grad
    given = SkewGP(Z, seen, PreferenceLikelihood(threshold=4.5), outcome_transform=Standardize(1))
    part = given.likelihood.for_kind(ChoiceOrNone)
    assert not part.shift.requires_grad
    lower = part.rows(ChoiceOrNone([[0]], [False]), Z, given.outcome_scale).lower
    assert float(lower) == pytest.approx((4.5 - 4.0) / float(numbers.values.std()), abs=1e-6)
    assert SkewGP(Z, [ChoiceOrNone(ASKED, NONE), Vote([[0, 1]], ["tie"])]).likelihood.observation_types[:1] == (Vote,)


@pytest.mark.parametrize(
    "none",
    [[False, False, False], [True, True, True], [True]],
    ids=lambda none: "".join("n" if one else "c" for one in none),
)
def test_from_the_first_round_on(none):
    """Whatever the first answers are: fits end, and proposals are inside of the box."""
    g = torch.Generator().manual_seed(5)
    points = torch.rand(12, 3, dtype=double, generator=g)
    answers = ChoiceOrNone(torch.arange(4 * len(none)).view(-1, 4), none)
    model = SkewGP(points, answers)
    fit_skew_gp(model)
    probability = float(model.predictive(points[:4], none=True).probs[-1])
    assert 0 < probability < 1
    if all(none):
        assert probability > 0.4
    if not any(none):
        assert probability < 0.2
    new = model.posterior(torch.tensor([[0.5, 0.5, 0.5]], dtype=double))
    assert bool(new.mean.isfinite().all())


@pytest.mark.slow
def test_after_refusals_proposals_find_what_is_good():
    """Two questions whose options are all bad, and five proposed ones; "good" is a tenth of the box."""
    g = torch.Generator().manual_seed(0)
    best = 0.2 + 0.6 * torch.rand(3, dtype=double, generator=g)
    bounds = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=double)

    def utility(x):
        return 10 * torch.exp(-6 * (x - best).square().sum(-1)) - 5

    everywhere = torch.rand(1000, 3, dtype=double, generator=g)
    assert 0.05 < (utility(everywhere) > 0).double().mean() < 0.25
    points = everywhere[utility(everywhere) < -2][:8]
    options, none = [[0, 1, 2, 3], [4, 5, 6, 7]], [True, True]
    for _ in range(5):
        model = SkewGP(points, ChoiceOrNone(options, none), approximation="ep")
        fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
        asked, _ = next_choice(model, bounds, num_options=4)
        noisy = utility(asked) + 0.5 * torch.randn(4, dtype=double, generator=g)
        options.append((len(points) + noisy.argsort(descending=True)).tolist())
        none.append(bool(noisy.max() < 0.5 * torch.randn(1, dtype=double, generator=g)))
        points = torch.cat([points, asked])
    model = SkewGP(points, ChoiceOrNone(options, none), approximation="ep")
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    assert float(utility(recommend(model, bounds)[0])) > 2


def test_counts_judges_votes_and_conditioning():
    twice = ChoiceOrNone([[1, 0], [2, 3]], [False, True], count=[2, 1], judge=[0, 1])
    assert (twice.none.tolist(), twice.duels.tolist()) == ([False, False, True], [[1, 0], [1, 0]])
    assert twice.reversed().duels.tolist() == [[0, 1], [0, 1]]
    assert twice.reversed().reversed().turned is False
    model = SkewGP(Z, twice)
    more = model.condition_on_observations(Z[:2] + 0.01, ChoiceOrNone([[0, 1]], [True], judge=[0]))
    assert bool((more.posterior(Z).variance > 0).all())
    assert SkewGP(Z, twice, likelihood=VoteLikelihood()).likelihood.observation_types[0] is Vote
    probability = model.predictive(Z[:2], judge=0, none=True).probs
    assert float(probability.sum()) == pytest.approx(1)
    both = SkewGP(Z, [twice, Preference([[0, 1]])])
    assert isinstance(both.likelihood, PreferenceLikelihood)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChoiceOrNone([[0, 1]], [True, False]), "none must have one entry for each of the 1 rows; got 2"),
        (lambda: ChoiceOrNone([[0, 1]], [2]), "none must be 0 or 1"),
        (lambda: ChoiceOrNone([[-1, -1]], [True]), "at least one point in every row"),
        (lambda: ChoiceOrNone([[0, -1, 1]], [True]), "padded with -1 at the end"),
        (lambda: SkewGP(Z, ChoiceOrNone([[0, 1]], [True])).predictive(Z, none=1), "none must be True or False"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(InputDataError, match=message):
        make()
