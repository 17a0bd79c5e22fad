"""Which point to recommend now, how sure that is, and which pairs and choices to ask about next."""

import pytest
import torch
from acquisition_checks import DOUBLE, PAIRS, assert_allowed
from acquisition_checks import POINTS as UNIT_POINTS
from acquisition_checks import make_model as model_of
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.objective import ExpectationPosteriorTransform, ScalarizedPosteriorTransform
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import CandidateGenerationError, InputDataError, UnsupportedError
from botorch.exceptions.warnings import BadInitialCandidatesWarning
from botorch.models import ModelListGP, PairwiseGP, SingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, InputPerturbation, Normalize, Round
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.transforms import unnormalize
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import copeland_scores, next_choice, next_pair, probability_of_best, recommend
from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.acquisition.comparison_groups import comparison_groups
from botorch_skewgp.acquisition.dueling import (
    DuelingAcquisitionFunction,
    DuelingLogExpectedImprovement,
)
from botorch_skewgp.acquisition.look_ahead import LatentMixture
from botorch_skewgp.exceptions import UndecidedRecommendationWarning
from botorch_skewgp.likelihoods import NumericLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Binary, Choice, Numeric, Preference, Ranking, Tie
from botorch_skewgp.truncated.draws import DrawSettings

BOUNDS = torch.tensor([[0.0, -10.0], [5.0, 10.0]], dtype=DOUBLE)
POINTS = unnormalize(UNIT_POINTS, BOUNDS)
SMALL = {"num_restarts": 2, "raw_samples": 32}
KERNEL = ScaleKernel(RBFKernel(ard_num_dims=2))


def make_model(observations=None, **options) -> SkewGP:
    options = {"input_transform": Normalize(2, bounds=BOUNDS)} | options
    return model_of(observations, X=POINTS, **options)


def inside(X, num_points) -> bool:
    return X.shape == (num_points, 2) and bool(((BOUNDS[0] <= X) & (BOUNDS[1] >= X)).all())


def grid():
    return torch.cartesian_prod(*[torch.linspace(float(low), float(high), 15).double() for low, high in BOUNDS.T])


@pytest.fixture(scope="module")
def model() -> SkewGP:
    return make_model()


# Recommendation


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_recommendation_among_own_points(model, sign):
    point, value = recommend(model, posterior_transform=ScalarizedPosteriorTransform(torch.tensor([sign]).double()))
    means = sign * model.posterior(POINTS).mean.squeeze(-1)
    assert torch.equal(point, POINTS[means.argmax()].unsqueeze(0))
    torch.testing.assert_close(value, means.max())
    torch.testing.assert_close(sign * model.posterior(point).mean.squeeze(), value)  # it is taken as it is returned
    assert sign < 0 or torch.equal(recommend(model)[0], point)


def test_recommendation_over_the_domain(model):
    point, value = recommend(model, BOUNDS, **SMALL)
    assert inside(point, 1)
    torch.testing.assert_close(model.posterior(point).mean.squeeze(), value)
    assert value >= recommend(model)[1]
    assert value >= model.posterior(grid()).mean.max() - 1e-6


def test_recommendation_never_falls_behind_the_points_seen():
    """The mean is flat but for bumps at the points seen: raw samples find none of them."""
    model = make_model()
    model.covar_module.base_kernel.lengthscale = 0.01
    seen = recommend(model)[1]
    assert seen > 0.5
    for seed in range(4):
        _, value = recommend(model, BOUNDS, num_restarts=2, raw_samples=8, options={"seed": seed})
        assert value >= seen - 1e-9


def test_recommendation_with_constraints_and_candidates(model):
    candidates = grid()[::7]
    point, value = recommend(model, X_candidates=candidates)
    assert (candidates == point).all(-1).any()
    torch.testing.assert_close(value, model.posterior(candidates).mean.max(), rtol=1e-12, atol=0)  # of other batches
    point, _ = recommend(model, BOUNDS, fixed_features={0: 2.5}, **SMALL)
    assert point[0, 0] == 2.5


