"""Data that cannot be right: a clear error, the experiment as it was, and the loop goes on."""

import math
import warnings

import numpy as np
import pytest
from ax.api.client import Client
from ax.core.arm import Arm
from ax.exceptions.core import UserInputError
from ax.generators.torch.botorch_modular.generator import BoTorchGenerator
from ax_cases import GENERATES, database, new_client, next_trial, node_of, observations, snapshot, with_trials
from botorch.exceptions.errors import ModelFittingError
from botorch.exceptions.warnings import InputDataWarning

from botorch_skewgp.ax import (
    attach_censored,
    attach_comparison,
    complete_pair,
    get_best_arm,
    get_next_pair,
    recorded_comparisons,
    withdraw_censored,
    withdraw_comparison,
    withdraw_unreadable,
)
from botorch_skewgp.ax.comparisons import recorded

pytestmark = GENERATES


@pytest.fixture(scope="module")
def four():
    """Trials 0, 1 and 3 have one arm, trial 2 has two; trial 4 is a pair that was answered, and 5 one that was left."""
    client = new_client(initialization_budget=99)
    with_trials(client, [0.1, 0.5])
    trial = client._experiment.new_batch_trial()
    trial.add_arms_and_weights([Arm({"x": 0.2}), Arm({"x": 0.3})])
    trial.mark_running(no_runner_required=True)
    client.attach_trial({"x": 0.5})  # the arm of trial 1
    complete_pair(client, get_next_pair(client)[0], "4_1")
    client.mark_trial_abandoned(get_next_pair(client)[0])
    get_next_pair(client)
    attach_censored(client, np.int64(1), "loss", lower=np.float32(1))
    attach_comparison(client, "2_1", 0)
    judgements, bounds, *_ = recorded(client._experiment)
    assert bounds == {(1, "1_0", "loss"): (1.0, math.inf)}
    assert [entry.items for entry in judgements] == [("4_1", "4_0"), ("2_1", "0_0")]
    return client


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda client: attach_comparison(client, "0_7", 1), "no arm '0_7' in the experiment; its arms are 0_0, 1_0"),
        (lambda client: attach_comparison(client, 0, "0_0"), "0 and '0_0' are the same arm"),
        (lambda client: attach_comparison(client, 1, 3), "1 and 3 are the same arm, 1_0"),
        (lambda client: attach_comparison(client, 0, 2), r"Trial 2 has 2 arms; name one of \['2_0', '2_1'\]"),
        (lambda client: attach_censored(client, 1, [], lower=1.0), r"There is no metric \[\]"),
        (lambda client: attach_censored(client, [], "loss", lower=1.0, arm_name="1_0"), r"Trial \[\] has no arm '1_0'"),
        (lambda client: attach_censored(client, True, "loss", lower=1.0, arm_name="1_0"), "Trial True has no arm"),
        (lambda client: withdraw_comparison(client, [], 0), r"There is no trial \[\]"),
        (lambda client: withdraw_censored(client, True, "loss"), "Trial True has no bounds"),
        (lambda client: complete_pair(client, [], None), r"Trial \[\] was not created by get_next_pair"),
        (lambda client: complete_pair(client, 0, None), "Trial 0 was not created by get_next_pair; use attach_comp"),
        (lambda client: complete_pair(client, 99, None), "Trial 99 was not created"),
        (lambda client: complete_pair(client, 4, "4_0"), "Trial 4 is COMPLETED; only running pairs can be answered"),
        (lambda client: complete_pair(client, 5, None), "Trial 5 is ABANDONED"),
        (lambda client: complete_pair(client, 6, "0_0"), "winner must be one of"),
        (lambda client: complete_pair(client, 6, 6), "winner must be one of"),
        (recorded_comparisons, "experiment must be an Experiment of Ax; got"),
    ],
)
def test_mistakes_are_refused_and_change_nothing(four, call, match):
    before = snapshot(four)
    with pytest.raises(UserInputError, match=match):
        call(four)
    assert snapshot(four) == before


@pytest.mark.parametrize(
    ("client", "match"), [(None, "client must be a Client of Ax; got None"), (Client(), "has no experiment yet")]
)
def test_no_client_or_one_without_an_experiment(client, match):
    for call in (lambda client: attach_comparison(client, 1, 0), get_best_arm, get_next_pair, withdraw_unreadable):
        with pytest.raises(UserInputError, match=match):
            call(client)


def ready(**kwargs):
    """Two trials with numbers and a third that runs: the next candidate is that of a model."""
    client = new_client(**kwargs)
    with_trials(client, [0.1, 0.5, 0.9], [{"loss": 1.0}, {"loss": 2.0}])
    return client


