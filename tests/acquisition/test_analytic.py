"""Closed-form acquisition functions against Monte Carlo, against BoTorch's in the Gaussian case, and in the tails."""

import math

import pytest
import torch
from acquisition_checks import DOUBLE, PAIRS, POINTS, assert_average, finite_gradient, make_model, points, samples
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound
from botorch.acquisition.objective import ExpectationPosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation, Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.normal import SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import (
    LogProbabilityOfValidity,
    QuantileBound,
    SkewLogExpectedImprovement,
    SkewLogNoisyExpectedImprovement,
    SkewLogProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.safety import log_probability_of_safety
from botorch_skewgp.acquisition.validity import log_probability_of_validity
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.observations import Binary, Numeric, Observation, Ordinal, Preference, Validity
from botorch_skewgp.rows import Reading
from botorch_skewgp.thresholds import PsychometricFunction


@pytest.fixture(scope="module")
def model() -> SkewGP:
    return make_model()


@pytest.fixture(scope="module")
def binary() -> SkewGP:
    return make_model(Binary(torch.tensor([1, 0, 1, 1, 0, 1, 1])))


def test_many_values_of_one_point_need_a_transform(generator):
    transform = InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.1]], dtype=DOUBLE))
    model = make_model(num_draws=64, input_transform=transform)
    X = points(generator, 3)
    with pytest.raises(UnsupportedError, match="one value"):
        SkewLogExpectedImprovement(model, 1.0)(X)
    mean = ExpectationPosteriorTransform(n_w=2)
    value = SkewLogExpectedImprovement(model, 1.0, posterior_transform=mean)(X).exp()
    draws = samples(model.posterior(X), 100_000, generator).mean(-1)
    assert_average(value, (draws - 1.0).clamp(min=0))


# Improvement


@pytest.mark.parametrize("best_f", [0.0, 2.5])
def test_improvement_by_monte_carlo(model, best_f, generator):
    X, N = points(generator, 4), 200_000
    gain = samples(model.posterior(X), N, generator).squeeze(-1) - best_f
    for acquisition, draws in [
        (SkewLogExpectedImprovement(model, best_f), gain.clamp(min=0)),
        (SkewLogExpectedImprovement(model, best_f, maximize=False), (-gain).clamp(min=0)),
        (SkewLogProbabilityOfImprovement(model, best_f), (gain > 0).double()),
        (SkewLogProbabilityOfImprovement(model, best_f, maximize=False), (gain < 0).double()),
    ]:
        assert acquisition._log
        assert_average(acquisition(X).exp(), draws)


def test_equals_botorch_for_a_normal_posterior(generator):
    model = make_model(Numeric(POINTS.sum(-1)), outcome_transform=Standardize(m=1))
    X = points(generator, 5)
    torch.testing.assert_close(SkewLogExpectedImprovement(model, 1.5)(X), LogExpectedImprovement(model, 1.5)(X))
    probability = float(torch.special.ndtr(torch.tensor(math.sqrt(3.0))))
    for of in (model, SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True))):  # quantiles are all that is asked for
        theirs = UpperConfidenceBound(of, beta=3.0)(X)
        torch.testing.assert_close(QuantileBound(of, probability)(X), theirs, rtol=1e-5, atol=1e-6)
    best_f = torch.arange(5.0, dtype=DOUBLE)  # one for each of the batch
    theirs = torch.cat([LogExpectedImprovement(model, best)(x) for best, x in zip(best_f, X, strict=True)])
    torch.testing.assert_close(SkewLogExpectedImprovement(model, best_f)(X), theirs)


@pytest.mark.parametrize("distance", [1e2, 1e6])
@pytest.mark.parametrize("make", [SkewLogExpectedImprovement, SkewLogProbabilityOfImprovement])
def test_finite_gradient_where_improvement_is_hopeless(model, make, distance, generator):
    for best_f, maximize in ((distance, True), (-distance, False)):
        values, gradient = finite_gradient(make(model, best_f, maximize=maximize), points(generator, 6))
        assert (values < -500).all()
        assert (gradient.abs().amax((-1, -2)) > 1).all()


@pytest.mark.parametrize("probability", [0.01, 0.5, 0.975])
def test_bound_is_a_quantile(model, probability, generator):
    X = points(generator, 4)
    posterior = model.posterior(X)
    bound = QuantileBound(model, probability)(X)
    below = posterior.cdf(bound.reshape(4, 1, 1)).flatten()
    torch.testing.assert_close(below, torch.full_like(below, probability))
    bound = -QuantileBound(model, probability, maximize=False)(X)
    above = posterior.probability_above(bound.reshape(4, 1, 1)).flatten()
    torch.testing.assert_close(above, torch.full_like(above, probability))