@pytest.mark.filterwarnings("ignore:Data .input features. is not contained to the unit cube")  # one on purpose
@pytest.mark.parametrize(
    "make",
    [
        lambda: SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True)),
        lambda: SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True), input_transform=Normalize(2)),
        lambda: PairwiseGP(POINTS, PAIRS, input_transform=Normalize(2, bounds=BOUNDS)),
        lambda: make_model(Numeric(POINTS.sum(-1)), outcome_transform=Standardize(1)),
        lambda: make_model(Binary(torch.tensor([1, 0, 1, 1, 0, 1, 1])), input_transform=None, covar_module=KERNEL),
    ],
    ids=["numbers", "numbers transformed", "pairwise", "skew numbers", "skew labels"],
)
def test_recommendation_of_other_models(make):
    model = make().eval()
    point, value = recommend(model)
    assert (torch.isclose(POINTS, point).all(-1)).any()
    with torch.no_grad():
        torch.testing.assert_close(value, model.posterior(POINTS).mean.max())
    point, better = recommend(model, BOUNDS, **SMALL)
    assert inside(point, 1)
    assert better >= value - 1e-6


def test_recommendation_of_a_robust_point():
    shift = torch.tensor([[0.0, 0.0], [0.5, 0.0], [-0.5, 0.0]], dtype=DOUBLE)
    model = make_model(input_transform=InputPerturbation(shift))
    point, value = recommend(model, BOUNDS, posterior_transform=ExpectationPosteriorTransform(n_w=3), **SMALL)
    torch.testing.assert_close(model.posterior(point).mean.mean(), value)


# The next pair


def test_pair_by_qeubo(model):
    pair, value = next_pair(model, BOUNDS, num_restarts=4, raw_samples=64)
    assert inside(pair, 2)
    sampler = SobolQMCNormalSampler(torch.Size([512]), seed=0)
    acquisition = qExpectedUtilityOfBestOption(model, sampler=sampler)
    generator = torch.Generator().manual_seed(0)
    first, apart = torch.randint(225, (200,), generator=generator), torch.randint(1, 225, (200,), generator=generator)
    with torch.no_grad():
        others = acquisition(grid()[torch.stack([first, (first + apart) % 225], dim=-1)])
        assert acquisition(pair) > others.max() - 0.1
        torch.testing.assert_close(acquisition(pair).squeeze(), value, rtol=0.05, atol=0.1)


class Beside(qExpectedUtilityOfBestOption):
    """Is all but flat except where the farther point is about 0.1 from a given one."""

    def __init__(self, model, X):
        super().__init__(model)
        self.X = X

    def forward(self, X):
        return (-((X - self.X).norm(dim=-1).amax(-1) - 0.1).square() / 0.001).exp()


def test_pairs_are_sought_near_the_best_known_point_too(generator):
    """With six inputs hardly an evenly spread point is within 0.3 of it."""
    X = torch.rand(8, 6, generator=generator, dtype=DOUBLE)
    model = SkewGP(X, Preference([[0, i] for i in range(1, 8)]))
    best = X[model.posterior(X).mean.argmax()]
    _, value = next_pair(model, torch.stack([torch.zeros(6), torch.ones(6)]).to(X), Beside(model, best))
    assert value > 0.5


@torch.no_grad()  # of the user's; the search has gradients
def test_pair_by_information(model):
    pair, value = next_pair(model, BOUNDS, "information", **SMALL)
    assert inside(pair, 2)
    assert not pair.requires_grad
    torch.testing.assert_close(SkewBayesianActiveLearningByDisagreement(model)(pair).squeeze(), value)


def test_challenger_of_a_point(model):
    incumbent, _ = recommend(model)
    pair, value = next_pair(model, BOUNDS, against=incumbent[0], num_restarts=4, raw_samples=64)
    assert torch.equal(pair[1:], incumbent)
    assert inside(pair, 2)
    challenge = DuelingLogExpectedImprovement(model, incumbent)
    torch.testing.assert_close(challenge(pair[:1]).squeeze(), value)
    assert value > challenge(grid().unsqueeze(-2)).max() - 1e-3
    choice, _ = next_choice(model, BOUNDS, 3, against=incumbent, **SMALL)
    assert torch.equal(choice[2:], incumbent)
    assert apart(choice)