@pytest.mark.parametrize(
    ("attach", "value", "message"),
    [
        ("attach_data", math.nan, "Trial 2 reports nan for 'loss'"),
        ("complete_trial", (1.0, -0.1), "Trial 2 reports the standard error -0.1 for 'loss'"),
        ("complete_trial", (1.0, math.inf), "Trial 2 reports the standard error inf for 'loss'"),
    ],
)
def test_data_that_cannot_be_right(attach, value, message):
    """The advice works: that the trial failed, which the client refuses for completed trials, or the right number."""
    client = ready()
    getattr(client, attach)(2, {"loss": value})
    before = snapshot(client)
    for _ in range(2):  # at each call
        with pytest.raises(UserInputError, match=f"{message}.*attach_data") as caught:
            next_trial(client)
    assert snapshot(client) == before
    if attach == "attach_data":
        assert "client.mark_trial_failed(2)" in str(caught.value)
        client.mark_trial_failed(2)
    else:
        assert "client.attach_data(2, {'loss': math.inf})" in str(caught.value)
        client.attach_data(2, {"loss": 3.0 if value[1] < 0 else math.inf})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        index, _ = next_trial(client)
    assert (index, node_of(client, index)) == (3, "SkewGP")


def test_an_entry_of_nothing_is_no_comparison_to_take_back():
    client = new_client()
    with_trials(client, [0.1, 0.5])
    client._experiment._properties["skewgp_comparisons"] = [None]
    with pytest.raises(UserInputError, match="were not compared"):
        withdraw_comparison(client, 0, 1)


def test_a_number_without_a_square_of_another_metric_is_left_out(recwarn):
    client = ready(constraints=["cost <= 1"])
    for index, cost in enumerate([0.5, 2.0, math.inf]):
        client.attach_data(index, {"cost": cost})
    assert observations(client)["cost"]["Numeric"].values.tolist() == [0.5, 2.0]
    assert any("'cost' of trial 2" in str(entry.message) for entry in recwarn)
    assert "validity" not in observations(client)


def test_a_fit_that_fails_once_is_tried_again_and_fails_at_each_call(monkeypatch):
    """Without a word the next candidates would come from the model of fewer data."""
    client = ready()
    next_trial(client)
    client.complete_trial(2, {"loss": 3.0})

    def fail(self, *args, **kwargs):
        raise ModelFittingError("no fit")

    with monkeypatch.context() as patched:
        patched.setattr(BoTorchGenerator, "fit", fail)
        for _ in range(2):
            with pytest.raises(ModelFittingError, match="no fit"):
                next_trial(client)
    next_trial(client)
    assert len(observations(client)["loss"]["Numeric"].values) == 3


@pytest.mark.parametrize("kwargs", [{"validity_metric": "works"}, {"binary_metrics": ["works"]}])
def test_labels_that_are_neither_0_nor_1(kwargs):
    client = ready(constraints=["works >= 0.5"], **kwargs)
    client.attach_data(0, {"works": 1})
    for value, message in [(0.3, "0.3 for"), (2, "2.0 for"), (-1, "-1.0 for"), (math.nan, "nan for")]:
        client.attach_data(2, {"works": value})
        before = snapshot(client)
        with pytest.raises(UserInputError, match=f"Trial 2 reports {message} 'works'"):
            next_trial(client)
        assert snapshot(client) == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TypeDecorator JSONEncodedText")  # Ax's, when it loads
def test_a_database_that_goes_away_and_comes_back(tmp_path, monkeypatch):
    """What was told meanwhile is stored with the rest; a comparison that could not be stored can be made again."""
    from ax.storage.sqa_store.db import get_engine
    from sqlalchemy.exc import OperationalError

    monkeypatch.setattr("ax.utils.common.executils.time.sleep", lambda seconds: None)  # Ax waits and tries again
    path, away = tmp_path / "experiment.db", tmp_path / "away.db"
    storage = database(path)
    client = new_client(name="experiment", storage_config=storage)
    first, second, third = with_trials(client, [0.1, 0.5, 0.7], [{"loss": 0.3}])
    attach_comparison(client, second, first)
    get_engine().dispose()
    path.rename(away)
    path.mkdir()  # a file would be made anew
    unable = "unable to open database file"
    for call in (lambda: client.complete_trial(second, {"loss": 0.1}), lambda: client.mark_trial_failed(third)):
        with pytest.raises(OperationalError, match=unable):
            call()
    before = snapshot(client)
    for record in (attach_comparison, withdraw_comparison):
        with pytest.raises(OperationalError, match=unable):
            record(client, second, first)
        assert snapshot(client) == before
    with pytest.raises(OperationalError, match=unable):
        get_next_pair(client)
    path.rmdir()
    away.rename(path)
    index, arms = get_next_pair(client)
    complete_pair(client, index, next(iter(arms)))
    get_engine().dispose()
    stored = Client.load_from_database("experiment", storage_config=storage)._experiment
    assert stored.trials[third].status.is_failed
    assert stored.trials[index].status.is_completed
    assert stored.trials[index - 1].status.is_abandoned  # the pair of which nobody heard
    assert sorted(stored.lookup_data().df["mean"]) == pytest.approx([0.1, 0.3])
    assert len(recorded_comparisons(stored)) == 2
