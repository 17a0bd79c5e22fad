"""Safe search: how sure a model is that experiments work often enough, and searches among those of which it is."""

import math
import warnings
from functools import partial

import pytest
import torch
from acquisition_checks import BOUNDS, DOUBLE, assert_allowed, assert_average, finite_gradient, points, samples
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.exceptions.errors import CandidateGenerationError, InputDataError, UnsupportedError
from botorch.exceptions.warnings import OptimizationWarning
from botorch.models import GenericDeterministicModel, SingleTaskGP
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.means import ConstantMean
from gradients import assert_gradient
from validity_cases import POINTS, VALUES, WORKED, FallingValidityLikelihood, make_model, mixed_model

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfSafety, next_safe, probability_of_safety, recommend
from botorch_skewgp.acquisition.safety import SafetyInequality, gen_valid_candidates, safe_initial_conditions
from botorch_skewgp.exceptions import FewAnswersWarning, NoSafePointError, OneClassWarning
from botorch_skewgp.likelihoods import NumericLikelihood, ProbitLikelihood, ValidityLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Binary, Numeric, Preference, Validity
from botorch_skewgp.thresholds import threshold
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick

FEW = {"num_restarts": 2, "raw_samples": 32}
GRID = torch.cartesian_prod(*[torch.linspace(0, 1, 15, dtype=DOUBLE)] * 2)


@pytest.fixture(scope="module")
def validity() -> SkewGP:
    likelihood = ValidityLikelihood(threshold=0.5, noise=0.1)
    return make_model(Validity(WORKED), likelihood=likelihood, mean_module=ConstantMean())


@pytest.fixture(scope="module")
def objective() -> SingleTaskGP:
    return SingleTaskGP(POINTS, VALUES.unsqueeze(-1))


def growing() -> PosteriorMean:
    """An acquisition function that grows to the corner where experiments fail."""
    return PosteriorMean(GenericDeterministicModel(lambda X: X.sum(-1, keepdim=True)))


def rising(d=2, peak=None) -> GenericDeterministicModel:
    """A model whose mean grows, or falls with the distance from a peak."""
    if peak is None:
        return GenericDeterministicModel(lambda X: X.sum(-1, keepdim=True))
    return GenericDeterministicModel(lambda X: -(X - peak).square().sum(-1, keepdim=True))


# The probability of safety

CASES = {
    "rising": lambda: make_model(Validity(WORKED), likelihood=ValidityLikelihood(threshold=0.7, noise=0.2)),
    "falling": lambda: make_model(Validity(WORKED), likelihood=FallingValidityLikelihood(threshold=0.7, noise=0.2)),
    "units of the outcome": mixed_model,
    "slips and guesses": lambda: make_model(Binary(WORKED), likelihood=ProbitLikelihood(guess=0.2, slip=0.1)),
    "judges": lambda: make_model(Validity(WORKED, judge=torch.arange(20) % 2)).for_judge(1),
    "inducing points": lambda: make_model(Validity(WORKED), inducing_points=12),
    "ensemble": lambda: FullyBayesianSkewGP([make_model(Validity(WORKED)), other_member()]),
}


def other_member() -> SkewGP:
    model = make_model(Validity(WORKED), likelihood=ValidityLikelihood(noise=1.0))
    model.covar_module.base_kernel.lengthscale = 0.1
    return model


@pytest.mark.parametrize("case", CASES)
def test_probability_of_safety_is_the_share_of_samples_that_work_often_enough(case, generator):
    model, level = CASES[case](), 0.8
    X = torch.tensor([[0.1, 0.5], [0.5, 0.2], [0.45, 0.9]], dtype=DOUBLE)
    found, shares = probability_of_safety(model, X, level), []
    for member in getattr(model, "members", [model]):
        drawn = samples(member.posterior(X.unsqueeze(-2)), 20_000, generator).flatten(1)
        if case == "units of the outcome":
            works = torch.special.ndtr((drawn - 1.0) / (VALUES[:15].std() * math.sqrt(0.1)))
        else:
            works = member.answering_likelihood(drawn).probs
        shares.append((works >= level).double())
    share = torch.stack(shares).mean(0)
    assert_average(found, share, 1e-4)
    assert found.max() - found.min() > 0.1
    torch.testing.assert_close(LogProbabilityOfSafety(model, level)(X.unsqueeze(-2)).exp(), found)


