"""Where points are searched: in a domain, and in the unit cube, by logarithms where the model takes them."""

import pytest
import torch
from acquisition_checks import assert_allowed
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import CandidateGenerationError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, Log10, Normalize, Round
from botorch.utils.sampling import manual_seed

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.acquisition.dueling import DuelingLogExpectedImprovement
from botorch_skewgp.acquisition.search_domain import AcquisitionFunctionOfCoordinates, SearchCoordinates, SearchDomain
from botorch_skewgp.acquisition.search_options import with_columns
from botorch_skewgp.observations import Preference
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.rounding

BOUNDS = torch.tensor([[1e-6, 16.0, 1.0], [1.0, 256.0, 3.0]], dtype=torch.double)
BATCHES = [16.0, 32.0, 100.0, 256.0]
RATE = 1e-5  # the best learning rate


def judged(num: int = 24, seed: int = 0, dtype: torch.dtype = torch.double) -> SkewGP:
    """A model of a learning rate, a batch size and a number of layers, which sees the logarithm of the first."""
    generator = torch.Generator().manual_seed(seed)
    U = torch.rand(num, 3, generator=generator, dtype=torch.double)
    X = torch.stack([10 ** (6 * U[:, 0] - 6), 16 + 240 * U[:, 1], 1 + 2 * U[:, 2]], dim=-1)
    utility = -(X[:, 0] / RATE).log10().square() - (X[:, 1] / 100 - 1).square()
    pairs = torch.arange(num).reshape(-1, 2)
    winners = utility[pairs].argmax(-1, keepdim=True)
    pairs = torch.cat([pairs.gather(1, winners), pairs.gather(1, 1 - winners)], dim=-1)
    low, high = BOUNDS.to(dtype).clone()
    low[0], high[0] = -6, 0
    transform = ChainedInputTransform(
        round=Round(integer_indices=[2]), log=Log10([0]), scale=Normalize(3, bounds=torch.stack([low, high]))
    )
    settings = DrawSettings(num_draws=64)
    return SkewGP(X.to(dtype), Preference(pairs), input_transform=transform, draw_settings=settings)


@pytest.fixture(scope="module")
def model() -> SkewGP:
    return judged()


