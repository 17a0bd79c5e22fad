"""Parameters as coordinates, and back."""

import math

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from botorch_skewgp.optuna.search_space import SearchSpace

DISTRIBUTIONS = {
    "float": FloatDistribution(-2.0, 6.0),
    "log": FloatDistribution(1e-4, 1.0, log=True),
    "stepped": FloatDistribution(0.0, 1.0, step=0.1),
    "int": IntDistribution(1, 4),
    "even": IntDistribution(2, 10, step=2),
    "log_int": IntDistribution(1, 64, log=True),
    "many": IntDistribution(0, 10**6),
    "category": CategoricalDistribution(("a", None, 3)),
}
LOW = {"float": -2.0, "log": 1e-4, "stepped": 0.0, "int": 1, "even": 2, "log_int": 1, "many": 0, "category": "a"}
HIGH = {"float": 6.0, "log": 1.0, "stepped": 1.0, "int": 4, "even": 10, "log_int": 64, "many": 10**6, "category": 3}
MIDDLE = {"float": 2.0, "log": 1e-2, "stepped": 0.5, "int": 2, "even": 6, "log_int": 8, "many": 77, "category": None}


def contains(distribution, value):
    return distribution._contains(distribution.to_internal_repr(value))


@pytest.fixture
def space() -> SearchSpace:
    return SearchSpace(DISTRIBUTIONS)


@pytest.mark.parametrize("params", [LOW, MIDDLE, HIGH])
def test_values_come_back(space, params):
    (point,) = space.points([params])
    back = space.params(point)
    for name, value in back.items():
        assert value == (pytest.approx(params[name]) if isinstance(params[name], float) else params[name])
        assert isinstance(value, type(params[name]))
        assert contains(DISTRIBUTIONS[name], value)


def test_coordinates_are_of_equal_cells(space):
    (point,) = space.points([MIDDLE])
    coordinates = dict(zip(DISTRIBUTIONS, point.tolist(), strict=True))
    assert coordinates["float"] == 0.5
    assert coordinates["log"] == pytest.approx(0.5)
    assert coordinates["int"] == pytest.approx(3 / 8)  # the second of four cells
    assert coordinates["log_int"] == pytest.approx(math.log(8 / 0.5) / math.log(64.5 / 0.5))
    assert coordinates["category"] == 1


def test_stepped_coordinates_and_categories_have_values_from_bound_to_bound(space):
    names, factors = list(DISTRIBUTIONS), space.domain.factors
    num_values = {names[factor.columns[0]]: len(factor.values) for factor in factors}
    assert num_values == {"stepped": 11, "int": 4, "even": 5, "log_int": 64, "category": 3}
    assert [names[factor.columns[0]] for factor in factors if factor.is_category] == ["category"]
    assert factors[-1].values.flatten().tolist() == [0.0, 1.0, 2.0]
    for factor in factors:
        assert torch.equal(factor.values[[0, -1], 0], space.domain.bounds[:, factor.columns[0]])
    assert space.domain.num_points == math.inf


def test_points_of_the_optimiser_become_values(space):
    """Whatever is between the bounds becomes a value of each distribution."""
    lower, upper = space.domain.bounds
    shares = torch.rand(50, space.dim, generator=torch.Generator().manual_seed(0)).double()
    for point in lower + (upper - lower) * shares:
        assert all(contains(DISTRIBUTIONS[name], value) for name, value in space.params(point).items()), point


def test_takes_trials_with_the_same_distributions_alone(space):
    assert space.takes(MIDDLE, DISTRIBUTIONS)
    assert not space.takes({k: v for k, v in MIDDLE.items() if k != "int"}, DISTRIBUTIONS)
    assert not space.takes(MIDDLE, DISTRIBUTIONS | {"int": IntDistribution(1, 5)})


@pytest.mark.parametrize(("low", "high", "step"), [(-1.0, 0.8, 0.3), (0.05, 1.0, 0.05), (1e-3, 7e-3, 2e-3), (-7, 8, 3)])
def test_bounds_are_the_first_and_the_last_value_of_odd_steps(low, high, step):
    """To the last digit, which BoTorch's search wants."""
    kind = IntDistribution if isinstance(low, int) else FloatDistribution
    space = SearchSpace({"x": kind(low, high, step=step), "y": FloatDistribution(0.0, 1.0)})
    (factor,) = space.domain.factors
    assert torch.equal(factor.values[[0, -1], 0], space.domain.bounds[:, 0])
    assert space.params(space.domain.bounds[1])["x"] == pytest.approx(high)
