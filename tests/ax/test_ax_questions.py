"""Whether a number or a comparison is asked for, by their prices."""

import math

import pytest

pytest.importorskip("ax")

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.exceptions.core import UserInputError
from ax_cases import GENERATES, new_client, snapshot

from botorch_skewgp.ax import attach_comparison, complete_pair, get_next_question, recorded_comparisons

pytestmark = GENERATES


def loss(parameters):
    return (parameters["x"] - 0.4) ** 2


def answer(client, asked):
    """Answer a question by the true loss."""
    if asked.ask == "number":
        ((_, parameters),) = asked.arms.items()
        client.complete_trial(asked.trial_index, {"loss": loss(parameters)})
    else:
        complete_pair(client, asked.trial_index, min(asked.arms, key=lambda name: loss(asked.arms[name])))


@pytest.mark.parametrize("objective", ["-loss", "loss"])
def test_the_price_decides(objective):
    client = new_client(objective=objective, initialization_budget=2)
    for x in (0.1, 0.7, 0.9):
        client.complete_trial(client.attach_trial({"x": x}), {"loss": loss({"x": x})})
    asked = get_next_question(client, {"number": 1e6, "comparison": 1.0})
    assert (asked.ask, asked.cost, len(asked.arms)) == ("comparison", 1.0, 2)
    assert 0 <= asked.value < 1
    answer(client, asked)
    assert len(recorded_comparisons(client._experiment)) == 1
    asked = get_next_question(client, {"comparison": 1e6, "number": 1.0})
    assert (asked.ask, asked.cost, len(asked.arms)) == ("number", 1.0, 1)
    answer(client, asked)
    assert asked.trial_index in client._experiment.lookup_data().df["trial_index"].tolist()


def test_low_is_good_where_the_objective_is_minimised():
    """The value of a question does not depend on which way the metric goes."""
    values = []
    for sign in (1, -1):
        client = new_client(objective="-loss" if sign > 0 else "loss", initialization_budget=2)
        for x in (0.1, 0.7, 0.9):
            client.complete_trial(client.attach_trial({"x": x}), {"loss": sign * loss({"x": x})})
        attach_comparison(client, 1, 2)
        values.append(get_next_question(client, {"number": 1.0}).value)
    assert values[0] == pytest.approx(values[1], rel=1e-3)
    assert values[0] > 0


def test_values_are_in_units_of_the_objective():
    """A hundredfold loss has a hundredfold value, though models are of the same standard scale."""
    values = []
    for unit in (1.0, 100.0):
        client = new_client(initialization_budget=2)
        for x in (0.1, 0.6, 0.7, 0.9):
            client.complete_trial(client.attach_trial({"x": x}), {"loss": unit * loss({"x": x})})
        values.append(get_next_question(client, {"number": 1.0}).value)
    assert values[1] == pytest.approx(100 * values[0], rel=1e-2)


def test_the_cheaper_kind_as_long_as_nothing_is_known():
    client = new_client()
    asked = get_next_question(client, {"number": 3.0, "comparison": 1.0})
    assert asked.ask == "comparison"
    assert math.isnan(asked.value)
    assert get_next_question(client, {"number": 1.0, "comparison": 3.0}).ask == "number"


@pytest.mark.slow
def test_categories_and_integers():
    parameters = [
        RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1)),
        RangeParameterConfig(name="n", parameter_type="int", bounds=(0, 5)),
        ChoiceParameterConfig(name="c", parameter_type="str", values=["a", "b", "c"], is_ordered=False),
    ]
    client = new_client(parameters=parameters, initialization_budget=2)
    for _ in range(6):
        answer(client, get_next_question(client, {"number": 3.0, "comparison": 1.0}))
    assert len(client._experiment.trials) == 6


def test_mistakes_change_nothing():
    client = new_client()
    before = snapshot(client)
    for costs in ({}, None, {"duel": 1.0}, 3.0):
        with pytest.raises(UserInputError, match="costs must be a price for each of"):
            get_next_question(client, costs)
    for price in (0.0, -1.0, math.nan, math.inf, "cheap"):
        with pytest.raises(UserInputError, match="The price of a number must be a"):
            get_next_question(client, {"number": price})
    assert snapshot(client) == before
    with pytest.raises(UserInputError, match="has several: a, b"):
        get_next_question(new_client(objective="a, b"), {"number": 1.0})
    client = Client()
    client.configure_experiment(parameters=[RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))])
    with pytest.raises(UserInputError, match="configure_optimization"):
        get_next_question(client, {"number": 1.0})
    client.configure_optimization(objective="-loss")
    with pytest.raises(UserInputError, match="set_generation_strategy"):
        get_next_question(client, {"number": 1.0})
