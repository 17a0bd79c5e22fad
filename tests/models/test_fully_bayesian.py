"""The ensemble within BoTorch."""

import warnings

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling import SobolQMCNormalSampler
from tensors import tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import CompetingExplanationsWarning, FewAnswersWarning
from botorch_skewgp.fitting import fit_fully_bayesian_skew_gp, fit_skew_gp
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.truncated.draws import DrawSettings

PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [5, 6]])
SMALL = DrawSettings(num_draws=64, min_effective_size=1)


@pytest.fixture(scope="module")
def ensemble():
    generator = torch.Generator().manual_seed(2)
    train_X = torch.rand(7, 2, dtype=torch.float64, generator=generator)
    model = SkewGP(train_X, Preference(PAIRS))
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    return fit_fully_bayesian_skew_gp(mll, 4, draw_settings=SMALL, generator=generator)


def test_a_model_is_fitted_first():
    """An ensemble of a model is that of its fit, and leaves the model fitted."""
    X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
    models = [SkewGP(X, Numeric(torch.sin(7 * X.squeeze(-1)))) for _ in range(2)]
    found, wanted = (fit_fully_bayesian_skew_gp(each, 3) for each in (models[0], fit_skew_gp(models[1])))
    assert torch.equal(found.posterior(X[:2]).mean, wanted.posterior(X[:2]).mean)
    for ours, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(ours, theirs)


def assert_members_side_by_side(members, test_X):
    found = FullyBayesianSkewGP(members).posterior(test_X)
    for i, member in enumerate(members):
        own = member.posterior(test_X)
        assert torch.allclose(found.mean[i], own.mean, rtol=1e-7, atol=1e-8)
        assert torch.allclose(found.variance[i], own.variance, rtol=1e-7, atol=1e-8)
        assert torch.allclose(found.quantile(0.9)[i], own.quantile(0.9), rtol=1e-6, atol=1e-7)


def test_members_need_not_be_alike():
    """Roots by rows and by points, as noise is small; slips of one and of several modes; numbers of inducing points."""
    generator = torch.Generator().manual_seed(0)
    X, test_X = (torch.rand(8, 2, dtype=torch.float64, generator=generator) for _ in range(2))
    pairs = torch.stack([torch.randperm(8, generator=generator)[:2] for _ in range(24)])
    pairs = torch.where((X[pairs[:, 0], 0] > X[pairs[:, 1], 0]).unsqueeze(-1), pairs, pairs.flip(-1))
    by_noise = [SkewGP(X, Preference(pairs), draw_settings=SMALL) for _ in range(3)]
    for model, scale in zip(by_noise, (1.0, 1e5, 2e6), strict=True):
        model.covar_module.outputscale = scale
    assert len({model.posterior(test_X).mixture.root.shape for model in by_noise}) > 1
    assert_members_side_by_side(by_noise, test_X)
    cycles = Preference([[0, 1], [1, 2], [2, 0], [3, 1], [1, 3], [4, 5], [5, 4], [0, 1], [1, 0]])
    line = torch.rand(6, 1, dtype=torch.float64, generator=generator.manual_seed(0))
    slips = [SkewGP(line, cycles, PreferenceLikelihood(slip=0.2), approximation="ep") for _ in range(2)]
    slips[1].covar_module.outputscale = 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompetingExplanationsWarning)
        assert len({model.posterior(line).mixture.num_draws for model in slips}) > 1
        assert_members_side_by_side(slips, test_X[:, :1])
    sparse = [SkewGP(X, Preference(pairs), inducing_points=n, draw_settings=SMALL) for n in (2, 5)]
    assert_members_side_by_side([*sparse, by_noise[0]], test_X)


def test_every_draw_of_every_member_knows_the_values_that_it_was_given(ensemble, generator):
    X = torch.rand(2, 2, dtype=torch.float64, generator=generator)
    known, values = ensemble.condition_on_draws(X, samples_per_draw=2)
    at = known.posterior(X).component_means  # E x n x S
    torch.testing.assert_close(torch.cat(list(at), dim=-1), values, rtol=0, atol=1e-5)


def test_conditioning_and_transforms(ensemble, generator):
    points = torch.rand(2, 2, dtype=torch.float64, generator=generator)
    transform = ScalarizedPosteriorTransform(tensor(-2.0), offset=1.0)
    transformed = ensemble.posterior(points, posterior_transform=transform)
    assert torch.allclose(transformed.mean, 1 - 2 * ensemble.posterior(points).mean)
    larger = ensemble.condition_on_observations(points, Preference(torch.tensor([[0, 1]])))
    assert larger.batch_shape == ensemble.batch_shape
    assert larger.train_inputs[0].shape == (9, 2)
    better = larger.posterior(points).mean
    assert (better[:, 0] - better[:, 1] > ensemble.posterior(points).mean.diff(dim=1).neg().squeeze(1)).all()


