"""Closed-form acquisition functions against Monte Carlo, against BoTorch's in the Gaussian case, and in the tails."""

import math

import pytest
import torch
from acquisition_checks import DOUBLE, PAIRS, POINTS, make_model, points, samples
from botorch.acquisition.analytic import LogExpectedImprovement, UpperConfidenceBound, _log_ei_helper
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
from botorch_skewgp.acquisition.components import components_of
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


ACQUISITIONS = {
    "log expected improvement": lambda model: SkewLogExpectedImprovement(model, best_f=1.5),
    "log probability of improvement": lambda model: SkewLogProbabilityOfImprovement(model, best_f=1.5),
    "minimised": lambda model: SkewLogExpectedImprovement(model, best_f=-1.5, maximize=False),
    "upper bound": lambda model: QuantileBound(model, probability=0.9),
    "lower bound": lambda model: QuantileBound(model, probability=0.9, maximize=False),
    "log noisy expected improvement": lambda model: SkewLogNoisyExpectedImprovement(model, POINTS),
    "log probability of validity": LogProbabilityOfValidity,
}
every = pytest.mark.parametrize("name", ACQUISITIONS)


@pytest.fixture
def acquisition(name, model, binary):
    return ACQUISITIONS[name](binary if name == "log probability of validity" else model)


# What all have in common


@every
def test_one_point_at_a_time(acquisition):
    with pytest.raises(AssertionError, match="q=1"):
        acquisition(torch.rand(3, 2, 2, dtype=DOUBLE))


@every
def test_moves_with_its_model(name, generator):
    labels = Binary(torch.tensor([1, 0, 1, 1, 0, 1, 1]))
    model = make_model(labels if name == "log probability of validity" else None, num_draws=64)
    acquisition = ACQUISITIONS[name](model).to(torch.float32)
    values = acquisition(points(generator, 2).float())
    assert values.dtype == torch.float32
    assert values.isfinite().all()


@pytest.mark.parametrize("name", [name for name in ACQUISITIONS if "improvement" in name and "noisy" not in name])
def test_gaussian_models_are_refused(name):
    gaussian = SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True))
    with pytest.raises(UnsupportedError, match="normal posteriors BoTorch's"):
        ACQUISITIONS[name](gaussian)(POINTS[:1])


def test_quantiles_are_all_that_the_upper_bound_asks_for(generator):
    gaussian, X = SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True)), points(generator, 3)
    bound = QuantileBound(gaussian, probability=0.975)(X)
    theirs = UpperConfidenceBound(gaussian, beta=float(torch.special.ndtri(torch.tensor(0.975, dtype=DOUBLE))) ** 2)(X)
    torch.testing.assert_close(bound, theirs)


def test_many_values_of_one_point_need_a_transform(generator):
    transform = InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.1]], dtype=DOUBLE))
    model = make_model(num_draws=64, input_transform=transform)
    X = points(generator, 3)
    with pytest.raises(UnsupportedError, match="one value"):
        SkewLogExpectedImprovement(model, 1.0)(X)
    mean = ExpectationPosteriorTransform(n_w=2)
    value = SkewLogExpectedImprovement(model, 1.0, posterior_transform=mean)(X).exp()
    draws = samples(model.posterior(X), 100_000, generator).mean(-1)
    improvement = (draws - 1.0).clamp(min=0)
    assert ((value - improvement.mean(0)).abs() < 4.5 * improvement.std(0) / math.sqrt(100_000)).all()


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
        assert ((acquisition(X).exp() - draws.mean(0)).abs() < 4.5 * draws.std(0) / math.sqrt(N)).all()


def test_best_value_per_batch(model, generator):
    X, best_f = points(generator, 3), torch.tensor([0.0, 1.0, 2.0], dtype=DOUBLE)
    values = SkewLogExpectedImprovement(model, best_f)(X)
    for i in range(3):
        torch.testing.assert_close(SkewLogExpectedImprovement(model, best_f[i])(X[i]), values[i : i + 1])


