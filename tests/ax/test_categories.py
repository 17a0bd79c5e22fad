"""Unordered choices are searched by their values, never between them."""

import pytest

pytest.importorskip("ax")

import torch
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.search_space import SearchSpaceDigest
from ax_cases import GENERATES, new_client, next_trial

from botorch_skewgp.ax import get_next_pair
from botorch_skewgp.ax.categories import CategoryCoordinates, NumberedAcquisition, categories_of

pytestmark = GENERATES

DIGEST = SearchSpaceDigest(
    feature_names=["c_OH_PARAM_0", "c_OH_PARAM_1", "c_OH_PARAM_2", "x", "d_OH_PARAM_0", "k", "d_OH_PARAM_1"],
    bounds=[(0, 1)] * 5 + [(1, 4), (0, 1)],
    ordinal_features=[5],
    discrete_choices={5: [1, 2, 4]},
)
ONE_HOT = torch.tensor([[0.0, 1, 0, 0.3, 0, 2, 1], [0, 0, 1, 0.7, 1, 4, 0]]).double()
NUMBERED = torch.tensor([[0.3, 2, 1, 1], [0.7, 4, 2, 0]]).double()


def test_coordinates():
    coordinates = CategoryCoordinates(DIGEST)
    assert torch.equal(coordinates.numbered(ONE_HOT), NUMBERED)
    assert torch.equal(coordinates.one_hot(NUMBERED), ONE_HOT)
    digest = coordinates.digest
    assert digest.feature_names == ["x", "k", "c", "d"]
    assert digest.bounds == [(0, 1), (1, 4), (0, 2), (0, 1)]
    assert (digest.ordinal_features, digest.categorical_features) == ([1], [2, 3])
    assert digest.discrete_choices == {1: [1, 2, 4], 2: [0, 1, 2], 3: [0, 1]}
    fixed = coordinates.fixed_features({0: 0.0, 1: 0.0, 2: 1.0, 5: 4.0})
    assert fixed == {1: 4.0, 2: 2.0}
    ((indices, _, bound),) = coordinates.constraints([(torch.tensor([5, 3]), torch.ones(2), 0.5)])
    assert (indices.tolist(), bound) == ([1, 0], 0.5)
    assert torch.equal(coordinates.rounding(lambda X: X.round())(NUMBERED)[:, 0], torch.tensor([0.0, 1.0]).double())
    assert categories_of(SearchSpaceDigest(feature_names=["x"], bounds=[(0, 1)])) is None


FLOATS = [RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1)) for name in "xy"]
CHOICE = ChoiceParameterConfig(name="c", parameter_type="str", values=["a", "b", "d"], is_ordered=False)
WHOLE = RangeParameterConfig(name="k", parameter_type="int", bounds=(1, 3))


def loss(point):
    return (point.get("x", 0.5) - 0.5) ** 2 + 0.1 * (point.get("k", 2) - 2) ** 2 + 0.3 * (point["c"] != "b")


@pytest.mark.parametrize("kinds", ["mixed", "floats", "discrete"])
def test_batches_are_the_best_points_found_and_lie_apart(kinds, monkeypatch):
    """Rounded from between the columns, they had a lower value than random points, and were near each other."""
    parameters = {"mixed": [FLOATS[0], WHOLE, CHOICE], "floats": [*FLOATS, CHOICE], "discrete": [WHOLE, CHOICE]}[kinds]
    client = new_client(parameters=parameters, initialization_budget=5, small=False)
    asked = []
    original = NumberedAcquisition.forward

    def remember(self, X):
        asked.append(X.detach()[..., -1])
        return original(self, X)

    for _ in range(5):
        ((trial, point),) = client.get_next_trials(max_trials=1).items()
        client.complete_trial(trial, {"loss": loss(point)})
    monkeypatch.setattr(NumberedAcquisition, "forward", remember)
    batch = [next_trial(client)[1] for _ in range(3)]
    assert set(torch.cat([entry.flatten() for entry in asked]).tolist()) <= {0.0, 1.0, 2.0}
    for i, first in enumerate(batch):
        for second in batch[:i]:
            same = [first[name] == second[name] for name in first if isinstance(first[name], int | str)]
            apart = [abs(first[name] - second[name]) for name in first if isinstance(first[name], float)]
            assert not all(same) or max(apart, default=0.0) > 1e-3


def test_pairs():
    client = new_client(objective="utility", parameters=[FLOATS[0], CHOICE], initialization_budget=1)
    for point in ({"x": 0.1, "c": "a"}, {"x": 0.5, "c": "b"}):
        client.complete_trial(client.attach_trial(point), {"utility": float(point["x"])})
    _, arms = get_next_pair(client)
    first, second = arms.values()
    assert first != second
    assert {first["c"], second["c"]} <= {"a", "b", "d"}