def test_points_are_of_the_models_dtype(model):
    assert next_pair(model, BOUNDS.float(), **SMALL)[0].dtype == DOUBLE
    assert recommend(model, BOUNDS.float(), **SMALL)[0].dtype == DOUBLE
    assert next_pair(model, BOUNDS.tolist(), **SMALL)[0].dtype == DOUBLE
    for candidates in (POINTS.float(), POINTS.tolist()):
        assert recommend(model, X_candidates=candidates)[0].dtype == DOUBLE
        assert recommend(model, BOUNDS, X_candidates=candidates, **SMALL)[0].dtype == DOUBLE
    assert model.datapoints.dtype == DOUBLE


def test_acquisition_functions_of_the_users_own(model):
    challenger = DuelingLogExpectedImprovement(model, POINTS[2])
    for options in ({"bounds": BOUNDS, **SMALL}, {"X_candidates": POINTS}, {"X_candidates": POINTS[:1]}):
        pair, _ = next_pair(model, method=challenger, **options)
        assert torch.equal(pair[1], POINTS[2])
        assert apart(pair)


SIZES, SHAPES = [0.0, 0.5, 2.0, 3.0, 5.0], [-10.0, 0.0, 10.0]


def test_discrete_inputs_get_values_that_they_may_take(model):
    challenger = DuelingLogExpectedImprovement(model, POINTS[0])
    options = {"discrete_dims": {0: SIZES}, "cat_dims": {1: SHAPES}}
    assert_allowed(next_pair(model, BOUNDS, challenger, **options, **SMALL)[0][:1], BOUNDS, options)
    point, value = recommend(model, BOUNDS, **options, **SMALL)
    every = torch.cartesian_prod(torch.tensor(SIZES, dtype=DOUBLE), torch.tensor(SHAPES, dtype=DOUBLE))
    with torch.no_grad():
        means = model.posterior(every).mean.squeeze(-1)
    assert torch.equal(point, every[means.argmax()].unsqueeze(0))
    torch.testing.assert_close(value, means.max())


def test_whole_numbers_beside_a_continuous_input(model):
    point, value = recommend(model, BOUNDS, discrete_dims={0: range(6)}, **SMALL)
    assert point[0, 0] == point[0, 0].round()
    rows = grid()
    rows[:, 0] = rows[:, 0].round()
    assert value > model.posterior(rows).mean.max() - 0.05


def test_recommendation_never_falls_behind_the_points_seen_that_are_feasible(model):
    seen = torch.cat([POINTS, torch.tensor([[3.0, 1.0], [3.5, 1.0]], dtype=DOUBLE)])
    rough = make_model()
    rough.covar_module.base_kernel.lengthscale = 0.01
    rough.set_train_data(seen, Preference(torch.tensor([[8, 7], [7, 0], [0, 1], [0, 2], [0, 3], [0, 4]])), strict=False)
    point, value = recommend(rough, BOUNDS, discrete_dims={0: range(6)}, **SMALL)
    assert torch.equal(point[0], seen[7])  # the best of all, 8, has no whole number
    torch.testing.assert_close(rough.posterior(point).mean.squeeze(), value)


def rounding() -> ChainedInputTransform:
    return ChainedInputTransform(round=Round(integer_indices=[0]), normalize=Normalize(2, bounds=BOUNDS))


@pytest.mark.filterwarnings("ignore:Optimization failed")  # straight-through gradients are none of the step function's
@pytest.mark.parametrize("against", [None, POINTS[0].round()])
def test_models_that_round_are_asked_about_whole_numbers(against):
    model = make_model(input_transform=rounding())
    pair, value = next_pair(model, BOUNDS, against=against, **SMALL)
    assert inside(pair, 2)
    assert (pair[:, 0] == pair[:, 0].round()).all()
    assert (pair[:, 1] != pair[:, 1].round()).any()
    for bounds in (None, BOUNDS):
        point, value = recommend(model, bounds)
        assert point[0, 0] == point[0, 0].round()
        torch.testing.assert_close(model.posterior(point).mean.squeeze(), value)


@pytest.mark.filterwarnings("ignore:A not p.d.")  # of BoTorch's posterior, where the search brings two points together
def test_pairs_of_a_pairwise_gp():
    pairwise = PairwiseGP(POINTS, PAIRS, input_transform=Normalize(2, bounds=BOUNDS))
    pair, _ = next_pair(pairwise, BOUNDS, **SMALL)
    assert pair.shape == (2, 2)
    pair, _ = next_pair(pairwise, X_candidates=POINTS)
    assert torch.equal(pair[0], recommend(pairwise, X_candidates=POINTS)[0][0])  # one after the other


