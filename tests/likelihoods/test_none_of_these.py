"""Choices with the answer "none of these": against an option of known utility, and simulated people."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms import Standardize
from gpytorch.kernels import LinearKernel
from gpytorch.means import ConstantMean

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_choice, recommend
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.likelihoods import PreferenceLikelihood, VoteLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.defaults import IntegratedConstantMean
from botorch_skewgp.observations import Binary, Choice, ChoiceOrNone, Numeric, Preference, Vote

DOUBLE = torch.float64
X = torch.rand(6, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(3))
OPTIONS = [[1, 0, 2], [4, 3, -1], [5, -1, -1], [0, 3, 5]]
NONE = [False, True, True, False]
THRESHOLD, NOISE = 0.4, 0.6


@pytest.mark.parametrize("turned", [False, True])
def test_none_is_an_option_of_known_utility(turned):
    """As a choice beside a point at which the function is the threshold for certain."""
    points = torch.cat([X - 0.5, torch.zeros(1, 2, dtype=DOUBLE)])
    mean = ConstantMean().double()
    mean.initialize(constant=THRESHOLD)
    chosen = Choice([[1, 0, 2, 6], [6, 4, 3, -1], [6, 5, -1, -1], [0, 3, 5, 6]])
    found = []
    for answers in (ChoiceOrNone(OPTIONS, NONE), chosen):
        likelihood = PreferenceLikelihood(noise=NOISE, slip=0.1, threshold=THRESHOLD)
        seen = answers.reversed() if turned else answers
        model = SkewGP(points, seen, likelihood, LinearKernel().double(), mean, approximation="ep")
        none = answers is not chosen
        predicted = model.predictive(points[[1, 3, 4] if none else [1, 3, 4, 6]], none=none).probs
        found.append((model.log_marginal_likelihood("ep").value, predicted, model.posterior(points).mean))
    for one, other, tolerance in zip(*found, (1e-4, 2e-3, 1e-4), strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=0)


def test_unavailable_options_and_none():
    model = SkewGP(X, ChoiceOrNone(OPTIONS, NONE), approximation="ep")
    for q in (1, 4):
        found = model.predictive(X[:q], none=True).probs
        assert found.shape == (q + 1,)
        assert float(found.sum()) == pytest.approx(1)
    available = torch.tensor([[True, False, True], [False, False, True]])
    found = model.predictive(X[:3].expand(2, 3, 2), available=available, none=True).probs
    assert found[0, 1] == 0
    assert found[1, :2].tolist() == [0, 0]
    assert found[1, 3] > 0
    torch.testing.assert_close(found[1, [2, 3]], model.predictive(X[2:3], none=True).probs, atol=2e-3, rtol=0)
    with pytest.raises(UnsupportedError, match="none is for choices"):
        SkewGP(X, Binary([1, 0])).predictive(X[:2], none=True)


def test_the_level_is_learned_by_the_mean_or_beside_numbers():
    alone = SkewGP(X, ChoiceOrNone(OPTIONS, NONE))
    assert isinstance(alone.mean_module, IntegratedConstantMean)
    assert not alone.likelihood.shift.requires_grad
    numbers = Numeric([3.0, 5.0, 4.0], index=[0, 1, 2])
    model = SkewGP(X, [numbers, ChoiceOrNone(OPTIONS, NONE)], outcome_transform=Standardize(1))
    assert model.likelihood.for_kind(ChoiceOrNone).shift.requires_grad
    given = SkewGP(
        X,
        [numbers, ChoiceOrNone(OPTIONS, NONE)],
        likelihood=PreferenceLikelihood(threshold=4.5),
        outcome_transform=Standardize(1),
    )
    part = given.likelihood.for_kind(ChoiceOrNone)
    assert not part.shift.requires_grad
    lower = part.rows(ChoiceOrNone([[0]], [False]), X, given.outcome_scale).lower
    assert float(lower) == pytest.approx((4.5 - 4.0) / float(numbers.values.std()), abs=1e-6)
    assert SkewGP(X, [ChoiceOrNone(OPTIONS, NONE), Vote([[0, 1]], ["tie"])]).likelihood.observation_types[:1] == (Vote,)


@pytest.mark.parametrize(
    "none",
    [[False, False, False], [True, True, True], [True]],
    ids=lambda none: "".join("n" if one else "c" for one in none),
)
def test_from_the_first_round_on(none):
    """Whatever the first answers are: fits end, and proposals are inside of the box."""
    g = torch.Generator().manual_seed(5)
    points = torch.rand(12, 3, dtype=DOUBLE, generator=g)
    answers = ChoiceOrNone(torch.arange(4 * len(none)).view(-1, 4), none)
    model = SkewGP(points, answers)
    fit_skew_gp(model)
    probability = float(model.predictive(points[:4], none=True).probs[-1])
    assert 0 < probability < 1
    if all(none):
        assert probability > 0.4
    if not any(none):
        assert probability < 0.2
    new = model.posterior(torch.tensor([[0.5, 0.5, 0.5]], dtype=DOUBLE))
    assert bool(new.mean.isfinite().all())


@pytest.mark.slow
def test_after_refusals_proposals_find_what_is_good():
    """Two questions whose options are all bad, and five proposed ones; "good" is a tenth of the box."""
    g = torch.Generator().manual_seed(0)
    best = 0.2 + 0.6 * torch.rand(3, dtype=DOUBLE, generator=g)
    bounds = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=DOUBLE)

    def utility(x):
        return 10 * torch.exp(-6 * (x - best).square().sum(-1)) - 5

    everywhere = torch.rand(1000, 3, dtype=DOUBLE, generator=g)
    assert 0.05 < (utility(everywhere) > 0).double().mean() < 0.25
    points = everywhere[utility(everywhere) < -2][:8]
    options, none = [[0, 1, 2, 3], [4, 5, 6, 7]], [True, True]
    for _ in range(5):
        model = SkewGP(points, ChoiceOrNone(options, none), approximation="ep")
        fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
        asked, _ = next_choice(model, bounds, num_options=4)
        noisy = utility(asked) + 0.5 * torch.randn(4, dtype=DOUBLE, generator=g)
        options.append((len(points) + noisy.argsort(descending=True)).tolist())
        none.append(bool(noisy.max() < 0.5 * torch.randn(1, dtype=DOUBLE, generator=g)))
        points = torch.cat([points, asked])
    model = SkewGP(points, ChoiceOrNone(options, none), approximation="ep")
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    assert float(utility(recommend(model, bounds)[0])) > 2


def test_counts_judges_votes_and_conditioning():
    twice = ChoiceOrNone([[1, 0], [2, 3]], [False, True], count=[2, 1], judge=[0, 1])
    assert twice.none.tolist() == [False, False, True]
    assert twice.duels.tolist() == [[1, 0], [1, 0]]
    assert twice.reversed().duels.tolist() == [[0, 1], [0, 1]]
    assert twice.reversed().reversed().turned is False
    model = SkewGP(X, twice)
    more = model.condition_on_observations(X[:2] + 0.01, ChoiceOrNone([[0, 1]], [True], judge=[0]))
    assert bool((more.posterior(X).variance > 0).all())
    assert SkewGP(X, twice, likelihood=VoteLikelihood()).likelihood.observation_types[0] is Vote
    probability = model.predictive(X[:2], judge=0, none=True).probs
    assert float(probability.sum()) == pytest.approx(1)
    both = SkewGP(X, [twice, Preference([[0, 1]])])
    assert isinstance(both.likelihood, PreferenceLikelihood)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChoiceOrNone([[0, 1]], [True, False]), "none must have one entry for each of the 1 rows; got 2"),
        (lambda: ChoiceOrNone([[0, 1]], [2]), "none must be 0 or 1"),
        (lambda: ChoiceOrNone([[-1, -1]], [True]), "at least one point in every row"),
        (lambda: ChoiceOrNone([[0, -1, 1]], [True]), "padded with -1 at the end"),
        (lambda: SkewGP(X, ChoiceOrNone([[0, 1]], [True])).predictive(X, none=1), "none must be True or False"),
        (lambda: PreferenceLikelihood(threshold=1.0, learn_threshold=True), "do not shift"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(InputDataError, match=message):
        make()
