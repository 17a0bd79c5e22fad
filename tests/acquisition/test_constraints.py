"""Validity as a constraint: soft on samples, and as a weight."""

import math
from functools import partial

import pytest
import torch
from acquisition_checks import BOUNDS, DOUBLE, assert_average, finite_gradient, points, samples
from botorch.acquisition.analytic import LogExpectedImprovement, PosteriorMean, ProbabilityOfImprovement
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models import GenericDeterministicModel, ModelList, SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling.list_sampler import ListSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.objective import compute_smoothed_feasibility_indicator
from gpytorch.means import ConstantMean
from gradients import assert_gradient
from validity_cases import POINTS, VALUES, WORKED, FallingValidityLikelihood, make_model, mixed_model

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity, SkewLogExpectedImprovement
from botorch_skewgp.acquisition.constraints import (
    ValidityConstraint,
    ValidityWeightedAcquisitionFunction,
)
from botorch_skewgp.likelihoods import ValidityLikelihood
from botorch_skewgp.observations import Preference, Validity

pytestmark = pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick


@pytest.fixture(scope="module")
def validity() -> SkewGP:
    likelihood = ValidityLikelihood(threshold=0.5, noise=0.1)
    return make_model(Validity(WORKED), likelihood=likelihood, mean_module=ConstantMean())


@pytest.fixture(scope="module")
def objective() -> SingleTaskGP:
    return SingleTaskGP(POINTS, VALUES.unsqueeze(-1))


@pytest.fixture(scope="module")
def mixed() -> SkewGP:
    return mixed_model()


def growing() -> PosteriorMean:
    """An acquisition function that grows to the corner where experiments fail."""
    return PosteriorMean(GenericDeterministicModel(lambda X: X.sum(-1, keepdim=True)))


def first_output(Y, X=None):
    return Y[..., 0]


def sampler_of(N):
    return ListSampler(*[SobolQMCNormalSampler(torch.Size([N]), seed=seed) for seed in (0, 1)])


def constrained_by(validity, N):
    constraints = [ValidityConstraint(validity, output=1)]
    return {"objective": GenericMCObjective(first_output), "constraints": constraints, "sampler": sampler_of(N)}


def check_gradients(acquisition, X):
    gradient = assert_gradient(acquisition, X, rtol=1e-4, atol=1e-6)
    assert (gradient.abs().amax((-1, -2)) > 1e-6).any()


# Constraint on samples


@pytest.mark.parametrize("eta", [1e-3, 0.1])
def test_feasibility_of_samples_is_the_likelihoods_probability(validity, eta, generator):
    samples = 3 * torch.randn(50, 3, 2, 2, generator=generator, dtype=DOUBLE)
    constraint = ValidityConstraint(validity, output=1, eta=eta)
    feasibility = compute_smoothed_feasibility_indicator([constraint], samples, eta=eta)
    expected = validity.likelihood(samples[..., 1]).probs.detach()
    torch.testing.assert_close(feasibility, expected)
    torch.testing.assert_close(constraint.probability(samples), expected)
    direct = compute_smoothed_feasibility_indicator([constraint.probability], samples, eta=eta, fat=[None])
    torch.testing.assert_close(direct, expected)
    assert torch.equal(constraint(samples) < 0, samples[..., 1] > 0.5)
    log = partial(compute_smoothed_feasibility_indicator, [ValidityConstraint(validity, eta=eta)], eta=eta, log=True)
    _, gradient = finite_gradient(log, torch.tensor([[[-1e4]], [[1e4]]], dtype=DOUBLE))
    assert gradient[0] > 1


def test_constraint_in_units_of_the_outcome(mixed):
    constraint = ValidityConstraint(mixed)
    scale = VALUES[:15].std()
    f = torch.tensor([[0.5], [1.0], [2.0]], dtype=DOUBLE)
    expected = torch.special.ndtr((f.squeeze(-1) - 1.0) / (scale * math.sqrt(0.1)))
    torch.testing.assert_close(constraint.probability(f), expected)


