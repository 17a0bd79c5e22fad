"""The search among values of a list and free ones: small regions, one-hot categories, constraints, batches."""

import pytest
import torch
from botorch.exceptions.errors import CandidateGenerationError

from botorch_skewgp.acquisition.mixed_search import Factor, MixedDomain, MixedSearch


def domain(*factors, num_free=1, constraints=None):
    """A box of free columns, and then columns of some numbers of values; a negative number is a category, one-hot."""
    low, high, found = [0.0] * num_free, [1.0] * num_free, []
    for count in factors:
        columns = [len(low)] if count > 0 else list(range(len(low), len(low) - count))
        values = torch.arange(float(count)).double().unsqueeze(-1) if count > 0 else torch.eye(-count).double()
        low, high = low + [0.0] * len(columns), high + [float(values.max())] * len(columns)
        found.append(Factor(columns, values, count < 0))
    return MixedDomain(torch.tensor([low, high]).double(), tuple(found), constraints)


class Function(torch.nn.Module):
    """A function of single points, as the search takes it."""

    model, X_pending = None, None

    def __init__(self, of, baseline, log=True):
        super().__init__()
        self.of, self.X_baseline, self._log = of, torch.tensor([baseline]).double(), log
        self.asked = []

    def set_X_pending(self, X):
        self.X_pending = X

    def forward(self, X):
        X = X.squeeze(-2)
        self.asked.append(X.detach())
        values = self.of(X)
        if self.X_pending is None:
            return values
        return values - 5 * (-((X.unsqueeze(1) - self.X_pending).square().sum(-1)) / 0.02).exp().sum(-1)


def best(function, space):
    return MixedSearch(function, space, torch.Generator()).best_point(function.X_baseline).tolist()