def test_challenger_from_a_pool(model, generator):
    """The best of all candidates, one by one; the incumbent is the best of the pool and no challenger of itself."""
    pool = torch.rand(9, 2, generator=generator, dtype=DOUBLE)
    means = model.posterior(pool).mean.flatten()
    incumbent = pool[means.argmax()]
    values = DuelingLogExpectedImprovement(model, incumbent)(pool.unsqueeze(-2))
    values[means.argmax()] = -torch.inf
    pair, value = next_pair(model, X_candidates=pool)
    assert torch.equal(pair, torch.stack([pool[values.argmax()], incumbent]))
    torch.testing.assert_close(value, values.max())


@pytest.mark.parametrize("name", ["qeubo", "information"])
def test_pair_from_a_pool(model, name, generator):
    pool = torch.rand(5, 2, generator=generator, dtype=DOUBLE)
    if name == "information":
        method, acquisition = name, SkewBayesianActiveLearningByDisagreement(model)
    else:
        sampler = SobolQMCNormalSampler(torch.Size([64]), seed=0)
        method = acquisition = qExpectedUtilityOfBestOption(model, sampler=sampler)
    pair, value = next_pair(model, method=method, X_candidates=pool.repeat(2, 1))
    assert torch.equal(next_pair(model, method=method, X_candidates=pool, num_pairs=1)[1], value.unsqueeze(0))
    torch.testing.assert_close(acquisition(pair).squeeze(), value)
    values = torch.stack([acquisition(pool[[i, j]]).squeeze() for i in range(5) for j in range(5) if i != j])
    torch.testing.assert_close(value, values.max(), rtol=1e-2, atol=0)  # qEUBO's samples depend on the order
    assert all((pool == point).all(-1).any() for point in pair)
    assert not torch.equal(*pair)


# Never the same point twice


BRIEF = {"n_burnin": 100}  # of walks within linear constraints


class Likes(AcquisitionFunction):
    """Wants all points of a set in one place: as two maximisers in a corner, which no gradient parts."""

    def __init__(self, model, place):
        super().__init__(model=model)
        self.place = place

    def forward(self, X):
        return -(X - self.place).square().sum((-1, -2))


class LikesBeside(DuelingAcquisitionFunction):
    """The same of challengers of that place."""

    def forward(self, X):
        return -(X - self.X_reference).square().sum((-1, -2))


def apart(points) -> bool:
    distance = torch.cdist(points, points) + torch.eye(len(points), dtype=DOUBLE)
    return bool((distance > 1e-3).all())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fixed_features": {0: 5.0}},
        {"discrete_dims": {0: [0.0, 2.0, 5.0]}, "challenged": True},
        {"cat_dims": {0: [0.0, 5.0], 1: [-10.0, 10.0]}, "challenged": True},
        {"challenged": True},
        {"inequality_constraints": [(torch.tensor([0, 1]), torch.ones(2, dtype=DOUBLE), 14.0)], "options": BRIEF},
        {"equality_constraints": [(torch.tensor([0]), torch.tensor([1.0], dtype=DOUBLE), 5.0)], "options": BRIEF},
    ],
    ids=["corner", "fixed", "whole numbers", "categories", "incumbent", "triangle", "line"],
)
def test_points_of_a_pair_differ(model, options):
    options, challenged = dict(options), "challenged" in options
    options.pop("challenged", None)
    acquisition = LikesBeside(model, BOUNDS[1]) if challenged else Likes(model, BOUNDS[1])
    pair, value = next_pair(model, BOUNDS, acquisition, **options, **SMALL)
    assert_allowed(pair, BOUNDS, options)
    assert apart(pair)
    assert torch.equal(pair[1] if challenged else pair[0].round(decimals=3), BOUNDS[1])
    asked = pair[:1] if challenged else pair
    torch.testing.assert_close(Likes(model, BOUNDS[1])(asked), value)


