"""From experiments to observations: validity of every trial, and datasets of several kinds."""

import itertools
import math

import pytest
import torch
from ax.adapter.data_utils import DataLoaderConfig, extract_experiment_data
from ax.api.protocols.metric import IMetric
from ax.api.protocols.runner import IRunner
from ax.core.arm import Arm
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError
from ax_cases import datasets, fitted_adapter, new_client, observations, with_trials

from botorch_skewgp.ax import attach_comparison, get_next_pair
from botorch_skewgp.ax.comparisons import recorded
from botorch_skewgp.ax.data import ObservationDataset, objective_is_known, with_every_trial
from botorch_skewgp.observations import GradedPreference, Numeric, Preference, Tie

NAN = math.nan


def columns(client, objectives=("loss",), validity="validity"):
    """The numbers of an experiment by metric and trial, as the adapter makes them, as text, where NaN equals itself."""
    found = extract_experiment_data(client._experiment, data_loader_config=DataLoaderConfig())
    told = recorded(client._experiment)
    data = with_every_trial(client._experiment, found, objectives, validity, ("validity",), told)
    assert data.arm_data.index.equals(data.observation_data.index)
    found = data.observation_data
    return {
        name: str({trial: value for (trial, _), value in found[part, name].items()})
        for part, name in found.columns
        if part == "mean"
    }


def test_trials_that_failed_or_were_abandoned_are_not_valid_and_reported_labels_take_precedence():
    """A trial without a label is valid if it has a number."""
    client = new_client()
    with_trials(client, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5], [{"loss": 1.0}])
    client.mark_trial_failed(1)
    client.mark_trial_abandoned(2)
    client.attach_data(3, {"loss": 7.0})
    client.mark_trial_abandoned(3)
    client.complete_trial(5)  # without a number; the one before runs
    loss, valid = {0: 1.0, 1: NAN, 2: NAN, 3: NAN}, {0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0}
    assert columns(client) == {"loss": str(loss), "validity": str(valid)}
    assert columns(client, validity=None) == {"loss": str({0: 1.0})}
    client.configure_tracking_metrics(["validity"])
    client.attach_data(0, {"validity": 0.0})
    client.attach_data(5, {"validity": 1.0})
    client.complete_trial(4, {"loss": 2.0})
    assert columns(client)["validity"] == str({0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0, 4: 1.0, 5: 1.0})


def test_of_a_batch_the_abandoned_arms_failed_and_of_an_unanswered_pair_none():
    client = new_client(initialization_budget=10)
    trial = client._experiment.new_batch_trial()
    trial.add_arms_and_weights([Arm({"x": 0.1}), Arm({"x": 0.2}), Arm({"x": 0.3})])
    trial.mark_running(no_runner_required=True)
    client.mark_trial_abandoned(get_next_pair(client)[0])
    assert columns(client) == {}
    trial.mark_arm_abandoned("0_1")
    assert columns(client) == {"validity": str({0: 0.0})}


def test_a_trial_is_valid_if_any_of_several_objectives_has_a_number():
    client = new_client(objective="a, -b")
    with_trials(client, [0.0, 0.1, 0.2], [{"a": 1.0, "b": 2.0}])
    client.attach_data(1, {"b": 3.0})
    client.mark_trial_failed(2)
    a, b, valid = {0: 1.0, 1: NAN, 2: NAN}, {0: 2.0, 1: 3.0, 2: NAN}, {0: 1.0, 1: 1.0, 2: 0.0}
    assert columns(client, objectives=("a", "b")) == {"a": str(a), "b": str(b), "validity": str(valid)}


