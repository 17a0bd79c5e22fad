"""Where points are searched: in the unit cube, by logarithms where the model takes them."""

import warnings

import pytest
import torch
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import ChainedInputTransform, Log10, Normalize, Round
from botorch.utils.sampling import manual_seed

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.acquisition.dueling import DuelingLogExpectedImprovement
from botorch_skewgp.acquisition.search_domain import (
    AcquisitionFunctionOfCoordinates,
    SearchCoordinates,
    SearchDomain,
)
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
    domain = SearchDomain.build(model, BOUNDS, None, None, model.datapoints)
    share = (domain.spread(1024)[:, 0] < RATE).double().mean()
    assert abs(share - 1 / 6) < 0.01
    with manual_seed(0):
        best, _ = recommend(model, BOUNDS, X_candidates=model.datapoints[:1], num_restarts=1, raw_samples=16)
    assert -6 <= best[0, 0].log10() <= -4


def test_values_of_inputs_come_back_to_the_last_digit(model):
    with manual_seed(0):
        pair, _ = next_pair(model, BOUNDS, discrete_dims={1: BATCHES}, num_restarts=2, raw_samples=16)
    for point in pair.tolist():
        assert point[1] in BATCHES
        assert point[2] in (1.0, 2.0, 3.0)


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_in_single_precision():
    model = judged(dtype=torch.float)
    with manual_seed(0):
        pair, value = next_pair(model, BOUNDS.float(), cat_dims={1: BATCHES}, num_restarts=2, raw_samples=16)
    assert pair.dtype == value.dtype == torch.float
    assert pair[0, 1].item() in BATCHES


def test_pending_points_are_left_as_they_were(model):
    pending = model.datapoints[:1] / 3 + BOUNDS[0]
    acquisition = qExpectedUtilityOfBestOption(model, X_pending=pending)
    domain = SearchDomain.build(model, BOUNDS, {1: BATCHES}, None, model.datapoints)
    with manual_seed(0):
        domain.optimize(acquisition, 2, num_restarts=1, raw_samples=8)
    assert torch.equal(acquisition.X_pending, pending)


def test_options_that_speak_of_points_are_in_units_of_inputs(model):
    constraint = (torch.tensor([1]), torch.tensor([-1.0], dtype=torch.double), -60.0)  # batches of at most 60
    with manual_seed(0):
        challenger = DuelingLogExpectedImprovement(model, BOUNDS[1])
        constrained, _ = next_pair(
            model, BOUNDS, challenger, inequality_constraints=[constraint], num_restarts=2, raw_samples=16
        )
        fixed, _ = next_pair(model, BOUNDS, fixed_features={1: 64.0}, num_restarts=2, raw_samples=16)
    assert constrained[0, 1] <= 60 + 1e-6
    assert fixed[0, 1] == 64


def test_options_stay_the_users(model):
    options = {"maxiter": 2}
    with manual_seed(0):
        next_pair(model, BOUNDS, num_restarts=1, raw_samples=8, options=options)
    assert options == {"maxiter": 2}
    with pytest.raises(UnsupportedError, match="Where inputs have a list of values, leave out options"):
        next_pair(model, BOUNDS, discrete_dims={1: BATCHES}, options=options)


def test_constraints_and_fixed_features_beside_a_list_of_values(model):
    """In units of the inputs: batches of at most 64, at one number of layers."""
    constraint = (torch.tensor([1]), torch.tensor([-1.0], dtype=torch.double), -64.0)
    limits = {"inequality_constraints": [constraint], "fixed_features": {2: 2.0}}
    with manual_seed(0):
        pair, _ = next_pair(model, BOUNDS, discrete_dims={1: BATCHES}, num_restarts=2, raw_samples=16, **limits)
    assert (pair[:, 1] <= 64).all()
    assert (pair[:, 2] == 2).all()
    assert all(value in BATCHES for value in pair[:, 1].tolist())


@pytest.mark.parametrize("seed", range(3))
def test_searches_among_whole_numbers_end_without_warnings(seed):
    """Line searches end at the steps of a rounded input; there are no others where inputs have a list of values."""
    model = judged(seed=seed)
    with warnings.catch_warnings(), manual_seed(seed):
        warnings.simplefilter("error")
        pair, _ = next_pair(model, BOUNDS, num_restarts=2, raw_samples=16)
        best, value = recommend(model, BOUNDS, num_restarts=2, raw_samples=16)
        _, listed = recommend(model, BOUNDS, discrete_dims={2: [1, 2, 3]}, num_restarts=8, raw_samples=64)
    assert pair[0, 2].item() in (1, 2, 3)
    assert best[0, 2].item() in (1, 2, 3)
    torch.testing.assert_close(value, listed, rtol=3e-2, atol=0)  # two starts may end on the second best hill


@pytest.mark.parametrize("seed", range(3))
def test_mixed_searches_end_without_warnings(seed):
    """Climbs end where little is left to gain, before a line search finds no way."""
    model = judged(seed=seed)
    choices = {"discrete_dims": {1: BATCHES}, "cat_dims": {2: [1, 2, 3]}}
    with warnings.catch_warnings(), manual_seed(seed):
        warnings.simplefilter("error")
        next_pair(model, BOUNDS, **choices, num_restarts=4, raw_samples=32)
        recommend(model, BOUNDS, **choices)


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
    with manual_seed(0):
        best, _ = recommend(model, bounds, cat_dims={1: [0.5]}, num_restarts=2, raw_samples=16)
        pair, _ = next_pair(model, bounds, cat_dims={1: [0.5]}, num_restarts=2, raw_samples=16)
    assert best[0, 1] == 0.5
    assert (pair[:, 1] == 0.5).all()


def test_more_than_the_best_is_refused(model):
    for options in ({"return_best_only": False}, {"return_acq_values": False}):
        with pytest.raises(UnsupportedError, match=next(iter(options))):
            next_pair(model, BOUNDS, num_restarts=2, raw_samples=16, **options)