# Noisy expected improvement


def test_noisy_improvement_by_monte_carlo(model, generator):
    X, N = points(generator, 4), 200_000
    joint = samples(model.posterior(torch.cat([X, POINTS.expand(4, 7, 2)], dim=-2)), N, generator)
    rise, fall = joint[..., 0] - joint[..., 1:].amax(-1), joint[..., 1:].amin(-1) - joint[..., 0]
    for improvement, maximize in ((rise.clamp(min=0), True), (fall.clamp(min=0), False)):
        acquisition = SkewLogNoisyExpectedImprovement(model, POINTS, samples_per_draw=256, maximize=maximize)
        value = acquisition(X).exp()
        assert_average(value, improvement, 0.01 * value)


def test_noisy_improvement_in_units_of_the_outcome(generator):
    """Under an affine map of the outcome the improvement scales, whichever way the map comes about."""
    values = 5 + 10 * torch.randn(7, generator=generator, dtype=DOUBLE)
    standard = (values - values.mean()) / values.std()
    X = points(generator, 3)

    def improvement(y, **options):
        likelihood = MixedLikelihood(PreferenceLikelihood(), NumericLikelihood())
        model = make_model([Preference(PAIRS), Numeric(y)], 64, likelihood=likelihood, **options)
        model.likelihood.likelihoods[1].noise = 0.3
        return model

    plain = SkewLogNoisyExpectedImprovement(improvement(standard), POINTS)(X).exp()
    scaled = improvement(values, outcome_transform=Standardize(m=1))
    torch.testing.assert_close(
        SkewLogNoisyExpectedImprovement(scaled, POINTS)(X).exp(), values.std() * plain, rtol=1e-5, atol=1e-8
    )
    back = ScalarizedPosteriorTransform(-1 / values.std().reshape(1))
    down = SkewLogNoisyExpectedImprovement(scaled, POINTS, posterior_transform=back, maximize=False)
    torch.testing.assert_close(down(X).exp(), plain, rtol=1e-5, atol=1e-8)


def test_pending_points_join_the_baseline(model, generator):
    X = points(generator, 3)
    acquisition = SkewLogNoisyExpectedImprovement(model, POINTS[:4])
    before = acquisition(X)
    acquisition.set_X_pending(POINTS[4:])
    assert torch.equal(acquisition(X), SkewLogNoisyExpectedImprovement(model, POINTS)(X))
    acquisition.set_X_pending(None)
    assert torch.equal(acquisition(X), before)


def test_noisy_improvement_at_the_baseline_is_finite(model):
    twice = torch.cat([POINTS, POINTS])
    finite_gradient(SkewLogNoisyExpectedImprovement(model, twice), POINTS.unsqueeze(-2))


PAIR = torch.tensor([0, 1])
GAUSSIAN = SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True))


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        *[
            (lambda model, make=make: make(GAUSSIAN, 0.0)(POINTS[:1]), UnsupportedError, "normal posteriors BoTorch's")
            for make in (SkewLogExpectedImprovement, SkewLogProbabilityOfImprovement)
        ],
        *[(lambda model, p=p: QuantileBound(model, p), InputDataError, "strictly between") for p in (0.0, 1.0)],
        *[
            (lambda model, X=X: SkewLogNoisyExpectedImprovement(model, X), BotorchTensorDimensionError, "n x d")
            for X in (torch.zeros(0, 2), torch.zeros(2), torch.zeros(1, 3, 2))
        ],
        (LogProbabilityOfValidity, UnsupportedError, "PreferenceLikelihood"),
        (
            lambda model: model.condition_on_observations(
                POINTS[:2].expand(4, 2, 2), torch.zeros(4, 1, 2).long() + PAIR
            ).condition_on_draws(POINTS),
            UnsupportedError,
            "fantasies",
        ),
        (lambda model: LogProbabilityOfValidity(GAUSSIAN), UnsupportedError, "SingleTaskGP"),
    ],
)
def test_what_is_refused(model, act, error, message):
    with pytest.raises(error, match=message):
        act(model)


# Validity