def test_options_of_a_choice_differ():
    """A function that rises to a corner, and is known there: the best option alone would do."""
    numbers = UNIT_POINTS.sum(-1)
    model = make_model(Numeric(numbers - numbers.mean()), likelihood=NumericLikelihood(noise=1e-4))
    for _ in range(3):
        for few in (SMALL, {"num_restarts": 1, "raw_samples": 1}):
            assert apart(next_pair(model, BOUNDS, **few)[0])
            assert apart(next_choice(model, BOUNDS, 4, **few)[0])
    assert apart(next_choice(model, BOUNDS, 4, **CORNERS, **SMALL)[0])  # all that there are


def test_a_model_without_points_recommends_one_of_the_domain():
    model = MODELS["empty"]()
    with pytest.warns(BadInitialCandidatesWarning):  # all are equal
        point, value = recommend(model, BOUNDS, **SMALL)
    assert inside(point, 1)
    assert value == 0
    assert apart(next_pair(model, BOUNDS, **SMALL)[0])


def test_choice_of_several(model, generator):
    options, value = next_choice(model, BOUNDS, 3, **SMALL)
    assert options.shape == (3, 2)
    assert value > model.posterior(options).mean.max()  # the best of several is expected to exceed each
    pool = torch.rand(8, 2, generator=generator, dtype=DOUBLE)
    options, _ = next_choice(model, num_options=3, X_candidates=pool)
    assert torch.equal(options[0], pool[model.posterior(pool).mean.argmax()])  # the first one, alone
    assert len({tuple(point.tolist()) for point in options}) == 3
    assert all((pool == point).all(-1).any() for point in options)