def test_safety_and_validity_are_different_claims(validity):
    """The mean probability of working is the integral over levels of the probability of reaching them."""
    X = POINTS[:5]
    levels = torch.linspace(0, 1, 2001, dtype=DOUBLE)[1:-1]
    reached = torch.stack([probability_of_safety(validity, X, float(level)) for level in levels])
    torch.testing.assert_close(
        torch.trapezoid(reached, levels, dim=0), validity.predictive(X).probs.flatten(), atol=2e-3, rtol=0
    )
    torch.testing.assert_close(probability_of_safety(validity), probability_of_safety(validity, POINTS))


# The inequality


def test_inequality_values_and_gradient(validity, generator):
    X = points(generator, 4, 3).squeeze(-2)
    inequality = SafetyInequality(validity, level=0.7, confidence=0.6)
    probability = torch.stack([probability_of_safety(validity, x, 0.7) for x in X])
    torch.testing.assert_close(inequality(X), torch.logit(probability) - math.log(0.6 / 0.4))
    one = inequality(X[0, 0])
    assert one.shape == ()
    gradient = assert_gradient(lambda x: inequality(x.squeeze(-2)), points(generator, 4), rtol=1e-4, atol=1e-6)
    assert (gradient.abs().amax((-1, -2)) > 1e-6).any()


def test_points_known_to_be_safe_satisfy_the_inequality(validity):
    known = torch.tensor([[0.95, 0.9], [0.1, 0.5]], dtype=DOUBLE)
    plain = SafetyInequality(validity, 0.8)
    told = SafetyInequality(validity, 0.8, safe_points=known)
    assert plain(known)[0] < 0
    torch.testing.assert_close(told(known), plain(known).clamp(min=0))
    torch.testing.assert_close(told(known - 1e-3), plain(known - 1e-3))
    _, gradient = finite_gradient(lambda x: told(x), known.clone())
    assert gradient.abs().min() > 0


# Searches


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A not p.d.")  # of BoTorch's posterior, where both points are in the same corner
@pytest.mark.parametrize("q", [1, 2])
def test_optimisation_within_the_inequality(objective, validity, q):
    """Every candidate is safe, and the best of a grid of safe points is not better."""
    safe = SafetyInequality(validity, level=0.8)
    sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
    acquisition = growing() if q == 1 else qLogExpectedImprovement(objective, best_f=0.5, sampler=sampler)
    candidates, value = next_safe(acquisition, BOUNDS, validity, 0.8, q=q, num_restarts=6, raw_samples=64)
    assert candidates.shape == (q, 2)
    assert (safe(candidates) > -1e-6).all()
    if q == 1:
        with torch.no_grad():
            best = acquisition(GRID[safe(GRID) >= 0].unsqueeze(-2)).max()
        assert value > best - 1e-3
        assert safe(candidates).abs() < 1e-3  # at the edge: the objective pulls outwards


def test_next_safe_without_a_word(validity):
    """Within its own constraint and the user's, with fixed features, and with no warning of its search."""
    inside = {"nonlinear_inequality_constraints": [(lambda x: 0.5 - x[..., 1], True)]}
    free, _ = next_safe(growing(), BOUNDS, validity, 0.8, **FEW)
    for options in ({}, inside, {"fixed_features": {1: 0.25}}):
        candidate, value = next_safe(growing(), BOUNDS, validity, 0.8, **options, **FEW)
        assert candidate.shape == (1, 2)
        assert probability_of_safety(validity, candidate, 0.8) >= 0.95 - 1e-6
        torch.testing.assert_close(growing()(candidate).squeeze(), value)
        assert candidate[0, 1] <= (0.5 + 1e-6 if options is inside else 1)
        assert_allowed(candidate, BOUNDS, options)
    assert free[0, 1] > 0.6


def test_a_search_that_leaves_the_inequality_counts_for_nothing(validity, monkeypatch):
    safe = SafetyInequality(validity, level=0.8)
    acquisition = growing()
    starts = safe_initial_conditions(safe, [], POINTS, acquisition, BOUNDS, q=1, num_restarts=3, raw_samples=64)
    ends = starts.clone()
    ends[0] = 1.0  # not valid
    ends[1] = starts[1] + 1e-4 * (starts[1].mean() - starts[1])
    ends[2] = starts[2] - 1e-4  # lower

    def search(initial_conditions, acquisition_function, **kwargs):
        warnings.warn("Optimization failed within `scipy.optimize.minimize`", OptimizationWarning, stacklevel=2)
        warnings.warn("what a user has to know", UserWarning, stacklevel=2)
        return ends, acquisition_function(ends)

    monkeypatch.setattr("botorch_skewgp.acquisition.safety.gen_candidates_scipy", search)
    with pytest.warns(UserWarning, match="what a user has to know") as caught:
        found, values = gen_valid_candidates(starts, acquisition, nonlinear_inequality_constraints=[(safe, True)])
    assert len(caught) == 1
    assert (safe(found) >= -1e-8).all()
    assert torch.equal(found[[0, 2]], starts[[0, 2]])
    assert (values >= acquisition(starts)).all()
    assert torch.equal(values, acquisition(found))


