"""Parameters as coordinates, and back."""

import math

import optuna
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from botorch_skewgp.optuna.search_space import PATTERN, SearchSpace, search_space_of

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


def trial(number=0, state=TrialState.COMPLETE, **params):
    """A trial whose floats have the range 0 to 1, or 0 to 9, and whose texts and whole numbers are categories."""
    whole, category = IntDistribution(1, 3), CategoricalDistribution("abc")
    spaces = {}
    for name, x in params.items():
        number = FloatDistribution(0, 1) if isinstance(x, str) or x <= 1 else FloatDistribution(0, 9)
        spaces[name] = {str: category, int: whole, float: number}[type(x)]
    value = 0.0 if state == TrialState.COMPLETE else None
    found = optuna.create_trial(params=params, distributions=spaces, value=value, state=state)
    found.number = number
    return found


def inactive(space, **params):
    """The names of the inactive parameters where others have some values."""
    (point,) = space.points([params])
    return {name for name, off in zip(space.distributions, space.domain.inactive(point), strict=True) if off}


BRANCHES = [trial(c="a", x=0.1), trial(c="b", y=0.2), trial(c="a", x=0.3), trial(c="c"), trial(c="b", y=0.4)]


def test_a_category_decides_which_parameters_are_active():
    space = search_space_of(BRANCHES)
    assert list(space.distributions) == ["c", "x", "y"]
    assert [inactive(space, c=c) for c in "abc"] == [{"y"}, {"x"}, {"x", "y"}]
    params = [space.params_of(entry) for entry in BRANCHES]
    assert params == [entry.params for entry in BRANCHES]
    assert space.points(params).tolist() == [[0, 0.1, 0.5], [1, 0.5, 0.2], [0, 0.3, 0.5], [2, 0.5, 0.5], [1, 0.5, 0.4]]
    assert space.params_of(trial(c="a", state=TrialState.FAIL)) is None  # it failed before it was asked for x
    assert space.params(space.points([{"c": "b", "y": 0.7}])[0], active=True) == {"c": "b", "y": 0.7}


def test_a_number_decides_too_and_branches_have_branches():
    trials = [trial(n=n, **{f"w{k}": 0.1 * k for k in range(1, n + 1)}) for n in (1, 3, 2)]
    space = search_space_of(trials)
    assert [inactive(space, n=n) for n in (1, 2, 3)] == [{"w2", "w3"}, {"w3"}, set()]
    nested = [trial(c="a", d="a", x=0.1), trial(c="a", d="b"), trial(c="b"), trial(c="b")]
    space = search_space_of(nested)
    assert [inactive(space, c=c, d=d) for c in "ab" for d in "ab"] == [set(), {"x"}, {"d", "x"}, {"d", "x"}]


def test_where_nothing_decides_the_next_trial_is_taken_to_be_like_the_last_one():
    trials = [trial(u=0.1), trial(v=0.2), trial(u=0.3, v=0.4), trial(v=0.6)]
    space = search_space_of(trials)
    assert list(space.distributions) == ["u", "v", PATTERN]
    X = space.points([space.params_of(entry) for entry in trials])
    assert X[:, :2].tolist() == [[0.1, 0.5], [0.5, 0.2], [0.3, 0.4], [0.5, 0.6]]
    assert X[1, 2] == X[3, 2] == space.domain.bounds[0, 2] == space.domain.bounds[1, 2]
    assert len(X[:3, 2].unique()) == 3
    assert space.params(X[3]) == {"u": 0.5, "v": 0.6}
    assert space.params_of(trial(w=0.3)) is None
    running = trial(state=TrialState.RUNNING, v=0.9)
    assert space.points([space.params_of(running, {"u": 0.2, "v": 0.1})]).tolist() == [[0.5, 0.9, X[3, 2]]]


@pytest.mark.parametrize(("values", "high"), [((0.5, 3.0), 9), ((3.0, 0.5), 9), ((3.0, 0.5, 0.5), 1), ((0.5,), 1)])
def test_the_range_is_that_of_the_last_two_trials(values, high):
    """One of a single trial may depend on its other values; what lies beyond today's still has a coordinate."""
    trials = [trial(x=value) for value in values]
    space = search_space_of(trials)
    assert space.distributions == {"x": FloatDistribution(0, high)}
    points = space.points([space.params_of(entry) for entry in trials])
    assert points.flatten().tolist() == pytest.approx([value / high for value in values])


def test_values_without_a_coordinate():
    log = optuna.create_trial(params={"x": 0.1}, distributions={"x": FloatDistribution(0.01, 1, log=True)}, value=0.0)
    space = search_space_of([trial(x=0.0), log, log])
    assert space.params_of(trial(x=0.0)) is None
    letters = [optuna.create_trial(params={"c": c}, distributions={"c": CategoricalDistribution(of)}, value=0.0)
               for c, of in (("z", "yz"), ("a", "ab"), ("a", "ab"))]  # fmt: skip
    assert [search_space_of(letters).params_of(entry) for entry in letters] == [None, {"c": "a"}, {"c": "a"}]


def test_points_of_a_search_differ_in_what_is_active_alone():
    space = search_space_of([trial(c="a", n=1), trial(c="b"), trial(c="a", n=3), trial(c="c")])
    assert sorted(space.domain.all_points().tolist()) == sorted(
        space.points([{"c": "a", "n": n} for n in (1, 2, 3)] + [{"c": "b"}, {"c": "c"}]).tolist()
    )
    for point in space.domain.spread(32):
        assert torch.equal(point, space.domain.neutralized(point))
    (point,) = space.points([{"c": "b"}])
    assert sorted(space.domain.beside(point)[:, 0].unique().tolist()) == [0, 2]


@pytest.mark.parametrize(("low", "high", "step"), [(-1.0, 0.8, 0.3), (0.05, 1.0, 0.05), (1e-3, 7e-3, 2e-3), (-7, 8, 3)])
def test_bounds_are_the_first_and_the_last_value_of_odd_steps(low, high, step):
    """To the last digit, which BoTorch's search wants."""
    kind = IntDistribution if isinstance(low, int) else FloatDistribution
    space = SearchSpace({"x": kind(low, high, step=step), "y": FloatDistribution(0.0, 1.0)})
    (factor,) = space.domain.factors
    assert torch.equal(factor.values[[0, -1], 0], space.domain.bounds[:, 0])
    assert space.params(space.domain.bounds[1])["x"] == pytest.approx(high)