@pytest.mark.filterwarnings("ignore:qExpectedImprovement has known numerical issues")  # the plain product is its
@pytest.mark.parametrize("make", [qExpectedImprovement, qLogExpectedImprovement, "noisy"])
def test_constrained_acquisition_functions(objective, validity, make, generator):
    model = ModelList(objective, validity)
    options = constrained_by(validity, 256)
    if make == "noisy":
        best = POINTS[WORKED]
        acquisition = qLogNoisyExpectedImprovement(model, best, cache_root=False, prune_baseline=False, **options)
    else:
        acquisition = make(model, best_f=0.5, **options)
    check_gradients(acquisition, points(generator, 4))
    candidate, _ = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=2, raw_samples=32)
    assert LogProbabilityOfValidity(validity)(candidate.unsqueeze(0)).exp() > 0.5
    if make is qExpectedImprovement:  # the product of independent parts
        X = points(generator, 4)
        weighted = ValidityWeightedAcquisitionFunction(LogExpectedImprovement(objective, 0.5), validity)
        acquisition = make(model, 0.5, **(options | {"sampler": sampler_of(8192)}))
        torch.testing.assert_close(acquisition(X), weighted(X).exp(), rtol=0.05, atol=2e-3)


def test_noisy_improvement_where_no_trial_was_valid(objective, generator):
    """BoTorch warns, and a bound of the objective takes the place of the best value: finite, with gradients."""
    hopeless = make_model(Validity(torch.zeros(20)), likelihood=ValidityLikelihood(noise=0.1))
    model, options = ModelList(objective, hopeless), constrained_by(hopeless, 16)
    acquisition = qLogNoisyExpectedImprovement(model, POINTS, prune_baseline=False, cache_root=False, **options)
    with pytest.warns(BotorchWarning, match="When all training points are infeasible"):
        _, gradient = finite_gradient(acquisition, points(generator, 3))
    assert gradient.any()


@pytest.mark.parametrize("of_validity", [ValidityLikelihood, FallingValidityLikelihood])
def test_constraint_averages_to_the_predicted_probability(of_validity, generator):
    """Over posterior samples, of validity that rises and that falls with the latent function."""
    model = make_model(Validity(WORKED), likelihood=of_validity(threshold=0.7, noise=0.2))
    X = torch.tensor([[0.1, 0.5], [0.9, 0.5], [0.5, 0.2]], dtype=DOUBLE)
    drawn = samples(model.posterior(X.unsqueeze(-2)), 20_000, generator).unsqueeze(-1)
    constraint = ValidityConstraint(model)
    probability = constraint.probability(drawn).squeeze(-1)
    valid = model.predictive(X).probs.flatten()
    assert_average(valid, probability, 1e-4)
    assert valid[0] > 0.8  # where trials worked
    assert ((constraint(drawn).squeeze(-1) < 0) == (probability > 0.5)).all()


# Weight


@pytest.mark.parametrize("log", [True, False])
def test_weighting(mixed, validity, log, generator):
    X = points(generator, 3, 2)
    base = SkewLogExpectedImprovement(mixed, 1.0) if log else ProbabilityOfImprovement(mixed, 1.0)
    acquisition = ValidityWeightedAcquisitionFunction(base, validity)
    assert acquisition._log == log
    probability = LogProbabilityOfValidity(validity)(X).exp()
    expected = base(X) + probability.log() if log else base(X) * probability
    torch.testing.assert_close(acquisition(X), expected)
    check_gradients(acquisition, points(generator, 4))
    candidate, _ = optimize_acqf(acquisition, BOUNDS, q=1, num_restarts=2, raw_samples=32)
    assert candidate.shape == (1, 2)
    with pytest.raises(UnsupportedError, match="X_pending"):
        acquisition.set_X_pending(POINTS)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda v: ValidityConstraint(v, eta=0.0), InputDataError, "eta"),
        (lambda v: ValidityConstraint(make_model(Preference([[0, 1]]))), UnsupportedError, "PreferenceLikelihood"),
    ],
)
def test_what_is_refused(validity, act, error, message):
    with pytest.raises(error, match=message):
        act(validity)
