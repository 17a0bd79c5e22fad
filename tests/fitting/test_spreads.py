"""Spreads of judges' parameters: their evidence beside quadrature, what is found again, and what a fit leaves."""

import math

import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import LinearKernel
from gradients import evaluate

from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp, spreads, warm_start
from botorch_skewgp.fitting.spreads import deviations_of_judges, learn_spreads, log_density_of_spread
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OrdinalLikelihood, PreferenceLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Numeric, Ordinal, Preference, Tie

double = torch.double
CUTS = torch.tensor([-1.5, -0.5, 0.5, 1.5], dtype=double)
SPREAD_OF_SPREADS = math.log(2.0)  # as documented: two thirds are within a factor of 2 of the expected one


def graded(spread, num_judges=30, each=12, seed=0):
    """Grades of judges whose logarithms of stretches have a spread, and a model that learns them."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(each, 1, dtype=double, generator=generator)
    stretch = (spread * torch.randn(num_judges, dtype=double, generator=generator)).exp()
    judge = torch.arange(num_judges).repeat_interleave(each)
    point = torch.arange(each).repeat(num_judges)
    noisy = 4 * (X[point, 0] - 0.5) + torch.randn(len(point), dtype=double, generator=generator)
    grade = (noisy.unsqueeze(-1) > stretch[judge].unsqueeze(-1) * CUTS).sum(-1)
    likelihood = OrdinalLikelihood(5, stretch=torch.ones(num_judges), learn_stretch=True)
    answers = Ordinal(grade, 5, index=point, judge=judge)
    settings = {"judge_covar_module": LinearTastesKernel(0), "inducing_points": X, "approximation": "ep"}
    return SkewGP(X, answers, likelihood, covar_module=LinearKernel(), **settings)


def of(model):
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    ((prior, deviation),) = deviations_of_judges(model)
    return mll, prior, deviation


def test_log_density_of_a_spread_is_that_of_quadrature():
    """Of two judges' widths of ties, the other parameters fixed: an integral over two deviations on a grid."""
    X = torch.rand(8, 1, dtype=double, generator=torch.Generator().manual_seed(0))
    pairs = torch.combinations(torch.arange(8))
    ties = pairs[::3]
    wins = pairs[1::3]
    likelihood = PreferenceLikelihood(tie_width=torch.tensor([0.5, 0.5]), learn_tie_width=True, ties_allowed=True)
    answers = [
        Preference(wins, judge=torch.arange(len(wins)) % 2),
        Tie(ties, judge=(torch.arange(len(ties)) < 3).int()),
    ]
    model = SkewGP(X, answers, likelihood, approximation="ep")
    mll, prior, deviation = of(model)
    model.requires_grad_(False)
    deviation.requires_grad_(True)
    grid = torch.linspace(-1.8, 1.8, 9, dtype=double)
    found, exact = [], []
    for spread in (0.3, 0.6):
        prior.scale.fill_(spread)
        fit_gpytorch_mll(mll.train())
        before = deviation.detach().clone()
        found.append(log_density_of_spread(mll, prior, deviation))
        assert torch.equal(deviation, before)
        values = []
        with torch.no_grad():
            for point in torch.cartesian_prod(grid, grid):
                deviation.copy_(point)
                values.append(evaluate(mll))
            deviation.copy_(before)
        log_integral = torch.stack(values).logsumexp(0) + 2 * math.log(float(grid[1] - grid[0]))
        exact.append(float(log_integral) - 0.5 * (math.log(spread / 0.7) / SPREAD_OF_SPREADS) ** 2)
    assert found == pytest.approx(exact, abs=0.1)
    assert found[0] != pytest.approx(found[1], abs=0.3)


@pytest.fixture
def ten_are_many(monkeypatch):
    """Deviations of judges of ten answers and more are fitted, so that tests are quick."""
    monkeypatch.setattr(spreads, "FEW_ANSWERS", 10)


def test_few_directions_find_the_curvatures_of_many_judges(monkeypatch):
    model = graded(0.5, num_judges=20)
    mll, prior, deviation = of(model)
    fit_gpytorch_mll(mll)
    rough = log_density_of_spread(mll, prior, deviation)
    monkeypatch.setattr(spreads, "MAX_DIRECTIONS", 20)
    assert log_density_of_spread(mll, prior, deviation) == pytest.approx(rough, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "low", "high"), [(0.0, 0.0, 0.2), (0.7, 0.45, 0.9)])
def test_spread_is_found_again(spread, low, high):
    model = graded(spread)
    fit_skew_gp(model)
    ((prior, deviation),) = deviations_of_judges(model)
    assert low < float(prior.scale) < high
    assert float(deviation.detach().std()) < high


@pytest.mark.slow
@pytest.mark.usefixtures("ten_are_many")
def test_best_spread_is_kept_with_its_fit():
    """Its log density is at least that of all others; the objective has the state that was fitted with it."""
    model = graded(0.5, num_judges=6)
    mll, prior, deviation = of(model)
    fit_gpytorch_mll(mll)
    tried = []

    def fit():
        fit_gpytorch_mll(mll)
        tried.append((log_density_of_spread(mll, prior, deviation), float(prior.scale), deviation.detach().clone()))

    learn_spreads(mll, fit)
    best, spread, at = max(tried, key=lambda one: one[0])
    assert len(tried) > 3
    assert float(prior.scale) == pytest.approx(spread)
    torch.testing.assert_close(deviation.detach(), at, atol=0.02, rtol=0)
    assert log_density_of_spread(mll, prior, deviation) >= best - 1e-6