def test_equals_botorch_for_a_normal_posterior(generator):
    model = make_model(Numeric(POINTS.sum(-1)), outcome_transform=Standardize(m=1))
    X = points(generator, 5)
    torch.testing.assert_close(SkewLogExpectedImprovement(model, 1.5)(X), LogExpectedImprovement(model, 1.5)(X))
    bound = QuantileBound(model, probability=float(torch.special.ndtr(torch.tensor(math.sqrt(3.0)))))
    torch.testing.assert_close(bound(X), UpperConfidenceBound(model, beta=3.0)(X), rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_moment_matching_errs_where_the_mixture_does_not(generator):
    """The winner of many duels: its value's distribution leans to the right, and improvement lives in that tail.

    The truth is by rejection: draws of the prior and the duels' noise are kept where every duel ends as it did.
    """
    X = torch.linspace(0, 1, 7, dtype=DOUBLE).unsqueeze(-1)
    pairs = torch.tensor([[0, i] for i in range(1, 7)])
    model = make_model(Preference(pairs), X=X, likelihood=PreferenceLikelihood(noise=0.01), num_draws=32768)
    model.covar_module.base_kernel.lengthscale = 0.4 / 6
    winner = X[:1].unsqueeze(0)
    posterior = model.posterior(winner)
    components = components_of(posterior, "the test")
    mean, sd = float(posterior.mean), float(posterior.variance.sqrt())
    root = torch.linalg.cholesky(model.covar_module(X).to_dense() + 1e-9 * torch.eye(7))
    prior = torch.randn(1_000_000, 7, generator=generator, dtype=DOUBLE) @ root.mT
    noise = 0.1 * 2**0.5 * torch.randn(1_000_000, 6, generator=generator, dtype=DOUBLE)
    draws = prior[(prior[:, :1] - prior[:, 1:] + noise > 0).all(-1), 0]
    assert abs(draws.mean() - mean) < 0.05 * sd

    def compare(best_f, maximize):
        improvement = ((draws - best_f) if maximize else (best_f - draws)).clamp(min=0)
        truth, error = improvement.mean(), improvement.std() / math.sqrt(draws.shape[0])
        gain = (components.mean - best_f) * (1 if maximize else -1)
        terms = components.standard_deviation * _log_ei_helper(gain / components.standard_deviation).exp()
        error = math.hypot(error, terms.std() / math.sqrt(terms.numel()))  # the model's own draws
        ours = SkewLogExpectedImprovement(model, best_f, maximize=maximize)(winner).exp()
        theirs = LogExpectedImprovement(model, best_f, maximize=maximize)(winner).exp()
        assert abs(ours - truth) < 4.5 * error
        return truth, error, theirs

    truth, error, theirs = compare(mean + 3 * sd, True)
    assert theirs < truth / 3
    assert theirs < truth - 5 * error
    truth, error, theirs = compare(mean - 2 * sd, False)  # a lighter tail than a normal distribution's
    assert theirs > 1.5 * truth
    assert theirs > truth + 5 * error


@pytest.mark.parametrize("distance", [1e2, 1e6])
@pytest.mark.parametrize("make", [SkewLogExpectedImprovement, SkewLogProbabilityOfImprovement])
def test_finite_with_gradients_where_improvement_is_hopeless(model, make, distance, generator):
    for best_f, maximize in ((distance, True), (-distance, False)):
        X = points(generator, 6).requires_grad_()
        values = make(model, best_f, maximize=maximize)(X)
        (gradient,) = torch.autograd.grad(values.sum(), X)
        assert (values < -500).all()
        assert values.isfinite().all()
        assert gradient.isfinite().all()
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


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_probability_is_checked(model, probability):
    with pytest.raises(InputDataError, match="strictly between"):
        QuantileBound(model, probability)


# Noisy expected improvement


def test_noisy_improvement_by_monte_carlo(model, generator):
    X, N = points(generator, 4), 200_000
    value = SkewLogNoisyExpectedImprovement(model, POINTS, samples_per_draw=256)(X).exp()
    joint = samples(model.posterior(torch.cat([X, POINTS.expand(4, 7, 2)], dim=-2)), N, generator)
    improvement = (joint[..., 0] - joint[..., 1:].amax(-1)).clamp(min=0)
    error = improvement.std(0) / math.sqrt(N)
    assert ((value - improvement.mean(0)).abs() < 4.5 * error + 0.01 * value).all()
    value = SkewLogNoisyExpectedImprovement(model, POINTS, samples_per_draw=256, maximize=False)(X).exp()
    improvement = (joint[..., 1:].amin(-1) - joint[..., 0]).clamp(min=0)
    error = improvement.std(0) / math.sqrt(N)
    assert ((value - improvement.mean(0)).abs() < 4.5 * error + 0.01 * value).all()


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


def test_baseline_is_checked(model):
    for X in (torch.zeros(0, 2), torch.zeros(2), torch.zeros(1, 3, 2)):
        with pytest.raises(BotorchTensorDimensionError, match="n x d"):
            SkewLogNoisyExpectedImprovement(model, X)


def test_noisy_improvement_at_the_baseline_is_finite(model):
    X = POINTS.unsqueeze(-2).clone().requires_grad_()
    values = SkewLogNoisyExpectedImprovement(model, torch.cat([POINTS, POINTS]))(X)  # duplicates too
    (gradient,) = torch.autograd.grad(values.sum(), X)
    assert values.isfinite().all()
    assert gradient.isfinite().all()


def test_conditioning_on_own_draws_changes_nothing(model, generator):
    X = points(generator, 4)
    refined, values = model.condition_on_draws(POINTS, samples_per_draw=64)
    assert values.shape == (7, 64 * 256)
    old, new = model.posterior(X), refined.posterior(X)
    sd = old.variance.sqrt()
    assert ((new.mean - old.mean).abs() < 0.01 * sd).all()
    torch.testing.assert_close(new.variance, old.variance, rtol=0.02, atol=0)
    torch.testing.assert_close(new.skewness, old.skewness, rtol=0, atol=0.05)
    # each component knows the values that it was given
    at = refined.posterior(POINTS)
    torch.testing.assert_close(at.component_means, values, rtol=0, atol=1e-3)
    fantasies = model.condition_on_observations(torch.cat([X, X + 0.1], -2), torch.tensor([[0, 1]]).expand(4, 1, 2))
    with pytest.raises(UnsupportedError, match="fantasies"):
        fantasies.condition_on_draws(POINTS)


# Validity


def test_validity_is_the_predictive_probability(binary, generator):
    X = points(generator, 5)
    expected = binary.predictive(X).probs.flatten()
    torch.testing.assert_close(LogProbabilityOfValidity(binary)(X).exp(), expected)


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
    assert ((value - valid.mean(0)).abs() < 4.5 * valid.std(0) / math.sqrt(N)).all()


class Cold(Observation):
    """Whether a point is cold: `-2 (f + v) > 1`; where low values are good, whether it is not."""

    turns_round = True


class ColdLikelihood(RowLikelihood):
    observation_types = (Cold,)

    def reading(self, kind, like, scale=None, num_points=None):
        return Reading(like.new_tensor([[-2.0]]), like.new_tensor([[1.0]]), like.new_tensor([0.3]))


@pytest.mark.parametrize("minimize", [False, True])
def test_validity_of_a_kind_of_the_users(minimize, generator):
    of_points = make_model(
        Numeric((POINTS[:, 0] - 0.4) / 0.3), likelihood=MixedLikelihood(NumericLikelihood(), ColdLikelihood())
    )
    of_points.minimize = minimize
    X = points(generator, 5)
    cold = of_points.latent_posterior(X).add_noise(torch.tensor([0.3])).cdf(torch.tensor(-0.5)).flatten()
    torch.testing.assert_close(LogProbabilityOfValidity(of_points)(X).exp(), 1 - cold if minimize else cold)
    torch.testing.assert_close(of_points.likelihood.for_kind(Cold)(of_points.latent_posterior(X)).probs.flatten(), cold)


def test_validity_counts_before_labels(generator):
    said, worked = Binary(torch.tensor([1, 0, 1, 1, 0, 1, 1])), Validity(torch.tensor([1, 1, 0, 1]))
    likelihood = MixedLikelihood(ProbitLikelihood(), ValidityLikelihood(threshold=1.0, noise=0.1))
    model, X = make_model([said, worked], likelihood=likelihood), points(generator, 5)
    expected = model.likelihood.for_kind(Validity)(model.latent_posterior(X)).probs.flatten()
    torch.testing.assert_close(LogProbabilityOfValidity(model)(X).exp(), expected)


def test_validity_of_two_grades(generator):
    model = make_model(Ordinal([0, 1, 1, 0], 2), likelihood=OrdinalLikelihood(2))
    X = points(generator, 5)
    probability = model.predictive(X).probs
    torch.testing.assert_close(LogProbabilityOfValidity(model)(X).exp(), probability.flatten())


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick
def test_validity_of_fantasies_with_different_outcomes(binary, generator):
    """Draws of every fantasy have weights of their own."""
    fantasies = binary.fantasize(points(generator, 3), SobolQMCNormalSampler(torch.Size([8]), seed=0))
    X = torch.rand(8, 3, 4, 2, generator=generator, dtype=DOUBLE)
    assert fantasies.latent_posterior(X).log_probabilities.shape[:-1] == (8, 3)
    expected = fantasies.predictive(X).probs.squeeze(-1)
    torch.testing.assert_close(log_probability_of_validity(fantasies, X).exp(), expected)
    odds = log_probability_of_validity(fantasies, X, log_odds=True)
    torch.testing.assert_close(odds, expected.logit())


def test_hopeless_validity_has_gradients(binary, generator, monkeypatch):
    acquisition = LogProbabilityOfValidity(binary)
    far = PsychometricFunction(Reading.at_point(torch.tensor([1e3], dtype=DOUBLE), torch.ones(1, dtype=DOUBLE)), 1)
    monkeypatch.setattr("botorch_skewgp.acquisition.validity.validity_functions", lambda model: [(binary, far)])
    X = points(generator, 5).requires_grad_()
    values = acquisition(X)
    (gradient,) = torch.autograd.grad(values.sum(), X)
    assert (values < -1e4).all()
    assert values.isfinite().all()
    assert gradient.isfinite().all()
    assert (gradient.abs().amax((-1, -2)) > 1).all()


def test_validity_needs_a_likelihood_for_it(model):
    with pytest.raises(UnsupportedError, match="PreferenceLikelihood"):
        LogProbabilityOfValidity(model)
    with pytest.raises(UnsupportedError, match="SingleTaskGP"):
        LogProbabilityOfValidity(SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True)))


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
