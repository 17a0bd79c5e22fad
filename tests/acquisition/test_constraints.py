"""Validity as a constraint: soft on samples, as a weight, and hard with feasible starts."""

import math
import warnings
from functools import partial

import pytest
import torch
from acquisition_checks import BOUNDS, DOUBLE, assert_allowed, assert_average, finite_gradient, points, samples
from botorch.acquisition.analytic import LogExpectedImprovement, PosteriorMean, ProbabilityOfImprovement
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.monte_carlo import qExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.exceptions.errors import CandidateGenerationError, InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning, OptimizationWarning
from botorch.models import GenericDeterministicModel, ModelList, SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling.list_sampler import ListSampler
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.objective import compute_smoothed_feasibility_indicator
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.means import ConstantMean
from gradients import assert_gradient
from validity_cases import POINTS, VALUES, WORKED, FallingValidityLikelihood, make_model, mixed_model

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity, SkewLogExpectedImprovement
from botorch_skewgp.acquisition.constraints import (
    ValidityConstraint,
    ValidityInequality,
    ValidityWeightedAcquisitionFunction,
    gen_valid_candidates,
    next_safe,
    safe_initial_conditions,
)
from botorch_skewgp.exceptions import FewAnswersWarning, OneClassWarning
from botorch_skewgp.likelihoods import NumericLikelihood, ValidityLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Binary, Numeric, Preference, Validity
from botorch_skewgp.thresholds import threshold
from botorch_skewgp.truncated.draws import DrawSettings

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


# Inequality


def test_inequality_values_and_gradient(validity, generator):
    X = points(generator, 4, 3).squeeze(-2)
    inequality = ValidityInequality(validity, level=0.7)
    expected = torch.logit(LogProbabilityOfValidity(validity)(X.unsqueeze(-2)).exp()) - math.log(0.7 / 0.3)
    torch.testing.assert_close(inequality(X), expected)
    one = inequality(X[0, 0])
    assert one.shape == ()
    torch.testing.assert_close(one, expected[0, 0])
    check_gradients(lambda x: inequality(x.squeeze(-2)), points(generator, 4))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A not p.d.")  # of BoTorch's posterior, where both points are in the same corner
@pytest.mark.parametrize("q", [1, 2])
def test_optimisation_within_the_inequality(objective, validity, q):
    """Every candidate is valid enough, and the best on a grid of valid points is not better."""
    safe = ValidityInequality(validity, level=0.8)
    sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
    acquisition = growing() if q == 1 else qLogExpectedImprovement(objective, best_f=0.5, sampler=sampler)
    candidates, value = next_safe(acquisition, BOUNDS, validity, 0.8, q, num_restarts=6, raw_samples=64)
    assert candidates.shape == (q, 2)
    assert (safe(candidates) > -1e-6).all()
    if q == 1:
        grid = torch.cartesian_prod(*[torch.linspace(0, 1, 15, dtype=DOUBLE)] * 2)
        with torch.no_grad():
            best = acquisition(grid[safe(grid) >= 0].unsqueeze(-2)).max()
        assert value > best - 1e-3
        assert safe(candidates).abs() < 1e-3  # at the edge: the objective pulls outwards


def test_next_safe_without_a_word(validity):
    """Within its own constraint and the user's, with fixed features, and with no warning of its search."""
    few = {"num_restarts": 2, "raw_samples": 32}
    inside = {"nonlinear_inequality_constraints": [(lambda x: 0.5 - x[..., 1], True)]}
    free, _ = next_safe(growing(), BOUNDS, validity, 0.8, **few)
    for options in ({}, inside, {"fixed_features": {1: 0.25}}):
        candidate, value = next_safe(growing(), BOUNDS, validity, 0.8, **options, **few)
        assert candidate.shape == (1, 2)
        assert LogProbabilityOfValidity(validity)(candidate).exp() >= 0.8 - 1e-6
        torch.testing.assert_close(growing()(candidate).squeeze(), value)
        assert candidate[0, 1] <= (0.5 + 1e-6 if options is inside else 1)
        assert_allowed(candidate, BOUNDS, options)
    assert free[0, 1] > 0.6


def test_a_search_that_leaves_the_inequality_counts_for_nothing(validity, monkeypatch):
    safe = ValidityInequality(validity, level=0.8)
    acquisition = growing()
    starts = safe_initial_conditions(safe, [], acquisition, BOUNDS, q=1, num_restarts=3, raw_samples=64)
    ends = starts.clone()
    ends[0] = 1.0  # not valid
    ends[1] = starts[1] + 1e-4 * (starts[1].mean() - starts[1])
    ends[2] = starts[2] - 1e-4  # lower

    def search(initial_conditions, acquisition_function, **kwargs):
        warnings.warn("Optimization failed within `scipy.optimize.minimize`", OptimizationWarning, stacklevel=2)
        warnings.warn("what a user has to know", UserWarning, stacklevel=2)
        return ends, acquisition_function(ends)

    monkeypatch.setattr("botorch_skewgp.acquisition.constraints.gen_candidates_scipy", search)
    with pytest.warns(UserWarning, match="what a user has to know") as caught:
        found, values = gen_valid_candidates(starts, acquisition, nonlinear_inequality_constraints=[(safe, True)])
    assert len(caught) == 1
    assert (safe(found) >= -1e-8).all()
    assert torch.equal(found[[0, 2]], starts[[0, 2]])
    assert (values >= acquisition(starts)).all()
    assert torch.equal(values, acquisition(found))