def test_initial_conditions_satisfy_everything(validity):
    safe = SafetyInequality(validity, level=0.8)
    ic_generator = partial(safe_initial_conditions, safe, [], POINTS)
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
    surest = float(probability_of_safety(model, grid).max())
    safe = SafetyInequality(model, confidence=surest - 1e-4)
    off = torch.tensor([[0.2, 0.2], [1.0, 1.0]], dtype=DOUBLE)
    X = draw_sobol_samples(off, n=8, q=1, seed=0).squeeze(-2)
    with torch.no_grad():
        assert (safe(X) < 0).all()
    X = safe_initial_conditions(safe, [], model.datapoints, growing(), off, 1, 2, 8, options={"seed": 0})
    assert (safe(X) >= 0).all()


def test_search_among_safe_points_and_points_known_to_be_safe(validity):
    """The best of all of them: a known point where the model is sure of worse ones only, or of none."""
    some = {"num_restarts": 8, "raw_samples": 64}
    known = torch.tensor([[0.95, 0.9], [0.1, 0.5]], dtype=DOUBLE)
    best, value = next_safe(growing(), BOUNDS, validity, 0.8, safe_points=known, **some)
    assert torch.equal(best[0], known[0])
    torch.testing.assert_close(value, known[0].sum())
    _, most = next_safe(growing(), BOUNDS, validity, 0.8, **some)
    best, value = next_safe(growing(), BOUNDS, validity, 0.8, safe_points=known[1:], **some)
    assert abs(value - most) < 1e-3  # beyond the known point
    best, _ = next_safe(growing(), BOUNDS, validity, 0.8, 1 - 1e-12, safe_points=known, **some)
    assert torch.equal(best[0], known[0])
    fixed = {"fixed_features": {1: 0.5}}
    best, _ = next_safe(growing(), BOUNDS, validity, 0.8, 1 - 1e-12, safe_points=known, **fixed, **some)
    assert torch.equal(best[0], known[1])
    with pytest.raises(NoSafePointError):
        next_safe(growing(), BOUNDS, validity, 0.8, 1 - 1e-12, safe_points=known, fixed_features={1: 0.6}, **some)


def test_a_refusal_names_the_surest_point(validity):
    with pytest.raises(NoSafePointError, match=r"sure by 0\.9999999 that at least 0\.9 of experiments work") as caught:
        next_safe(growing(), BOUNDS, validity, 0.9, 0.9999999, **FEW)
    error = caught.value
    torch.testing.assert_close(
        probability_of_safety(validity, error.point.unsqueeze(0), 0.9), torch.tensor([error.confidence]).double()
    )
    assert error.confidence >= probability_of_safety(validity, GRID, 0.9).max() - 1e-3
    assert f"{error.confidence:.3g}" in str(error)
    assert f"{float(error.point[0]):.6g}" in str(error)


@pytest.mark.filterwarnings("ignore:A not p.d.")  # of BoTorch's posterior, where both points are in the same corner
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize(
    "lists", [{"cat_dims": {1: [0.2, 0.5, 0.9]}}, {"discrete_dims": {0: [0.0, 0.2, 1.0]}, "cat_dims": {1: [0.5]}}]
)
def test_listed_values_are_searched_one_by_one(validity, objective, lists, q):
    """Safe points with listed values alone, and the best of them that a grid has."""
    acquisition = growing()
    if q == 2:
        acquisition = qLogExpectedImprovement(objective, 0.5, sampler=SobolQMCNormalSampler(torch.Size([32]), seed=0))
    found, value = next_safe(acquisition, BOUNDS, validity, 0.8, q=q, num_restarts=6, raw_samples=96, **lists)
    assert_allowed(found, BOUNDS, lists)
    assert (probability_of_safety(validity, found, 0.8) >= 0.95 - 1e-6).all()
    with torch.no_grad():
        torch.testing.assert_close(acquisition(found).squeeze(), value)
    assert getattr(acquisition, "X_pending", None) is None
    if q == 1:
        line = torch.linspace(0, 1, 101, dtype=DOUBLE)
        axes = [
            torch.tensor(lists.get("discrete_dims", {}).get(0, line.tolist())).double(),
            torch.tensor(lists["cat_dims"][1]).double(),
        ]
        X = torch.cartesian_prod(*axes)
        best = X[probability_of_safety(validity, X, 0.8) >= 0.95].sum(-1).max()
        assert value > best - 1e-3


