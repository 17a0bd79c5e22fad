"""Whatever others have written into an experiment's properties: what can be read is used, the rest is told."""

import warnings

import pytest

pytest.importorskip("ax")

from ax_cases import GENERATES, new_client, next_trial, with_trials
from botorch.exceptions.warnings import InputDataWarning
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from botorch_skewgp.ax import (
    attach_censored,
    attach_comparison,
    recorded_bounds,
    recorded_comparisons,
    withdraw_unreadable,
)

arms = st.sampled_from(["0_0", "1_0", "2_0", "9_9"])
scalars = st.none() | st.booleans() | st.integers() | st.integers(-1, 3) | st.floats() | st.text(max_size=4) | arms
json = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
likely = arms | st.integers(0, 3) | st.just("loss") | json
COMPARISON, BOUND = ("winner", "loser", "tie", "judge"), ("trial", "arm", "metric", "lower", "upper")
entries_of = {
    names: json | st.lists(json | st.fixed_dictionaries({}, optional=dict.fromkeys(names, likely)), max_size=4)
    for names in (COMPARISON, BOUND)
}
PROPERTIES = st.fixed_dictionaries(
    {}, optional={"skewgp_comparisons": entries_of[COMPARISON], "skewgp_censored": entries_of[BOUND]}
)


def experiment(properties):
    """Three trials, of which two have numbers, and an entry of each kind besides those given."""
    client = new_client()
    with_trials(client, [0.1, 0.5, 0.9])
    client.complete_trial(0, {"loss": 1.0})
    client.complete_trial(1, {"loss": 2.0})
    client._experiment._properties.update(properties)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        attach_comparison(client, 0, 1)
        attach_censored(client, 2, "loss", lower=1.5)
    return client


def told(action):
    """What is said of entries that are left out; nothing else is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    assert all(issubclass(entry.category, InputDataWarning) for entry in caught)
    return [str(entry.message) for entry in caught]


def read(client):
    return recorded_comparisons(client._experiment), recorded_bounds(client._experiment)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROPERTIES)
def test_any_properties_are_read_or_told_and_can_be_taken_back(properties):
    client = experiment(properties)
    messages = told(lambda: read(client))
    assert all(message.startswith(("skewgp_comparisons[", "skewgp_censored[")) for message in messages)
    assert all("withdraw_unreadable(client)" in message for message in messages)
    comparisons, bounds = read(client)
    assert {name for entry in comparisons for name in (entry.winner, entry.loser)} <= {"0_0", "1_0", "2_0"}
    assert {entry.arm_name for entry in bounds} <= {"0_0", "1_0", "2_0"}
    assert ("0_0", "1_0") in [(entry.winner, entry.loser) for entry in comparisons]
    assert told(lambda: read(client)) == []  # once
    withdraw_unreadable(client)
    known = sum(len(client._experiment._properties[key]) for key in ("skewgp_comparisons", "skewgp_censored"))
    assert known >= len(comparisons) + len(bounds)  # a second bound of a trial replaces the first
    assert read(client) == (comparisons, bounds)


@pytest.mark.slow
@pytest.mark.filterwarnings(GENERATES[0].args[0])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROPERTIES)
def test_the_strategy_goes_on_whatever_others_wrote(properties):
    client = experiment(properties)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        _, parameters = next_trial(client)
    assert 0 <= parameters["x"] <= 1