def test_initial_conditions_satisfy_everything(validity):
    safe = ValidityInequality(validity, level=0.8)
    ic_generator = partial(safe_initial_conditions, safe, [])
    options = {"acq_function": growing(), "bounds": BOUNDS, "num_restarts": 5, "raw_samples": 64, "q": 1}
    above, brief = [(torch.tensor([1]), torch.ones(1, dtype=DOUBLE), 0.6)], {"n_burnin": 100}
    model = make_model(Numeric(VALUES), likelihood=NumericLikelihood(noise=0.1))
    batch = qLogExpectedImprovement(model, 0.5, sampler=SobolQMCNormalSampler(torch.Size([16]), seed=0))
    for changes in (
        {},
        {"fixed_features": {1: 0.25}},
        {"inequality_constraints": above, "options": brief},
        {"acq_function": batch, "q": 3},
    ):
        X = ic_generator(**(options | changes))
        assert X.shape == (5, 3 if "q" in changes else 1, 2)
        assert (safe(X) >= 0).all()
        assert_allowed(X, BOUNDS, changes)


def test_starts_climb_into_a_small_valid_region():
    """A region that raw points miss: those with the largest probability go uphill."""
    X = torch.tensor([[0.3, 0.3], [0.5, 0.3], [0.1, 0.3], [0.3, 0.5], [0.3, 0.1], [0.9, 0.9]], dtype=DOUBLE)
    worked = torch.tensor([1, 0, 0, 0, 0, 0])  # the best point is a little off the valid one
    model = SkewGP(X, Validity(worked), ValidityLikelihood(noise=0.01), draw_settings=DrawSettings(num_draws=64))
    model.covar_module.outputscale = 4.0
    model.covar_module.base_kernel.lengthscale = 0.2
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 101, dtype=DOUBLE)] * 2)
    with torch.no_grad():
        probability = LogProbabilityOfValidity(model)(grid.unsqueeze(-2)).exp()
    safe = ValidityInequality(model, level=float(probability.max()) - 1e-4)
    off = torch.tensor([[0.2, 0.2], [1.0, 1.0]], dtype=DOUBLE)
    X = draw_sobol_samples(off, n=8, q=1, seed=0).squeeze(-2)
    with torch.no_grad():
        assert (safe(X) < 0).all()
    X = safe_initial_conditions(safe, [], growing(), off, 1, 2, 8, options={"seed": 0})
    assert (safe(X) >= 0).all()


ACROSS, ALL = [(torch.tensor([[0, 0], [1, 0]]), torch.ones(2, dtype=DOUBLE), 0.0)], [(torch.sum, False)]


def safely(**options):
    return lambda validity: next_safe(growing(), BOUNDS, validity, 0.5, 2, **options)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda v: ValidityConstraint(v, eta=0.0), InputDataError, "eta"),
        (lambda v: ValidityConstraint(make_model(Preference([[0, 1]]))), UnsupportedError, "PreferenceLikelihood"),
        (lambda v: ValidityInequality(v, 0.0), InputDataError, "strictly between"),
        (lambda v: ValidityInequality(v, 1.0), InputDataError, "strictly between"),
        (lambda v: ValidityInequality(SingleTaskGP(POINTS, VALUES[:, None])), UnsupportedError, "SingleTaskGP"),
        (lambda v: next_safe(growing(), BOUNDS, v, 1 - 1e-12), CandidateGenerationError, r"largest found is (0\.9|1)"),
        (safely(ic_generator=None, gen_candidates=None), InputDataError, "leave gen_candidates, ic_generator out"),
        (safely(fixed_features={0: torch.zeros(2)}), UnsupportedError, "single value"),
        (safely(inequality_constraints=ACROSS), UnsupportedError, "linear constraints on single points"),
        (safely(nonlinear_inequality_constraints=ALL), UnsupportedError, "non-linear constraints on single points"),
    ],
)
def test_what_is_refused(validity, act, error, message):
    with pytest.raises(error, match=message):
        act(validity)


@pytest.mark.parametrize(
    ("observations", "told"),
    [
        (Validity([True] * 5), "All 5 outcomes are valid"),
        (Validity([False]), "The only outcome is invalid"),
        (Validity([False] * 5), "All 5 outcomes are invalid"),
        ([Binary([1] * 5), Binary([1] * 2)], "All 7 outcomes are valid"),
        (Validity([True] * 4 + [False]), None),
        ([Validity([True] * 5), Numeric(VALUES[:5])], None),
        ([Binary([1] * 5), Preference([[0, 1]])], None),
        ("ensemble", None),
    ],
)
def test_labels_of_one_class_are_told_where_a_level_is_to_be_kept(observations, told):
    if observations == "ensemble":  # averages over hyperparameters
        model = FullyBayesianSkewGP([make_model(Validity([True] * 5)) for _ in range(2)])
    else:
        model = make_model(observations)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ValidityInequality(model, 0.9)
    messages = [str(entry.message) for entry in caught if entry.category is OneClassWarning]
    assert len(messages) == (told is not None)
    assert told is None or messages[0].startswith(told)


@pytest.mark.parametrize(
    ("num_labels", "given", "told"), [(5, False, True), (29, False, True), (30, False, False), (5, True, False)]
)
def test_few_labels_are_told_unless_hyperparameters_are_given_or_sampled(num_labels, given, told):
    model = SkewGP(torch.rand(num_labels, 1, dtype=torch.double), Validity(([True, False] * 15)[:num_labels]))
    model.requires_grad_(not given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ValidityInequality(model, 0.9)
        threshold(model, torch.zeros(1, 1, dtype=torch.double), 0.7, 0, (0.0, 1.0), kind=Validity)
    messages = [str(entry.message) for entry in caught if entry.category is FewAnswersWarning]
    assert len(messages) == 2 * told
    assert all("fit_fully_bayesian_skew_gp(fit_skew_gp(model), num_draws=16)" in message for message in messages)
