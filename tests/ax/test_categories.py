"""Unordered choices are searched by their values, never between them."""

import pytest

pytest.importorskip("ax")

import torch
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.search_space import SearchSpaceDigest
from ax.exceptions.core import UnsupportedError
from ax_cases import GENERATES, new_client, next_trial

from botorch_skewgp.ax.acquisition import _factors

pytestmark = GENERATES

DIGEST = SearchSpaceDigest(
    feature_names=["c_OH_PARAM_0", "c_OH_PARAM_1", "c_OH_PARAM_2", "x", "d_OH_PARAM_0", "k", "d_OH_PARAM_1"],
    bounds=[(0, 1)] * 5 + [(1, 4), (0, 1)],
    ordinal_features=[5],
    discrete_choices={5: [1, 2, 4]},
)
LIKE = torch.empty(0, dtype=torch.double)


def test_factors():
    k, c, d = _factors(DIGEST, LIKE)
    assert (k.columns, k.values.tolist(), k.is_category) == ([5], [[1], [2], [4]], False)
    assert [(factor.columns, len(factor.values)) for factor in (c, d)] == [([0, 1, 2], 3), ([4, 6], 2)]
    assert _factors(SearchSpaceDigest(feature_names=["x"], bounds=[(0, 1)]), LIKE) == ()


FLOAT = RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))
CHOICE = ChoiceParameterConfig(name="c", parameter_type="str", values=["a", "b", "d"], is_ordered=False)
WHOLE = RangeParameterConfig(name="k", parameter_type="int", bounds=(1, 3))


def loss(point):
    return (point.get("x", 0.5) - 0.5) ** 2 + 0.1 * (point.get("k", 2) - 2) ** 2 + 0.3 * (point["c"] != "b")


@pytest.mark.parametrize("parameters", [[FLOAT, WHOLE, CHOICE], pytest.param([WHOLE, CHOICE], marks=pytest.mark.slow)])
def test_batches_are_the_best_points_found_and_lie_apart(parameters):
    """Rounded from between the columns, they had a lower value than random points, and were near each other."""
    client = new_client(parameters=parameters, initialization_budget=5, small=False)
    for _ in range(5):
        ((trial, point),) = client.get_next_trials(max_trials=1).items()
        client.complete_trial(trial, {"loss": loss(point)})
    batch = [next_trial(client)[1] for _ in range(3)]
    for i, first in enumerate(batch):
        for second in batch[:i]:
            same = [first[name] == second[name] for name in first if isinstance(first[name], int | str)]
            apart = [abs(first[name] - second[name]) for name in first if isinstance(first[name], float)]
            assert not all(same) or max(apart, default=0.0) > 1e-3


def test_options_that_this_search_does_not_have():
    client = new_client(parameters=[FLOAT, CHOICE], initialization_budget=1)
    client.complete_trial(client.attach_trial({"x": 0.1, "c": "a"}), {"loss": 1.0})
    spec = client._generation_strategy.nodes_by_name["SkewGP"].generator_specs[0]
    spec.generator_gen_kwargs = {"model_gen_options": {"optimizer_kwargs": {"sequential": True}}}
    with pytest.raises(UnsupportedError, match="has a list of values, leave out sequential"):
        next_trial(client)