# Recommendations


@pytest.mark.parametrize("known", [None, torch.tensor([[0.9, 0.3]], dtype=DOUBLE)])
def test_recommendation_is_the_best_of_what_is_safe(validity, known):
    """Over a domain, among candidates and among the model's own points."""
    model = SingleTaskGP(POINTS, VALUES.unsqueeze(-1))
    sure = {"validity": validity, "level": 0.8, "safe_points": known}
    point, value = recommend(model, BOUNDS, num_restarts=8, raw_samples=128, **sure)
    safe = SafetyInequality(validity, 0.8, 0.97, safe_points=known)
    grid = GRID if known is None else torch.cat([GRID, known])
    with torch.no_grad():
        assert safe(point) >= -1e-6
        means = model.posterior(grid).mean.squeeze(-1)
        is_safe = safe(grid) >= 0
        assert value > means[is_safe].max() - 1e-3
        among, best = recommend(model, X_candidates=grid, **sure)
        torch.testing.assert_close(best, means[is_safe].max())
        assert (safe(among) >= 0).all()
        own, best = recommend(model, **sure)
        is_safe = safe(POINTS) >= 0
        assert torch.equal(own[0], POINTS[is_safe][model.posterior(POINTS[is_safe]).mean.argmax()])
    assert recommend(model)[1] > best + 0.1


def test_recommendation_where_nothing_is_safe(validity):
    model = SingleTaskGP(POINTS, VALUES.unsqueeze(-1))
    for place in ({"bounds": BOUNDS, **FEW}, {"X_candidates": GRID}, {}):
        with pytest.raises(NoSafePointError, match="surest point found"):
            recommend(model, validity=validity, confidence=1 - 1e-9, **place)
    with pytest.raises(InputDataError, match="batch_initial_conditions"):
        recommend(model, BOUNDS, validity=validity, batch_initial_conditions=GRID[:1].unsqueeze(0))


# Errors


ACROSS, ALL = [(torch.tensor([[0, 0], [1, 0]]), torch.ones(2, dtype=DOUBLE), 0.0)], [(torch.sum, False)]
NOWHERE = [(torch.tensor([0]), torch.ones(1, dtype=DOUBLE), 2.0)]


def safely(**options):
    return lambda validity: next_safe(growing(), BOUNDS, validity, 0.5, q=2, **options)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda v: SafetyInequality(v, 0.0), InputDataError, "strictly between"),
        (lambda v: SafetyInequality(v, 1.0), InputDataError, "strictly between"),
        (lambda v: SafetyInequality(SingleTaskGP(POINTS, VALUES[:, None])), UnsupportedError, "SingleTaskGP"),
        (lambda v: SafetyInequality(v, 0.9, 1.0), InputDataError, "confidence must be strictly between"),
        (lambda v: SafetyInequality(CASES["slips and guesses"](), 0.97), InputDataError, "level must be between"),
        (lambda v: SafetyInequality(v, safe_points=POINTS[0]), InputDataError, "safe_points"),
        (lambda v: probability_of_safety(v, POINTS[0]), InputDataError, "X must be finite and n x 2"),
        (lambda v: next_safe(growing(), BOUNDS, v, 1 - 1e-12), CandidateGenerationError, "surest point found"),
        (safely(inequality_constraints=NOWHERE), CandidateGenerationError, "widen"),
        (safely(discrete_dims={0: torch.linspace(0, 1, 99).tolist()}), UnsupportedError, "99 combinations"),
        (safely(ic_generator=None, gen_candidates=None), InputDataError, "leave gen_candidates, ic_generator out"),
        (safely(fixed_features={0: torch.zeros(2)}), InputDataError, r"fixed_features\[0\] must be a finite number"),
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
        (Validity([True] * 5), "No outcome is invalid"),
        (Validity([False]), "No outcome is valid"),
        (Validity([False] * 5), "No outcome is valid"),
        ([Binary([1] * 5), Binary([1] * 2)], "No outcome is invalid"),
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
        SafetyInequality(model, 0.9)
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
        SafetyInequality(model, 0.9)
        threshold(model, torch.zeros(1, 1, dtype=torch.double), 0.7, 0, (0.0, 1.0), kind=Validity)
    messages = [str(entry.message) for entry in caught if entry.category is FewAnswersWarning]
    assert len(messages) == 2 * told
    assert all("fit_fully_bayesian_skew_gp(fit_skew_gp(model), num_draws=16)" in message for message in messages)