SUM = POINTS.sum(-1, keepdim=True)
SQUARE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=DOUBLE)
MODELS = {
    "duels": make_model,
    "round": lambda: make_model(input_transform=rounding()),
    "two": lambda: ModelListGP(*[SingleTaskGP(SUM[:, :1], SUM, input_transform=Normalize(1)) for _ in range(2)]),
    "pairwise": lambda: PairwiseGP(POINTS, PAIRS, input_transform=Normalize(2, bounds=BOUNDS)),
    "numbers": lambda: SingleTaskGP(POINTS, SUM, input_transform=Normalize(2)),
    "empty": lambda: SkewGP(torch.empty(0, 2, dtype=DOUBLE), Preference([])),
}
IN, LISTED = {"bounds": BOUNDS, **SMALL}, {"X_candidates": POINTS}
BOTH = {"discrete_dims": {0: [0.0, 5.0]}, "cat_dims": {0: [0.0, 5.0]}}
ONE_OUTPUT = ScalarizedPosteriorTransform(torch.ones(2, dtype=DOUBLE))
CORNERS = {"cat_dims": {0: [0.0, 5.0], 1: [-10.0, 10.0]}}
REFUSED = [
    (next_pair, {}, "Give either bounds"),
    (next_pair, IN | LISTED, "Give either bounds"),
    (next_pair, {"X_candidates": POINTS[:1]}, "at least 2 different points"),
    (next_pair, {"X_candidates": POINTS[:1].repeat(2, 1)}, "at least 2 different points"),
    (next_pair, {"X_candidates": POINTS * torch.nan}, "must be finite"),
    (next_pair, LISTED | {"cat_dims": {0: [0.0]}}, "cat_dims only has a meaning with bounds"),
    (next_pair, IN | {"raw_samples": 0}, "raw_samples must be an integer of at least 1"),
    (next_pair, IN | {"X_pending": POINTS}, "X_pending is not supported"),
    (next_pair, IN | {"bounds": BOUNDS[:1].repeat(2, 1)}, "leave one point"),
    (next_pair, IN | {"bounds": BOUNDS[0]}, "bounds must be 2 x 2"),
    (next_pair, IN | {"sequential": True}, "leave sequential out"),
    (next_pair, IN | {"return_best_only": False}, "return_best_only"),
    (next_pair, IN | {"return_acq_values": False}, "return_acq_values"),
    (next_pair, IN | {"method": "guess"}, "or None; got 'guess'"),
    (next_pair, IN | {"method": "information", "discrete_dims": {0: [0.0, 5.0]}}, "chooses both points at once"),
    (next_pair, IN | {"fixed_features": {5: 0.3}}, "fixed_features is about inputs 0 to 1; got 5"),
    (next_pair, IN | {"model": "two"}, "2 outputs"),
    (next_pair, IN | {"model": "pairwise", "method": "information"}, "needs a SkewGP; got PairwiseGP"),
    (next_pair, IN | {"model": "round", "bounds": BOUNDS + torch.tensor([0.6, 0.0])}, r"rounds inputs \[0\] at their"),
    *[(next_pair, IN | {"num_pairs": num}, "num_pairs must be an integer from 1 to 8") for num in (0, 9, 2.5, True)],
    (next_pair, IN | {"num_pairs": 2, "method": "information"}, "leave method out, or num_pairs"),
    (next_pair, {"X_candidates": POINTS[:3], "num_pairs": 4}, "All questions about 2 of 3 different"),
    (next_pair, IN | CORNERS | {"num_pairs": 7}, "ask for fewer"),
    (next_choice, IN | CORNERS | {"num_options": 5}, "No 5 different points"),
    *[(next_choice, IN | {"num_options": num}, "num_options must be an integer from 2 to 100") for num in (1, 2.5)],
    (next_choice, {"X_candidates": POINTS[:2]}, "at least 3 different points"),
    (recommend, {"X_candidates": POINTS * torch.nan}, "must be finite"),
    (recommend, {"X_candidates": POINTS[:0]}, "X_candidates"),
    (recommend, IN | {"num_restarts": 1.5}, "num_restarts must be an integer of at least 1; got 1.5"),
    (recommend, {"bounds": BOUNDS[:, :1]}, "2 x 2"),
    (recommend, {"fixed_features": {0: 1.0}}, "fixed_features only"),
    (recommend, {"model": "two"}, "2 outputs"),
    (recommend, {"model": "two", "posterior_transform": ONE_OUTPUT}, "give X_candidates"),
    (recommend, {"model": "empty"}, "no points to recommend from; give bounds or X_candidates"),
    (recommend, IN | {"cat_dims": [0]}, r"cat_dims must map inputs to their values.*got \[0\]"),
    (recommend, IN | {"discrete_dims": {2: [0.0, 5.0]}}, "about inputs 0 to 1; got 2"),
    (recommend, IN | {"cat_dims": {-3: [0.0, 5.0]}}, "about inputs 0 to 1; got -3"),
    (recommend, IN | {"cat_dims": {0: [0.0, 5.0], -2: [0.0]}}, "cat_dims names input 0 more than once"),
    (next_pair, IN | {"cat_dims": {0: [0.0, 6.0]}}, "within its bounds, 0.0 and 5.0"),
    (recommend, IN | {"cat_dims": {0: []}}, "must be a list"),
    (recommend, IN | {"discrete_dims": {0: [0.0, 4.0]}}, "least and the largest"),
    (recommend, IN | BOTH, "Input 0 is in discrete_dims and"),
    (probability_of_best, {"X_candidates": POINTS[0]}, "X_candidates must be finite"),
    (copeland_scores, {"X_candidates": POINTS[:1]}, "at least two points"),
    (copeland_scores, {"model": "numbers"}, "copeland_scores needs a SkewGP"),
    (probability_of_best, {"num_samples": 0}, "num_samples must be an integer of at least 1"),
    (probability_of_best, {"model": "numbers"}, "probability_of_best needs a SkewGP"),
]


@pytest.mark.parametrize(("act", "options", "message"), REFUSED)
def test_what_is_refused(act, options, message):
    options = dict(options)
    with pytest.raises((InputDataError, UnsupportedError, CandidateGenerationError), match=message):
        act(MODELS[options.pop("model", "duels")](), **options)


def beside_the_first(model, X):
    return next_pair(model, method=DuelingLogExpectedImprovement(model, X[0]), X_candidates=X)