def test_an_arm_of_several_trials_is_one_point():
    """With all its numbers, by whether their noise is known; trials are compared by their arms."""
    client = new_client(failures="ignore")
    with_trials(client, [0.0, 0.5, 0.0, 0.7, 0.9])
    for index, loss in {0: (1.0, 0.5), 1: 4.0, 2: (3.0, 0.0), 4: 2.0}.items():
        client.complete_trial(index, {"loss": loss})
    attach_comparison(client, 2, 1)
    attach_comparison(client, 3, 2, tie=True)
    given = datasets(client)["loss"]
    assert given.X.flatten().tolist() == [0.0, 0.5, 0.7, 0.9]
    assert given.group_indices.tolist() == [0, 1, 3, 4]
    assert str(given.Y.isnan().flatten().tolist()) == str([False, False, True, False])
    known, unknown, duel, tie = given.observations
    assert (known.index.tolist(), unknown.index.tolist(), unknown.noise) == ([0, 0], [1, 3], None)
    assert known.noise[0] > known.noise[1] == 0
    assert given.Y[0, 0] == pytest.approx(known.values.mean().item())
    assert (duel.pairs.tolist(), tie.pairs.tolist()) == ([[0, 1]], [[2, 0]])


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_an_objective_without_a_finite_number_is_named():
    client = new_client()
    with_trials(client, [0.3], [{"loss": math.inf}])
    with pytest.raises(DataRequiredError, match="No trial has a number for the objective 'loss'"):
        fitted_adapter(client)


def test_equality_of_datasets():
    duel = Preference([[0, 2]])

    def make(Y=(1.0, 2.0, NAN), told=(duel,), **kwargs):
        options = {"feature_names": ["x"], "outcome_names": ["loss"], "group_indices": torch.tensor([0, 1, 2])}
        options |= {"kinds": (Numeric, Preference)} | kwargs
        return ObservationDataset(torch.zeros(3, 1), torch.tensor([Y]).mT, observations=told, **options)

    assert make() == make() != "something else"
    graded = [kind([[0, 2]], strength=[1], num_strengths=2) for kind in (Preference, GradedPreference)]
    changes = [
        {"Y": (1.0, 2.0, 3.0)},
        *({"told": [entry]} for entry in (Preference([[2, 0]]), Tie([[0, 2]]), *graded)),
        {"kinds": (Numeric, Preference, Tie)},
        {"minimize": True},
        {"group_indices": torch.tensor([0, 1, 1])},
        {"feature_names": ["y"]},
        {"outcome_names": ["other"]},
    ]
    sets = [make(), *(make(**change) for change in changes)]
    assert all(one != other for one, other in itertools.combinations(sets, 2))


@pytest.mark.parametrize("how", ["mark_trial_failed", "mark_trial_abandoned"])
def test_all_objectives_must_be_known_of_one_trial_that_worked(how):
    client = new_client(objective="-a, -b")
    with_trials(client, [0.1, 0.5, 0.7])
    for index, told in ((0, {"a": 1.0}), (1, {"b": 1.0}), (1, {"a": math.inf}), (1, {"a": 2.0})):
        assert not objective_is_known(client._experiment)
        client.attach_data(index, told)
    assert objective_is_known(client._experiment)
    getattr(client, how)(1)
    assert not objective_is_known(client._experiment)


@pytest.mark.slow
def test_a_number_that_could_not_be_fetched_says_nothing_of_its_trial():
    class Runner(IRunner):
        def run_trial(self, trial_index, parameterization):
            return {}

        def poll_trial(self, trial_index, trial_metadata):
            return TrialStatus.FAILED if trial_index == 1 else TrialStatus.COMPLETED

    class Loss(IMetric):
        def fetch(self, trial_index, trial_metadata):
            if trial_index == 2:
                raise ConnectionError("the file server is away")
            return 0, float(trial_index)

    client = new_client()
    client.configure_runner(Runner())
    client.configure_metrics([Loss(name="loss")])
    client.run_trials(max_trials=4, initial_seconds_between_polls=0, tolerated_trial_failure_rate=0.95)
    trials = client._experiment.trials
    assert [trial.status.name for trial in trials.values()] == ["COMPLETED", "FAILED", "ABANDONED", "COMPLETED"]
    assert columns(client)["validity"] == str({0: 1.0, 1: 0.0, 3: 1.0})


@pytest.mark.slow
def test_the_last_numbers_of_learning_curves_count():
    """A trial that still runs has no last number yet."""
    client = new_client()
    with_trials(client, [0.1, 0.4, 0.8, 0.9])
    for index, end in enumerate([0.3, 0.1, 0.5]):
        for step in (1, 2):
            client.attach_data(index, {"loss": end + (2 - step)}, progression=step)
        client.complete_trial(index)
    client.attach_data(3, {"loss": 9.0}, progression=1)
    assert columns(client)["loss"] == str({0: 0.3, 1: 0.1, 2: 0.5})
    client.mark_trial_failed(3)
    assert observations(client)["validity"]["Binary"].labels.tolist() == [1, 1, 1, 0]