NEW = torch.rand(2, 6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
SEVEN = torch.rand(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
MIXED = [Numeric([0.3, 1.2, -0.4], index=[0, 1, 2]), Binary([1, 0, 1, 1], index=[3, 4, 5, 6])]


def two_of(observations):
    """Models of different kernels and numbers of draws."""
    models = [SkewGP(SEVEN, observations, draw_settings=DrawSettings(n, min_effective_size=1)) for n in (64, 96)]
    models[1].covar_module.outputscale = 3.0
    return models


@pytest.mark.parametrize("observations", [Preference(PAIRS), MIXED], ids=["duels", "numbers and labels"])
def test_fantasies_are_those_of_the_members_and_a_knowledge_gradient_their_average(observations):
    members, at = two_of(observations), NEW[:, :3].unsqueeze(0).expand(4, -1, -1, -1)
    ensemble = FullyBayesianSkewGP(members)
    fantasies, values = [], []
    for model in (ensemble, *members):
        sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
        fantasies.append(model.fantasize(NEW[:, :2], sampler))
        values.append(qKnowledgeGradient(model, num_fantasies=4, sampler=sampler)(NEW))
    assert fantasies[0].batch_shape == (4, 2, 2)
    found = fantasies[0].posterior(at)
    for place, fantasy in enumerate(fantasies[1:]):
        own = fantasy.posterior(at)
        torch.testing.assert_close(found.mean[:, :, place], own.mean, rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(found.variance[:, :, place], own.variance, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(values[0], (values[1] + values[2]) / 2)
    assert found.rsample(torch.Size([3])).shape == (3, 4, 2, 2, 3, 1)


def test_predictions_of_several_kinds_are_averaged():
    members, X = two_of(MIXED), NEW[0]
    ensemble = FullyBayesianSkewGP(members)
    single, found = [member.predictive(X) for member in members], ensemble.predictive(X)
    torch.testing.assert_close(found[Binary].probs, sum(one[Binary].probs for one in single) / 2)
    numbers, (one, other) = found[Numeric], (predicted[Numeric] for predicted in single)
    torch.testing.assert_close(numbers.mean, (one.mean + other.mean) / 2)
    second_moments = [part.variance + part.mean.square() for part in (one, other)]
    torch.testing.assert_close(numbers.variance, sum(second_moments) / 2 - numbers.mean.square())
    levels = tensor(0.05, 0.5, 0.9)
    quantiles = numbers.quantile(levels)
    assert quantiles.shape == (3, 6, 1)
    reached = (one.cdf(quantiles) + other.cdf(quantiles)) / 2
    torch.testing.assert_close(reached, levels.view(3, 1, 1).expand(3, 6, 1))
    torch.testing.assert_close(numbers.median, quantiles[1])
    above, below = numbers.probability_above(0.5), numbers.cdf(0.5)
    torch.testing.assert_close(above + below, torch.ones_like(above))
    step = 1e-5
    slope = (numbers.cdf(0.5 + step) - numbers.cdf(0.5 - step)) / (2 * step)
    torch.testing.assert_close(numbers.density(0.5), slope, rtol=1e-5, atol=1e-8)
    torch.manual_seed(0)
    draws = numbers.rsample(torch.Size([40, 100]))
    assert ((draws.mean((0, 1)) - numbers.mean).abs() < 4 * (numbers.variance / 4000).sqrt()).all()
    torch.testing.assert_close(draws.var((0, 1)), numbers.variance, rtol=0.15, atol=0)
    assert type(FullyBayesianSkewGP(members[:1]).predictive(X)[Numeric]) is type(one)


def test_draws_repeated_unequally_keep_their_probabilities():
    posterior = two_of(Preference(PAIRS))[0].posterior(NEW[0])
    uneven, share = posterior.mixture.repeated(100), torch.full((36,), 1 / 64, dtype=torch.float64)
    torch.testing.assert_close(uneven.probabilities[:72].view(36, 2).sum(-1), share, rtol=1e-13, atol=0)


def test_answers_of_a_judge_are_averaged_over_members():
    X = torch.rand(5, 2, dtype=torch.double, generator=torch.Generator().manual_seed(5))
    panel = Preference([[0, 1], [1, 2], [3, 1], [4, 0]], judge=[0, 1, 0, 1])
    models = [SkewGP(X, panel, approximation="ep") for _ in range(2)]
    models[1].covar_module.outputscale = 3.0
    ensemble, Z = FullyBayesianSkewGP(models), X[:2]
    assert ensemble.judges == {0, 1}
    expected = sum(model.predictive(Z, judge=1).probs for model in models) / 2
    torch.testing.assert_close(ensemble.predictive(Z, judge=1).probs, expected)
    torch.testing.assert_close(ensemble.posterior(Z, judge=0).mean[1], models[1].posterior(Z, judge=0).mean)
    with pytest.raises(InputDataError, match="judge must be the number"):
        ensemble.for_judge(7)
    with pytest.raises(UnsupportedError, match="each of the members"):
        ensemble.for_judge([0, 1])
    with pytest.raises(InputDataError, match="at least one"):
        FullyBayesianSkewGP([])


@pytest.mark.parametrize(
    ("observed", "told"),
    [
        (Binary([1, 1, 1, 1, 1, 0]), True),
        (Binary([0, 1] * 3), False),  # no claim above .9
        (Binary([1, 1, 1, 1, 1, 0] * 5, index=[*range(6)] * 5), False),
        ([Binary([1, 1, 1, 1, 1, 0]), Numeric(torch.arange(6.0))], False),
        (Preference([[0, i] for i in range(1, 6)] * 3), False),
    ],
)
def test_a_sure_label_of_few_is_told_of_a_single_model(observed, told):
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    model = SkewGP(X, observed, draw_settings=SMALL)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predictive(X[:2])
        if told:
            FullyBayesianSkewGP([model, model]).predictive(X[:2])
    assert [(entry.category, entry.filename) for entry in caught] == [(FewAnswersWarning, __file__)] * told


def test_a_sure_label_of_a_judge_is_told_at_the_callers_line():
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    model = SkewGP(X, Binary([1] * 6, judge=[0, 0, 0, 1, 1, 1]), draw_settings=SMALL)
    with pytest.warns(FewAnswersWarning) as caught:
        model.predictive(X[:2], judge=1)
    assert [entry.filename for entry in caught] == [__file__]