SAID, WORKED = Binary(torch.tensor([1, 0, 1, 1, 0, 1, 1])), Validity(torch.tensor([1, 1, 0, 1]))
BOTH = MixedLikelihood(ProbitLikelihood(), ValidityLikelihood(threshold=1.0, noise=0.1))


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (Binary, lambda: make_model(SAID)),
        (Validity, lambda: make_model([SAID, WORKED], likelihood=BOTH)),  # before labels
        (Ordinal, lambda: make_model(Ordinal([0, 1, 1, 0], 2), likelihood=OrdinalLikelihood(2))),
    ],
)
def test_validity_is_the_predictive_probability(kind, make, generator):
    model, X = make(), points(generator, 5)
    expected = model.likelihood.for_kind(kind)(model.latent_posterior(X)).probs.flatten()
    torch.testing.assert_close(LogProbabilityOfValidity(model)(X).exp(), expected)


@pytest.mark.parametrize("outcome_transform", [None, Standardize(m=1)])
def test_validity_beside_numbers(outcome_transform, generator):
    values = torch.tensor([0.0, 1.0, -2.0, 2.0], dtype=DOUBLE)
    model = make_model(
        [Numeric(values), Validity(torch.tensor([1, 1, 0, 1, 0, 0, 1]))],
        likelihood=MixedLikelihood(NumericLikelihood(), ValidityLikelihood(threshold=-1.0, noise=0.1)),
        outcome_transform=outcome_transform,
        input_transform=Normalize(2),
    )
    X, N = points(generator, 5), 200_000
    value = LogProbabilityOfValidity(model)(X).exp()
    scale = 1.0 if outcome_transform is None else values.std()
    f = samples(model.posterior(X), N, generator).squeeze(-1)
    valid = torch.special.ndtr((f + 1.0) / (scale * math.sqrt(0.1)))
    assert_average(value, valid)


class Cold(Observation):
    """Whether a point is cold: `-2 (f + v) > 1`."""


class ColdLikelihood(RowLikelihood):
    observation_types = (Cold,)

    def reading(self, kind, like, scale=None, num_points=None):
        return Reading(like.new_tensor([[-2.0]]), like.new_tensor([[1.0]]), like.new_tensor([0.3]))


def test_validity_of_a_kind_of_the_users(generator):
    of_points = make_model(
        Numeric((POINTS[:, 0] - 0.4) / 0.3), likelihood=MixedLikelihood(NumericLikelihood(), ColdLikelihood())
    )
    X = points(generator, 5)
    cold = of_points.latent_posterior(X).add_noise(torch.tensor([0.3])).cdf(torch.tensor(-0.5)).flatten()
    torch.testing.assert_close(LogProbabilityOfValidity(of_points)(X).exp(), cold)
    torch.testing.assert_close(of_points.likelihood.for_kind(Cold)(of_points.latent_posterior(X)).probs.flatten(), cold)


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick
def test_validity_of_fantasies_with_different_outcomes(binary, generator):
    """Draws of every fantasy have weights of their own."""
    fantasies = binary.fantasize(points(generator, 3), SobolQMCNormalSampler(torch.Size([8]), seed=0))
    X = torch.rand(8, 3, 4, 2, generator=generator, dtype=DOUBLE)
    assert fantasies.latent_posterior(X).log_probabilities.shape[:-1] == (8, 3)
    expected = fantasies.predictive(X).probs.squeeze(-1)
    torch.testing.assert_close(log_probability_of_validity(fantasies, X).exp(), expected)
    odds, safe = (log_probability_of_safety(fantasies, X, 0.6, log_odds) for log_odds in (True, False))
    torch.testing.assert_close(odds, safe.exp().logit())


def test_hopeless_validity_has_gradients(binary, generator, monkeypatch):
    acquisition = LogProbabilityOfValidity(binary)
    far = PsychometricFunction(Reading.at_point(torch.tensor([1e3], dtype=DOUBLE), torch.ones(1, dtype=DOUBLE)))
    monkeypatch.setattr("botorch_skewgp.acquisition.validity.validity_functions", lambda model: [(binary, far)])
    values, gradient = finite_gradient(acquisition, points(generator, 5))
    assert (values < -1e4).all()
    assert (gradient.abs().amax((-1, -2)) > 1).all()


def test_the_slope_of_an_all_but_impossible_improvement():
    """Of the log probability, whose derivative is that of minus half the square of the standardised gap."""
    model = SkewGP(POINTS, Numeric(POINTS[:, 0]), outcome_transform=Standardize(m=1))
    X = POINTS[:1].clone().requires_grad_()
    acquisition = SkewLogProbabilityOfImprovement(model, best_f=1e9)
    (gradient,) = torch.autograd.grad(acquisition(X).sum(), X)
    posterior = model.posterior(X)
    gap = (1e9 - posterior.mean) / posterior.variance.sqrt()
    (expected,) = torch.autograd.grad(-0.5 * gap.square().sum(), X)
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=0)