@pytest.mark.parametrize(
    ("act", "message", "wrong"),
    [
        (DuelingLogExpectedImprovement, "X_reference must be", [BOUNDS, POINTS[0, :1], POINTS[0] * torch.nan]),
        (
            lambda model, pending: next_pair(model, BOUNDS, pending=pending),
            "pending",
            [POINTS[:2], POINTS[:1].view(1, 1, 2), torch.full((1, 2, 2), torch.nan), [torch.rand(2, 3)], "pair", 1],
        ),
        (
            lambda model, X: next_pair(model, BOUNDS, against=X),
            "against must be",
            [POINTS[:2], POINTS[0, :1], POINTS[0] * torch.nan],
        ),
        (beside_the_first, "at least 2 different points, the one that is challenged counted", [POINTS[2:3]]),
    ],
)
def test_acquisition_functions_of_duels_are_checked(model, act, message, wrong):
    for X in wrong:
        with pytest.raises(InputDataError, match=message):
            act(model, X)


# The probability to be best


LINE = torch.tensor([[0.1], [0.5], [0.9], [0.5]], dtype=DOUBLE)


def on_a_line(observations, X=LINE, num_draws=512, outputscale=1.0, likelihood=None) -> SkewGP:
    settings = DrawSettings(num_draws=num_draws, seed=1)
    model = SkewGP(X, observations, likelihood, ScaleKernel(RBFKernel()).double(), draw_settings=settings)
    model.covar_module.outputscale = outputscale
    model.covar_module.base_kernel.lengthscale = 0.4
    return model.eval()


SURE = Preference([[0, 1], [2, 1]])


@pytest.mark.parametrize(("num_draws", "num_samples"), [(512, 4096), (4096, 2**17)])
def test_two_points(num_draws, num_samples):
    """All draws of the model count."""
    model, pair = on_a_line(Preference([[0, 1], [1, 2]]), LINE[:3], num_draws, 20.0), LINE[:2]
    difference = model.latent_posterior(pair).affine(pair.new_tensor([[1.0, -1.0]]))
    truth = float(difference.probability_above(0.0))
    found = probability_of_best(model, pair, num_samples=num_samples)
    assert float(found.sum()) == pytest.approx(1.0)
    assert float(found[0]) == pytest.approx(truth, abs=4.5 * (truth * (1 - truth) / num_samples) ** 0.5)


def test_some_of_the_draws_are_typical_of_all():
    model = on_a_line(Preference([[0, 1], [1, 2]]), LINE[:3], 4096)
    posterior = model.latent_posterior(LINE[:2])
    mixture = LatentMixture.of(posterior, model.outcome_scale)
    assert mixture.means.shape[-1] < posterior.component_means.shape[-1]
    deviation = posterior.affine(LINE.new_tensor([[1.0, -1.0]])).gaussian_variance.sqrt()
    every, some = (
        torch.special.ndtr((means[0] - means[1]) / deviation) for means in (posterior.component_means, mixture.means)
    )
    assert float(some @ mixture.weights[0]) == pytest.approx(float(every.mean()), abs=0.003)


def test_three_points_of_a_gaussian():
    """An orthant of two differences: in closed form by their correlation, for means that are equal."""
    likelihood = NumericLikelihood(noise=0.1, learn_noise=False)
    model = on_a_line(Numeric([0.0, 0.0, 0.0]), LINE[:3], likelihood=likelihood)
    found = probability_of_best(model)
    for i, others in enumerate(([1, 2], [0, 2], [0, 1])):
        W = torch.eye(3, dtype=DOUBLE)[i] - torch.eye(3, dtype=DOUBLE)[others]
        D = W @ model.posterior(LINE[:3]).covariance_matrix.detach() @ W.mT
        truth = 0.25 + float(torch.asin(D[0, 1] / (D[0, 0] * D[1, 1]).sqrt())) / (2 * torch.pi)
        assert float(found[i]) == pytest.approx(truth, abs=4.5 * (truth * (1 - truth) / 4096) ** 0.5)


def test_equal_points_share_and_an_ensemble_is_the_average():
    model, other = on_a_line(SURE), on_a_line(SURE, outputscale=9.0)
    found = probability_of_best(model)
    assert found.shape == (4,)
    assert found[1] == found[3]
    assert torch.equal(found, probability_of_best(model))
    assert not torch.equal(found, probability_of_best(model, seed=1))
    average = (found + probability_of_best(other)) / 2
    assert torch.allclose(probability_of_best(FullyBayesianSkewGP([model, other])), average, atol=0.03)