def test_a_corner_of_one_combination_of_values_is_found():
    """A wide hill, and a higher one in a corner of a single combination of fifty."""

    def bumps(X):
        wide = -(X[:, 0] - 0.3).square() - 0.1 * (X[:, 1] - 4).square() / 81
        return torch.where((X[:, 1] == 8) & (X[:, 5] == 1), 2 * (X[:, 0] - 0.8), wide)

    found = best(Function(bumps, [0.5, 4, 1, 0, 0, 0, 0]), domain(10, -5))
    assert found == [pytest.approx(1.0), 8, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("count", [2, 500])
def test_many_hills_at_few_values_and_columns_of_many_values(count):
    top = int(0.7 * count)

    def hills(X):
        wave = (12 * X[:, 0]).cos() - 4 * (X[:, 0] - 0.5).square()
        return wave - 9 * ((X[:, 1] - top) / count).square() + X[:, 3]

    assert best(Function(hills, [0.5, top, 1, 0]), domain(count, -2)) == [pytest.approx(0.5206, abs=1e-2), top, 0, 1]


def test_a_narrow_peak_beside_a_point_seen_is_found():
    """As late in a search; a wide hill elsewhere is half as high, and higher than the peak at the point seen."""
    top = torch.tensor([0.5, 0.6, 0.7]).double()

    def hills(X):
        narrow, wide = ((-0.5 * ((X - at) / width).square().sum(-1)).exp() for at, width in ((top, 2e-3), (0.2, 0.2)))
        return narrow + 0.5 * wide

    function = Function(hills, [0.5, 0.603, 0.7], log=False)
    assert best(function, domain(num_free=3)) == pytest.approx(top.tolist(), abs=1e-4)


def test_single_values_are_changed_as_long_as_that_gains():
    """On a narrow ridge, where few of the combinations are seen."""
    function = Function(lambda X: X[:, 1:].sum(-1) - ((X[:, 0] - 0.37) / 0.01).square(), [0.5, 1, 1, 1])
    search = MixedSearch(function, domain(15, 15, 15), torch.Generator(), num_climbs=1)
    assert search.best_point(function.X_baseline).tolist() == [pytest.approx(0.37, abs=1e-3), 14, 14, 14]


def test_categories_are_never_searched_between():
    function = Function(lambda X: X[:, 1:].amin(-1) + X[:, 0], [0.2, 1, 0, 0])
    best(function, domain(-3))
    assert set(torch.cat(function.asked)[:, 1:].unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("log", [True, False])
def test_the_best_point_is_on_the_grid(log):
    target = torch.tensor([0.3, 1, 0, 0, 1]).double()
    function = Function(lambda X: 10 - (X - target).square().sum(-1), [0.9, 0, 1, 0, 0], log)
    assert best(function, domain(3, -3)) == [pytest.approx(0.3, abs=5e-3), 1, 0, 0, 1]


@pytest.mark.filterwarnings("ignore:Failed to sample around previous best points")  # of no model
@pytest.mark.parametrize("count", [100, 20])
def test_no_point_of_a_discrete_space_comes_twice_unless_it_may(count):
    space, target = domain(count, count, num_free=0), torch.tensor([0.3 * count, 0.7 * count]).double()
    function = Function(lambda X: 10 - (X - target).square().sum(-1), [1, 1])
    first = MixedSearch(function, space, torch.Generator()).best_point(function.X_baseline)
    assert first.tolist() == target.tolist()
    second = MixedSearch(function, space, torch.Generator()).best_point(first.unsqueeze(0))
    assert (second - first).abs().sum() == 1
    again = MixedSearch(function, space, torch.Generator(), may_repeat=True).best_point(first.unsqueeze(0))
    assert torch.equal(again, first)


def test_points_of_a_batch_avoid_each_other_and_pending_ones_come_back():
    function = Function(lambda X: -(X[:, 0] - 0.5).square() + 0.1 * X[:, 2], [0.5, 1, 0])
    function.X_pending = torch.tensor([[0.5, 0.0, 1.0]]).double()
    found = MixedSearch(function, domain(-2), torch.Generator()).best_points(3, function.X_baseline)
    assert function.X_pending.tolist() == [[0.5, 0.0, 1.0]]
    apart = torch.cdist(torch.cat([found, function.X_pending]), torch.cat([found, function.X_pending]))
    assert apart[~torch.eye(4, dtype=torch.bool)].min() > 0.1


# x - k/4 >= 0.1 and y <= 0.2, in columns x, y, k
CONSTRAINTS = [
    (torch.tensor([0, 2]), torch.tensor([1.0, -0.25]).double(), 0.1),
    (torch.tensor([1]), torch.tensor([-1.0]).double(), -0.2),
]


@pytest.mark.parametrize("fixed", [{}, {0: 0.4}, {2: 1.0}])
def test_linear_constraints_and_fixed_columns(fixed):
    space = domain(4, -2, num_free=2, constraints=CONSTRAINTS).with_fixed(fixed)
    function = Function(lambda X: X[:, 2] + X[:, 1] - X[:, 0] + 0.5 * X[:, 4], [0.9, 0.1, 0, 1, 0])
    x, y, k, *category = best(function, space)
    assert (k, category) == (1 if fixed else 3, [0, 1])
    assert [x, y] == pytest.approx([fixed.get(0, 0.1 + k / 4), 0.2], abs=1e-3)
    assert x - k / 4 >= 0.1 - 1e-6


def test_a_fixed_category():
    space = domain(3, -3).with_fixed({2: 0.0, 3: 1.0, 4: 0.0})
    assert best(Function(lambda X: X[:, 2] + X[:, 1], [0.5, 0, 1, 0, 0]), space)[1:] == [2, 0, 1, 0]


@pytest.mark.parametrize("num_free", [0, 1])
def test_constraints_that_leave_no_value(num_free):
    space = domain(2, num_free=num_free, constraints=[(torch.tensor([num_free]), torch.ones(1).double(), 0.4)])
    space = space.with_fixed({num_free: 0.0})
    with pytest.raises(CandidateGenerationError, match=r"No point (was found that )?satisfies the constraints"):
        best(Function(lambda X: X[:, 0], [0.5, 0][1 - num_free :]), space)