@pytest.mark.usefixtures("ten_are_many")
def test_a_spread_that_cannot_be_fitted_ends_the_search():
    model = graded(0.5, num_judges=3)
    mll, prior, deviation = of(model)
    fit_gpytorch_mll(mll)
    before = deviation.detach().clone()

    def fit():
        raise ModelFittingError("All attempts failed.")

    learn_spreads(mll, fit)
    assert torch.equal(deviation, before)
    assert float(prior.scale) == pytest.approx(0.35)


def test_fits_of_judges_alone_change():
    """Nothing is learned of deviations that are given, and there are none without judges."""
    given = OrdinalLikelihood(3, stretch=torch.tensor([1.0, 2.0]))
    answers = Ordinal([0, 1, 2, 1], 3, judge=[0, 1, 1, 0])
    model = SkewGP(torch.rand(4, 1, dtype=double), answers, given, approximation="ep")
    assert not deviations_of_judges(model)
    before = model.likelihood.stretch.clone()
    fit_skew_gp(model)
    assert torch.equal(model.likelihood.stretch, before)


def test_later_judges_and_warm_starts_take_the_spread():
    pairs = Preference([[0, 1], [1, 2], [2, 3]], judge=[0, 1, 0])
    X = torch.rand(4, 1, dtype=double)
    model = SkewGP(X, pairs, learn_judge_reliability=True)
    model.judge_reliability.logarithm_prior.scale.fill_(0.3)
    more = model.condition_on_observations(X[:2], Preference([[0, 1]], judge=2))
    assert float(more.judge_reliability.logarithm_prior.scale) == pytest.approx(0.3)
    started = SkewGP(X, pairs, learn_judge_reliability=True)
    warm_start(started, model)
    assert float(started.judge_reliability.logarithm_prior.scale) == pytest.approx(0.3)
    fixed = SkewGP(X, pairs, PreferenceLikelihood(tie_width=torch.ones(2), ties_allowed=True))
    widths = PreferenceLikelihood(tie_width=torch.ones(2), ties_allowed=True, learn_tie_width=True)
    learning = SkewGP(X, pairs, widths)
    warm_start(learning, fixed)
    assert float(deviations_of_judges(learning)[0][0].scale) == pytest.approx(0.7)


def test_spreads_beside_numbers():
    """A part of a likelihood of several kinds."""
    stretched = OrdinalLikelihood(3, stretch=torch.ones(2), learn_stretch=True)
    answers = [Numeric([0.5, -0.5, 0.0, 1.0]), Ordinal([0, 1, 2, 1], 3, judge=[0, 1, 1, 0])]
    X = torch.linspace(0, 1, 4, dtype=double).unsqueeze(-1)
    model = SkewGP(X, answers, MixedLikelihood(NumericLikelihood(), stretched), approximation="ep")
    fit_skew_gp(model)
    ((prior, deviation),) = deviations_of_judges(model)
    assert 0.08 < float(prior.scale) < 0.8
    assert bool(deviation.isfinite().all())


def test_few_answers_integrate_deviations_and_average_over_them():
    """Means and variances of two judges' stretches, and what is said of grades, are those of quadrature on a grid."""
    X = torch.linspace(0, 1, 8, dtype=double).unsqueeze(-1)
    grades = Ordinal([0, 4, 1, 3, 2, 2, 2, 1, 3], 5, index=[0, 1, 6, 7, 2, 3, 4, 5, 5], judge=[0] * 4 + [1] * 5)
    likelihood = OrdinalLikelihood(5, stretch=torch.ones(2), learn_stretch=True)
    model = SkewGP(X, grades, likelihood, judge_covar_module=LinearTastesKernel(0), approximation="ep")
    fit_skew_gp(model)
    mll, prior, deviation = of(model)
    score = learn_spreads(mll, lambda: None)
    means, variances, spread = deviation.detach().clone(), prior.judge_variance.clone(), float(prior.scale)
    assert means[0] < 0 < means[1]
    assert bool((variances < spread**2).all())
    said = [model.predictive(X[2:3], judge=j).probs.flatten() for j in (0, 1)]
    grid = 3.2 * spread * torch.linspace(-1, 1, 7, dtype=double)
    pairs = torch.cartesian_prod(grid, grid)
    values, probabilities = [], []
    with torch.no_grad():
        for point in pairs:
            deviation.copy_(point)
            values.append(evaluate(mll.train()))
            mll.eval()
            prior.judge_variance.zero_()
            probabilities.append(torch.stack([model.predictive(X[2:3], judge=j).probs.flatten() for j in (0, 1)]))
    weights = torch.stack(values).softmax(0)
    exact = weights @ pairs
    spreads_of = (weights @ (pairs - exact).square()).sqrt()
    integral = torch.stack(values).logsumexp(0) + 2 * (grid[1] - grid[0]).log()
    assert score == pytest.approx(float(integral + prior.log_density_of_spread()), abs=0.1)
    assert torch.allclose(means, exact, atol=0.2 * spread)
    assert torch.allclose(variances.sqrt(), spreads_of, rtol=0.2)
    assert torch.allclose(torch.stack(said), (weights[:, None, None] * torch.stack(probabilities)).sum(0), atol=0.02)
    alone = probabilities[len(pairs) // 2]
    assert not torch.allclose(torch.stack(said), alone, atol=0.02)


@pytest.mark.slow
@pytest.mark.usefixtures("ten_are_many")
def test_many_answers_keep_what_is_left_of_variances():
    model = graded(0.5, num_judges=3, each=12)
    _, prior, _ = of(model)
    assert not spreads.has_few_answers(model)
    fit_skew_gp(model)
    left = prior.judge_variance
    assert bool((left > 0).all())
    assert bool((left < prior.scale.square()).all())
    averaged, prior.judge_variance[0] = model.predictive(model.datapoints[:1], judge=0).probs, 0.0
    assert not torch.allclose(averaged, model.predictive(model.datapoints[:1], judge=0).probs, atol=1e-6)