def test_copeland_scores_are_shares_of_others_that_are_beaten():
    """Against the share of joint samples; equal points beat each other half the time."""
    model, X = on_a_line(SURE), torch.cat([LINE[:3], LINE[:1]])
    scores = copeland_scores(model, X)
    samples = model.posterior(X).rsample(torch.Size([2**14])).squeeze(-1)
    beaten = (samples.unsqueeze(-1) > samples.unsqueeze(-2)).double()
    beaten = beaten + 0.5 * (samples.unsqueeze(-1) == samples.unsqueeze(-2))
    shares = (beaten.sum(-1) - 0.5) / 3
    assert ((scores - shares.mean(0)).abs() < 4.5 * shares.std(0) / 2**7 + 0.002).all()
    assert scores[0] == scores[3]
    assert float(scores.mean()) == pytest.approx(0.5)
    pair = copeland_scores(model, LINE[:2])
    difference = model.latent_posterior(LINE[:2]).affine(LINE.new_tensor([[1.0, -1.0]]))
    assert float(pair[0]) == pytest.approx(float(difference.probability_above(0.0)), abs=1e-9)
    other = on_a_line(SURE, outputscale=9.0)
    average = 0.5 * (copeland_scores(model) + copeland_scores(other))
    assert torch.allclose(copeland_scores(FullyBayesianSkewGP([model, other])), average)


# Comparisons that fall apart, and recommendations that hang on it


APART = Preference([[0, 1], [1, 2], [3, 4], [4, 5]])  # 0 is the best of three, 3 of three others


def in_groups(observations, lengthscale=0.01, outputscale=100.0) -> SkewGP:
    X = torch.tensor([[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]], dtype=DOUBLE)
    model = on_a_line(observations, X, 256, outputscale)
    model.covar_module.base_kernel.lengthscale = lengthscale
    return model


def test_groups_by_following_every_chain():
    compared = [Preference([[0, 1], [2, 1]]), Tie([[7, 8]]), Choice([[3, 4, 5], [9, 2, -1]]), Ranking([[10, 11, -1]])]
    linked = [{0, 1, 2, 9}, {3, 4, 5}, {6}, {7, 8}, {10, 11}]
    X = torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    groups = comparison_groups([*compared, Binary([1.0], index=[6])], X)
    for i in range(12):
        for j in range(12):
            assert (groups[i] == groups[j]) == any({i, j} <= group for group in linked)


def test_equal_points_are_one():
    """As where both points of every duel are appended, the recommended one again and again."""
    assert comparison_groups([], torch.arange(3.0).unsqueeze(-1)).unique().numel() == 3
    X = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.3, 0.4], [0.5, 0.6], [0.3, 0.6]])
    first, second, again, third, alone = comparison_groups([Preference([[1, 0], [2, 3]])], X)
    assert first == second == again == third != alone


def test_a_toss_up_between_groups_is_told():
    """Lengthscales far below the distances: nothing says which of the two winners is better."""
    with pytest.warns(UndecidedRecommendationWarning, match="No comparison links the recommended point") as caught:
        recommend(in_groups(APART))
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "make",
    [
        lambda: in_groups([APART, Preference([[0, 3]])]),  # linked by a comparison
        lambda: in_groups([Preference([[0, 1], [1, 2], [2, 0]])]),  # the others were compared with nothing
        lambda: in_groups([Preference([[0, 1], [2, 3], [4, 5]])]),  # first duels
        lambda: in_groups([APART, Binary([1.0, 0.0], index=[0, 3])]),  # labels say on their own how good a point is
        lambda: in_groups(APART, outputscale=1e-3),  # a judge could hardly tell the two apart
    ],
    ids=["linked", "alone", "first", "labels", "noise"],
)
def test_nothing_is_told_where_nothing_hangs_on_it(make):
    recommend(make())


def test_nothing_is_told_where_the_kernel_decides():
    """The winner of the other group lies beside a point that lost to the best."""
    model = in_groups(Preference([[0, 1], [0, 2], [0, 3], [4, 5]]), lengthscale=0.12)
    assert comparison_groups(model.observations, model.datapoints).unique().numel() == 2
    recommend(model)


def test_next_pair_goes_on_without_a_word():
    pair, _ = next_pair(in_groups(APART), [[0.0], [1.0]], **SMALL)
    assert pair.shape == (2, 1)
