"""Preference exploration: the utility of several outcomes is a SkewGP that learns from comparisons of outcomes."""

import pytest

pytest.importorskip("ax")

from ax.api.client import Client
from ax.exceptions.core import UserInputError
from ax_cases import GENERATES, new_client, next_trial, node_of, small_strategy

from botorch_skewgp.ax import AxSkewGP, compare_outcomes, configure_preference_exploration
from botorch_skewgp.observations import Numeric, Preference

pytestmark = GENERATES


def outcomes(x: float) -> dict[str, float]:
    return {"speed": 2 * x, "comfort": 1 - x**2}


def utility(values: dict[str, float]) -> float:
    """Best at x = 1 / 2 or so."""
    return min(values["speed"], 4 / 3 * values["comfort"])


def explored(names=("speed", "comfort"), num_trials=4) -> Client:
    client = new_client()
    configure_preference_exploration(client, names)
    client.set_generation_strategy(small_strategy())
    seen = []
    for _ in range(num_trials):
        index, parameters = next_trial(client)
        seen.append(outcomes(parameters["x"]))
        client.complete_trial(index, seen[-1])
        if len(seen) > 1:
            better, worse = sorted(seen[-2:], key=utility, reverse=True)
            compare_outcomes(client, winner=better, loser=worse)
    return client


@pytest.mark.filterwarnings("ignore:TypeDecorator")  # Ax's tables and SQLAlchemy
def test_several_experiments_in_one_database(tmp_path):
    """Ax wants auxiliary experiments in the database before those that refer to them."""
    from ax.api.configs import StorageConfig
    from ax.storage.sqa_store.db import create_all_tables, get_engine, init_engine_and_session_factory

    url = f"sqlite:///{tmp_path / 'experiments.db'}"
    init_engine_and_session_factory(url=url)
    create_all_tables(get_engine())
    for name in ("one", "two"):
        client = new_client(name=name, storage_config=StorageConfig(url=url))
        configure_preference_exploration(client, ["speed", "comfort"])
        compare_outcomes(client, winner={"speed": 1, "comfort": 2}, loser={"comfort": 3, "speed": 0.5})
        loaded = Client.load_from_database(name, storage_config=StorageConfig(url=url))
        assert len(preferences(loaded).trials) == 1
        assert len(preferences(loaded).lookup_data().df) == 2


def preferences(client: Client):
    return next(iter(client._experiment.auxiliary_experiments_by_purpose.values()))[0].experiment


def test_a_loop(made):
    client = explored(num_trials=5)
    assert [node_of(client, i) for i in range(5)] == ["Sobol"] * 3 + ["SkewGP"] * 2
    models = client._generation_strategy.adapter.generator.surrogate.model.models
    assert [type(model) for model in models] == [AxSkewGP, AxSkewGP]
    assert all(isinstance(entry, Numeric) for model in models for entry in model.observations)
    utility_model = made[-1].acqf.objective.pref_model
    assert type(utility_model) is AxSkewGP
    (entry,) = utility_model.observations
    assert isinstance(entry, Preference)
    assert len(entry.pairs) == 3  # those known when the last candidate was generated


@pytest.mark.slow
def test_the_order_of_metrics_does_not_matter():
    one, other = (
        explored(names, num_trials=5)._experiment.trials for names in (("comfort", "speed"), ("speed", "comfort"))
    )
    assert one[4].arms[0].parameters == other[4].arms[0].parameters


def test_what_is_recorded():
    client = new_client()
    configure_preference_exploration(client, ["speed", "comfort"])
    compare_outcomes(client, winner={"speed": 1, "comfort": 2}, loser={"comfort": 3, "speed": 0.5})
    experiment = preferences(client)
    assert list(experiment.search_space.parameters) == ["comfort", "speed"]
    (trial,) = experiment.trials.values()
    assert [arm.parameters for arm in trial.arms] == [{"speed": 1.0, "comfort": 2.0}, {"speed": 0.5, "comfort": 3.0}]
    data = experiment.lookup_data().df
    assert dict(zip(data["arm_name"], data["mean"], strict=True)) == {"0_0": 1.0, "0_1": 0.0}
    assert set(data["metric_name"]) == {"pairwise_pref_query"}


@pytest.mark.parametrize("names", [[], ["speed"], ["speed", "speed"], ["speed", "comfort", "speed"]])
def test_metrics_must_be_different(names):
    client = new_client()
    config = client._experiment.optimization_config
    with pytest.raises(UserInputError, match="at least two different metrics"):
        configure_preference_exploration(client, names)
    assert client._experiment.optimization_config is config
    assert not client._experiment.auxiliary_experiments_by_purpose


@pytest.mark.parametrize(
    ("names", "match"),
    [
        ("ab", r"metric_names must be a list of names; write \['ab'\]"),
        ([1, 2], r"metric_names must be a list of names; got \[1, 2\]"),
    ],
)
def test_names_must_be_texts(names, match):
    client = new_client()
    with pytest.raises(UserInputError, match=match):
        configure_preference_exploration(client, names)
    assert not client._experiment.auxiliary_experiments_by_purpose


@pytest.mark.parametrize(
    ("winner", "loser", "match"),
    [
        ({"speed": 1.0}, {"speed": 1.0, "comfort": 2.0}, r"winner must have one finite number for each of \['comfort'"),
        ({"speed": 1.0, "comfort": 2.0}, {"speed": 1.0, "price": 2.0}, "loser must have one finite number"),
        ({"speed": 1.0, "comfort": 2.0, "x": 0.0}, {"speed": 0.0, "comfort": 2.0}, "winner must have"),
        ({"speed": float("nan"), "comfort": 2.0}, {"speed": 0.0, "comfort": 2.0}, "'speed' of winner must be a finite"),
        ({"speed": 1.0, "comfort": 2.0}, {"speed": float("inf"), "comfort": 2.0}, "'speed' of loser must be a finite"),
        ({"speed": 1.0, "comfort": 2.0}, {"speed": 1.0, "comfort": 2.0}, "winner and loser are the same outcomes"),
        (
            {"speed": "x", "comfort": 2.0},
            {"speed": 1.0, "comfort": 2.0},
            "'speed' of winner must be a finite number; got 'x'",
        ),
        ({"speed": 1.0, "comfort": 2.0}, {"speed": 1.0, "comfort": None}, "'comfort' of loser must be a finite number"),
        ([1.0, 2.0], {"speed": 1.0, "comfort": 2.0}, r"winner must have one finite number.*got \[1.0, 2.0\]"),
    ],
)
def test_comparisons_that_cannot_be_right(winner, loser, match):
    client = new_client()
    configure_preference_exploration(client, ["speed", "comfort"])
    with pytest.raises(UserInputError, match=match):
        compare_outcomes(client, winner=winner, loser=loser)
    assert not preferences(client).trials


def test_comparisons_without_preferences():
    with pytest.raises(UserInputError, match="call configure_preference_exploration first"):
        compare_outcomes(new_client(), winner={"a": 1.0, "b": 2.0}, loser={"a": 0.0, "b": 2.0})