class TestCoordinates:
    def test_are_those_of_the_model(self, model):
        coordinates = SearchCoordinates.of(model, BOUNDS)
        assert coordinates.logarithmic.tolist() == [True, False, False]
        X = torch.tensor([[1e-3, 16.0, 2.0], [1e-6, 136.0, 3.0]], dtype=torch.double)
        expected = torch.tensor([[0.5, 0.0, 0.5], [0.0, 0.5, 1.0]], dtype=torch.double)
        torch.testing.assert_close(coordinates.from_inputs(X), expected)
        torch.testing.assert_close(coordinates.to_inputs(expected), X)

    @pytest.mark.parametrize("dtype", [torch.float, torch.double])
    def test_ends_are_the_bounds_to_the_last_digit(self, dtype, generator):
        low = 10 ** (-8 * torch.rand(50, generator=generator, dtype=dtype))
        high = low * (1 + 100 * torch.rand(50, generator=generator, dtype=dtype))
        for logarithmic in (torch.ones(50, dtype=torch.bool), torch.zeros(50, dtype=torch.bool)):
            coordinates = SearchCoordinates(low, high, logarithmic)
            assert torch.equal(coordinates.to_inputs(coordinates.bounds), torch.stack([low, high]))
            assert torch.equal(coordinates.from_inputs(torch.stack([low, high])), coordinates.bounds)

    def test_gradients_do_not_end_at_the_bounds(self, model):
        """Or a search that has come to a bound would stay there."""
        coordinates = SearchCoordinates.of(model, BOUNDS)
        for end, point in zip((0.0, 1.0), BOUNDS, strict=True):
            U = torch.full((3,), end, dtype=torch.double, requires_grad=True)
            (gradient,) = torch.autograd.grad(coordinates.to_inputs(U).sum(), U)
            slope_of_rate = point[0] * torch.log(BOUNDS[1, 0] / BOUNDS[0, 0])
            torch.testing.assert_close(gradient, torch.stack([slope_of_rate, *(BOUNDS[1] - BOUNDS[0])[1:]]))

    def test_an_input_that_is_fixed_stays(self, model):
        bounds = BOUNDS.clone()
        bounds[:, 1] = 64.0
        coordinates = SearchCoordinates.of(model, bounds)
        U = torch.rand(5, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
        assert (coordinates.to_inputs(U)[:, 1] == 64.0).all()
        assert coordinates.bounds[:, 1].tolist() == [0.0, 0.0]

    def test_logarithms_after_another_transform_are_none(self):
        transform = ChainedInputTransform(scale=Normalize(1, bounds=torch.tensor([[0.0], [1.0]])), log=Log10([0]))
        model = SkewGP(torch.tensor([[0.5], [1.0]], dtype=torch.double), Preference([[0, 1]]))
        model.input_transform = transform
        bounds = torch.tensor([[0.5], [2.0]], dtype=torch.double)
        assert not SearchCoordinates.of(model, bounds).logarithmic.any()

    def test_value_and_gradient_are_those_at_the_point(self, model):
        mean, coordinates = PosteriorMean(model), SearchCoordinates.of(model, BOUNDS)
        U = torch.rand(4, 1, 3, dtype=torch.double, generator=torch.Generator().manual_seed(1), requires_grad=True)
        values = AcquisitionFunctionOfCoordinates(mean, coordinates)(U)
        torch.testing.assert_close(values, mean(coordinates.to_inputs(U)))
        (gradient,) = torch.autograd.grad(values.sum(), U)
        with torch.no_grad():
            moved = torch.stack([U + sign * 1e-5 * torch.eye(3)[0] for sign in (1, -1)])
            above, below = mean(coordinates.to_inputs(moved).flatten(0, 1)).reshape(2, -1)
        torch.testing.assert_close(gradient[:, 0, 0], (above - below) / 2e-5, rtol=1e-4, atol=1e-6)


def test_raw_samples_see_all_orders_of_magnitude(model):
    """Of points spread over the inputs, one in a hundred thousand is below the best rate."""
    domain = SearchDomain.build(model, BOUNDS)
    share = (domain.spread(1024)[:, 0] < RATE).double().mean()
    assert abs(share - 1 / 6) < 0.01
    best, _ = recommend(model, BOUNDS, X_candidates=model.datapoints[:1], num_restarts=1, raw_samples=16)
    assert -6 <= best[0, 0].log10() <= -4


def test_pending_points_are_left_as_they_were(model):
    pending = model.datapoints[:8] / 3 + BOUNDS[0]
    acquisition = qExpectedUtilityOfBestOption(model, X_pending=pending)
    domain = SearchDomain.build(model, BOUNDS, discrete_dims={1: BATCHES})
    domain.optimize(acquisition, 2, num_restarts=1, raw_samples=8)
    assert torch.equal(acquisition.X_pending, pending)


def test_options_stay_the_users(model):
    options = {"maxiter": 2}
    next_pair(model, BOUNDS, num_restarts=1, raw_samples=8, options=options)
    assert options == {"maxiter": 2}
    with pytest.raises(UnsupportedError, match="Where inputs have a list of values, leave out options"):
        next_pair(model, BOUNDS, discrete_dims={1: BATCHES}, options=options)


def test_bounds_without_a_logarithm_are_refused(model):
    bounds = BOUNDS.clone()
    bounds[0, 0] = 0.0
    for ask in (next_pair, recommend):
        with pytest.raises(InputDataError, match=r"logarithms of inputs \[0\], whose bounds must be positive"):
            ask(model, bounds)


def test_a_category_without_a_choice(generator):
    X = torch.rand(6, 2, dtype=torch.double, generator=generator)
    X[:, 1] = 0.5  # BoTorch's search tries other categories around the points seen, of which there are none
    model = SkewGP(X, Preference([[0, 1], [2, 3], [4, 5]]), draw_settings=DrawSettings(num_draws=64))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    best, _ = recommend(model, bounds, cat_dims={1: [0.5]}, num_restarts=2, raw_samples=16)
    pair, _ = next_pair(model, bounds, cat_dims={1: [0.5]}, num_restarts=2, raw_samples=16)
    assert best[0, 1] == 0.5
    assert (pair[:, 1] == 0.5).all()


AT_MOST_60 = [(torch.tensor([1]), torch.tensor([-1.0], dtype=torch.double), -60.0)]  # batches
LISTED = {"discrete_dims": {1: BATCHES}}


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
@pytest.mark.parametrize(
    ("options", "dtype"),
    [
        ({"inequality_constraints": AT_MOST_60, "method": "challenger"}, torch.double),
        ({"fixed_features": {1: 64.0}}, torch.double),
        (LISTED, torch.double),
        ({"cat_dims": {1: BATCHES}}, torch.float),
        (LISTED | {"inequality_constraints": AT_MOST_60, "fixed_features": {2: 2.0}}, torch.double),
    ],
    ids=["constraint", "fixed", "listed", "float", "listed with constraints"],
)
def test_options_and_values_are_in_units_of_inputs(options, dtype):
    """To the last digit."""
    model, options = judged(dtype=dtype), dict(options)
    if "method" in options:
        options["method"] = DuelingLogExpectedImprovement(model, BOUNDS[1])
    pair, value = next_pair(model, BOUNDS.to(dtype), **options, num_restarts=2, raw_samples=16)
    assert pair.dtype == value.dtype == dtype
    found = pair[: 1 if "method" in options else 2]
    assert_allowed(found, BOUNDS.to(dtype), options)
    assert_allowed(found, BOUNDS.to(dtype), {"cat_dims": {2: [1, 2, 3]}})  # the model rounds to these


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_searches_end_without_warnings(seed):
    """Line searches end at steps of a rounded input, and climbs among values where little is left to gain."""
    model, few = judged(seed=seed), {"num_restarts": 2, "raw_samples": 16}
    with manual_seed(seed):
        pair, _ = next_pair(model, BOUNDS, **few)
        best, value = recommend(model, BOUNDS, **few)
        _, listed = recommend(model, BOUNDS, discrete_dims={2: [1, 2, 3]}, num_restarts=8, raw_samples=64)
        next_pair(model, BOUNDS, **LISTED, cat_dims={2: [1, 2, 3]}, num_restarts=4, raw_samples=32)
        recommend(model, BOUNDS, **LISTED, cat_dims={2: [1, 2, 3]})
    assert {pair[0, 2].item(), best[0, 2].item()} <= {1, 2, 3}
    torch.testing.assert_close(value, listed, rtol=3e-2, atol=0)  # two starts may end on the second best hill


# The domain


SEEN = torch.tensor([[0.1, 0.0], [0.4, 1.0], [0.9, 0.5]])
BOX = [[0.1, 0.0], [0.9, 1.0]]


def make(like: torch.Tensor) -> SearchDomain:
    model = SingleTaskGP(SEEN.double(), SEEN.double().sum(-1, keepdim=True))
    return SearchDomain.build(model, BOX, like, {0: (0.9, 0.1, 0.4, 0.4)}, {1: range(2)})


def test_values_and_bounds_are_those_of_the_points_dtype():
    """0.1 is another number in single precision, and BoTorch asks for equality with the bounds."""
    for like in (SEEN, SEEN.double()):
        domain = make(like)
        assert domain.bounds.dtype == like.dtype
        of_first, of_second = domain.box.factors
        assert (of_first.columns, of_first.is_category) == ([0], False)
        assert torch.equal(of_first.values[:, 0], like.new_tensor([0.1, 0.4, 0.9]))
        assert (of_second.columns, of_second.values.flatten().tolist(), of_second.is_category) == ([1], [0, 1], True)


def test_the_nearest_allowed_points():
    domain = make(SEEN.double())
    points = torch.tensor([[0.1, 0.0], [0.4 + 1e-9, 1.0], [0.5, 0.4], [0.0, 1.2]], dtype=torch.double)
    expected = torch.tensor([[0.1, 0.0], [0.4, 1.0], [0.4, 0.0], [0.1, 1.0]], dtype=torch.double)
    assert torch.equal(domain.nearest(points), expected)


def test_optimum_among_few_values_is_that_of_all_of_them():
    domain = make(SEEN.double())
    mean = PosteriorMean(domain.model)
    point, value = domain.optimize(mean, 1, num_restarts=2, raw_samples=8)
    every = torch.cartesian_prod(*(torch.tensor(v, dtype=torch.double) for v in ([0.1, 0.4, 0.9], [0.0, 1.0])))
    with torch.no_grad():
        means = mean(every.unsqueeze(-2))
    assert torch.equal(point[0], every[means.argmax()])
    torch.testing.assert_close(value, means.max())


class FlatBelow(AcquisitionFunction):
    """A bowl, beside a plain far below it."""

    def forward(self, X):
        x = X[..., 0, 0]
        return torch.where(x < 0.2, x.new_tensor(-1e12), -(x - 0.7).square())


def test_a_hopeless_start_does_not_end_the_search_from_the_others(monkeypatch):
    monkeypatch.setattr("botorch.generation.gen.check_scipy_version_at_least", lambda minor: True)  # one not yet tested
    X_seen = torch.rand(3, 1, dtype=torch.double)
    model = SingleTaskGP(X_seen, X_seen)
    domain = SearchDomain.build(model, [[0.0], [1.0]], X_seen)
    starts = torch.tensor([0.1, 0.3, 0.9], dtype=torch.double).reshape(3, 1, 1)
    point, _ = domain.optimize(FlatBelow(model), 1, num_restarts=3, batch_initial_conditions=starts)
    assert float(point) == pytest.approx(0.7, abs=1e-3)


class OnlyAtSeven(AcquisitionFunction):
    """One at a single whole number, and without a slope."""

    def forward(self, X):
        return ((X[..., 0, 0] - 7).abs() < 1e-6).double()


def test_whole_numbers_are_looked_at_one_by_one():
    ends = torch.tensor([[0.0], [9.0]], dtype=torch.double)
    transform = ChainedInputTransform(round=Round(integer_indices=[0]), scale=Normalize(1, bounds=ends))
    model = SkewGP(ends, Preference([[0, 1]]), input_transform=transform)
    domain = SearchDomain.build(model, ends)
    point, _ = domain.optimize(OnlyAtSeven(model), 1, num_restarts=1, raw_samples=2)
    assert float(point) == 7


def named(fixed, at_most, at_least):
    low, high = torch.tensor([-1.0], dtype=torch.double), torch.tensor([1.0])  # of single precision, too
    constraints = [(torch.tensor([at_most]), low, -2.0), ([at_least], high, 0.3)]
    return {"fixed_features": {fixed: 32.0}, "inequality_constraints": constraints}


def test_options_name_inputs_from_either_end():
    first, last = (with_columns(named(*inputs), BOUNDS) for inputs in ((1, 2, 0), (-2, -1, -3)))
    assert first["fixed_features"] == last["fixed_features"] == {1: 32.0}
    for one, other in zip(first["inequality_constraints"], last["inequality_constraints"], strict=True):
        assert torch.equal(one[0], other[0])
        assert one[1].dtype == other[1].dtype == torch.double
    pair = with_columns({"equality_constraints": [([[0, -1], [1, -1]], [1.0, -1.0], 0.0)]}, BOUNDS)
    assert pair["equality_constraints"][0][0].tolist() == [[0, 2], [1, 2]]


@pytest.mark.parametrize("options", [{}, {"cat_dims": {-1: [1.0, 2.0, 3.0]}}, {"discrete_dims": {-2: BATCHES}}])
def test_searches_obey_inputs_that_are_named_from_the_end(model, options):
    X, _ = recommend(model, BOUNDS, num_restarts=1, raw_samples=4, **options, **named(-2, -1, -3))
    assert (X[:, 1] == 32).all()
    assert (X[:, 2] <= 2 + 1e-9).all()
    assert (X[:, 0] >= 0.3 - 1e-9).all()


def test_a_rounded_input_may_be_named_from_the_end(model):
    """The whole numbers of a rounded input are its values, however the transform names it."""
    other = judged()
    other.input_transform["round"].integer_indices = torch.tensor([-1])
    domains = [SearchDomain.build(each, BOUNDS) for each in (model, other)]
    assert [domain.whole[0].columns for domain in domains] == [[2], [2]]
    with manual_seed(0):
        expected, _ = next_pair(model, BOUNDS, num_restarts=1, raw_samples=8)
    with manual_seed(0):
        found, _ = next_pair(other, BOUNDS, num_restarts=1, raw_samples=8)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("options", [{}, {"discrete_dims": {1: BATCHES}}])
def test_constraints_that_nothing_satisfies(model, options):
    above = [(torch.tensor([1]), torch.ones(1, dtype=torch.double), 1e6)]
    with pytest.raises(CandidateGenerationError, match="constraints; widen them"):
        next_pair(model, BOUNDS, num_restarts=1, raw_samples=8, inequality_constraints=above, **options)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ([(torch.tensor([3]), torch.ones(1), 0.0)], "inequality_constraints is about inputs 0 to 2; got 3"),
        ([([0, -3], [1.0, 1.0], 0.0)], "inequality_constraints names input 0 more than once"),
        ([([0], [1.0, 2.0], 0.0)], "inequality_constraints must have a coefficient for each"),
        ([(torch.tensor([0]), 1.0)], "inequality_constraints must hold tuples"),
    ],
)
def test_constraints_that_fit_no_input_are_refused(model, constraint, message):
    with pytest.raises(InputDataError, match=message):
        next_pair(model, BOUNDS, num_restarts=1, raw_samples=8, inequality_constraints=constraint)


def test_a_search_leaves_the_acquisition_function_to_others():
    """While one thread searches, another may use the same function: it keeps its model and its pending points."""
    X = torch.rand(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    model = SkewGP(X, Preference([[0, 1], [2, 3], [4, 5]]), draw_settings=DrawSettings(num_draws=64))
    seen = []

    class Watched(PosteriorMean):
        def forward(self, X):
            seen.append((whole.model is model, self.model is model))
            return super().forward(X)

    whole = Watched(model)
    domain = SearchDomain.build(model, [[0.0, 0.0], [1.0, 1.0]], X)
    point, value = domain.optimize(whole, 1, num_restarts=2, raw_samples=16)
    assert all(kept for kept, _ in seen)
    assert not all(alike for _, alike in seen)  # the search had a model that keeps its posterior
    torch.testing.assert_close(whole(point.unsqueeze(0)).squeeze(), value)
