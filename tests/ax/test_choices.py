"""The best of several arms, and "all of these are bad", from the first round on."""

import pytest

pytest.importorskip("ax")

from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json
from ax_cases import GENERATES, new_client, next_trial, observations, with_trials

from botorch_skewgp.ax import (
    attach_choice,
    complete_pair,
    get_best_arm,
    get_next_pair,
    get_next_question,
    recorded_comparisons,
    withdraw_comparison,
)

pytestmark = GENERATES


@pytest.mark.parametrize(("objective", "is_turned"), [("utility", False), ("-utility", True)])
def test_what_is_stored_is_what_the_model_reads(objective, is_turned):
    client = new_client(objective=objective)
    with_trials(client, [0.1, 0.4, 0.6, 0.8])
    attach_choice(client, 2, [0, 1])
    attach_choice(client, None, ["0_0", 1])
    attach_choice(client, 3, [], or_none=True, judge="ann")
    experiment = object_from_json(object_to_json(client._experiment))
    assert recorded_comparisons(experiment) == recorded_comparisons(client._experiment)
    found = observations(client)["utility"]
    assert set(found) == {"Choice", "ChoiceOrNone"}
    assert (found["Choice"].options.tolist(), found["Choice"].judge) == ([[2, 0, 1]], None)
    assert found["ChoiceOrNone"].judge.tolist() == [0]
    withdraw_comparison(client, 2, 0)
    assert [told.items for told in recorded_comparisons(client._experiment)] == [
        ("2_0", "1_0"),
        ("0_0", "1_0"),
        ("3_0",),
    ]
    assert 0 <= next_trial(client)[1]["x"] <= 1


def test_all_first_answers_are_none():
    """Pairs come, a question is chosen, and what is good at last is recommended."""
    client = new_client(objective="utility", names="xy", initialization_budget=2)
    for _ in range(3):
        index, _ = get_next_pair(client)
        complete_pair(client, index, None, or_none=True)
    assert all(told.refused for told in recorded_comparisons(client._experiment))
    asked = get_next_question(client, {"number": 5.0, "comparison": 1.0})
    assert asked.value >= 0
    index, (first, _) = get_next_pair(client)
    complete_pair(client, index, first, or_none=True)
    assert get_best_arm(client)[2] == first
