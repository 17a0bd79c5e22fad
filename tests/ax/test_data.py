"""From experiments to observations: validity of every trial, and datasets of several kinds."""

import pytest

pytest.importorskip("ax")

import torch
from ax.adapter.data_utils import DataLoaderConfig, extract_experiment_data
from ax.api.protocols.metric import IMetric
from ax.api.protocols.runner import IRunner
from ax.core.arm import Arm
from ax.core.batch_trial import BatchTrial
from ax.core.trial_status import TrialStatus
from ax_cases import new_client, with_trials
from pandas import MultiIndex

from botorch_skewgp.ax import attach_comparison, get_next_pair, recorded_comparisons
from botorch_skewgp.ax.data import make_dataset, objective_is_known, with_every_trial
from botorch_skewgp.hosts.records import judged
from botorch_skewgp.observations import Binary, Numeric, Preference, Tie, Validity

NAN = float("nan")


def loaded(client, objectives=("loss",), validity="validity", labels=("validity",), comparisons=None):
    """An experiment's data as the adapter makes them."""
    data = extract_experiment_data(client._experiment, data_loader_config=DataLoaderConfig())
    found = recorded_comparisons(client._experiment) if comparisons is None else comparisons
    return with_every_trial(
        client._experiment, data, objectives=objectives, validity=validity, labels=labels, comparisons=found
    )


def column(data, name, part="mean"):
    return {trial: value for (trial, _), value in data.observation_data[part, name].items()}


def same(found, expected):
    """Equality of columns in which NaN equals itself."""
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert found[key] == value or (found[key] != found[key] and value != value), (key, found[key], value)


def with_statuses(client):
    """Trials 0 and 1 with numbers, 2 failed, 3 abandoned, 4 abandoned with a number, 5 running, 6 without a number."""
    with_trials(client, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    client.complete_trial(0, {"loss": 1.0})
    client.complete_trial(1, {"loss": 2.0})
    client.mark_trial_failed(2)
    client.mark_trial_abandoned(3)
    client.attach_data(4, {"loss": 7.0})
    client.mark_trial_abandoned(4)
    client.complete_trial(6)
    return client


def test_failed_and_abandoned_trials_are_not_valid():
    data = loaded(with_statuses(new_client()))
    same(column(data, "validity"), {0: 1.0, 1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0})
    same(column(data, "loss"), {0: 1.0, 1: 2.0, 2: NAN, 3: NAN, 4: NAN})
    points = {trial: value for (trial, _), value in data.arm_data["x"].items()}
    same(points, {0: 0.0, 1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4})
    assert data.arm_data.index.equals(data.observation_data.index)


def test_failures_are_left_out_when_they_are_to_be_ignored():
    data = loaded(with_statuses(new_client()), validity=None)
    assert ("mean", "validity") not in data.observation_data.columns
    same(column(data, "loss"), {0: 1.0, 1: 2.0})


def test_reported_labels_take_precedence():
    """A label of a failed trial is believed; a trial without a label is valid if it has a number."""
    client = new_client()
    client.configure_tracking_metrics(["validity"])
    with_trials(client, [0.0, 0.1, 0.2, 0.3])
    client.complete_trial(0, {"loss": 1.0, "validity": 0.0})
    client.complete_trial(1, {"loss": 2.0})
    client.complete_trial(2, {"validity": 1.0})
    client.mark_trial_failed(3)
    same(column(loaded(client), "validity"), {0: 0.0, 1: 1.0, 2: 1.0, 3: 0.0})


def test_abandoned_arms_of_batch_trials():
    client = new_client()
    experiment = client._experiment
    trial = experiment.new_batch_trial()
    trial.add_arms_and_weights([Arm({"x": 0.1}), Arm({"x": 0.2}), Arm({"x": 0.3})])
    trial.mark_running(no_runner_required=True)
    trial.mark_arm_abandoned("0_1")
    data = loaded(client).observation_data
    assert list(data.index) == [(0, "0_1")]
    assert data["mean", "validity"].tolist() == [0.0]


def test_unanswered_pairs_are_no_failures():
    client = new_client(initialization_budget=10)
    index, arms = get_next_pair(client)
    client.mark_trial_abandoned(index)
    assert isinstance(client._experiment.trials[index], BatchTrial)
    assert len(arms) == 2
    data = loaded(client).observation_data
    assert len(data) == 0
    assert ("mean", "validity") not in data.columns


def test_repeated_arms():
    """An arm tried twice has two rows; comparisons are about the first."""
    client = new_client()
    with_trials(client, [0.0, 0.5, 0.0])
    experiment = client._experiment
    assert experiment.trials[0].arms[0].name == experiment.trials[2].arms[0].name == "0_0"
    client.complete_trial(0, {"loss": 1.0})
    client.mark_trial_failed(2)
    attach_comparison(client, 2, 1)  # the same arm as that of trial 0
    assert recorded_comparisons(experiment) == [judged("0_0", ["1_0"])]
    data = loaded(client)
    same(column(data, "validity"), {0: 1.0, 1: NAN, 2: 0.0})
    assert [name for _, name in data.observation_data.index] == ["0_0", "1_0", "0_0"]


def test_several_objectives():
    """A trial is valid if any of the objectives has a number."""
    client = new_client(objective="a, -b")
    with_trials(client, [0.0, 0.1, 0.2])
    client.complete_trial(0, {"a": 1.0, "b": 2.0})
    client.attach_data(1, {"b": 3.0})
    client.mark_trial_failed(2)
    experiment_data = loaded(client, objectives=("a", "b"))
    same(column(experiment_data, "validity"), {0: 1.0, 1: 1.0, 2: 0.0})
    same(column(experiment_data, "a"), {0: 1.0, 1: NAN, 2: NAN})
    same(column(experiment_data, "b"), {0: 2.0, 1: 3.0, 2: NAN})


# Datasets

X = torch.tensor([[0.0], [0.1], [0.2], [0.3]], dtype=torch.float64)
REPEATED = torch.tensor([[0.0], [0.1], [0.0], [0.3]], dtype=torch.float64)
INDEX = MultiIndex.from_tuples([(i, f"{i}_0") for i in range(4)], names=["trial_index", "arm_name"])


def dataset(mean, sem=(NAN,) * 4, valid=None, comparisons=(), kinds=(Numeric,), index=INDEX, minimize=False, X=X):
    def tensor(values):
        return torch.tensor(values, dtype=torch.float64)

    return make_dataset(
        X,
        index,
        mean=tensor(mean),
        sem=tensor(sem),
        valid=None if valid is None else tensor(valid),
        comparisons=comparisons,
        kinds=kinds,
        minimize=minimize,
        feature_names=["x"],
        outcome="loss",
    )


def by_kind(made):
    return {
        kind: [entry for entry in made.observations if type(entry) is kind] for kind in map(type, made.observations)
    }


def test_numbers_with_known_unknown_and_no_noise():
    made = dataset([1.0, NAN, 3.0, 4.0], sem=[0.5, NAN, NAN, 0.0])
    assert made.X.squeeze(-1).tolist() == [0.0, 0.2, 0.3]
    assert made.Y.squeeze(-1).tolist() == [1.0, 3.0, 4.0]
    assert made.group_indices.tolist() == [0, 2, 3]
    known, unknown = made.observations
    assert (known.values.tolist(), known.index.tolist(), known.noise.tolist()) == ([1.0, 4.0], [0, 2], [0.25, 0.0])
    assert (unknown.values.tolist(), unknown.index.tolist(), unknown.noise) == ([3.0], [1], None)
    assert not made.probability


def test_numbers_validity_and_comparisons():
    """Indices are those of the rows that are kept; arms without data stay for their comparisons."""
    made = dataset(
        [NAN, 2.0, NAN, NAN],
        valid=[NAN, 1.0, NAN, 0.0],
        comparisons=[judged("1_0", ["2_0"]), judged("3_0", ["1_0"], tie=True)],
        kinds=(Numeric, Preference, Tie, Validity),
    )
    assert made.X.squeeze(-1).tolist() == [0.1, 0.2, 0.3]
    kinds = by_kind(made)
    assert kinds[Numeric][0].index.tolist() == [0]
    assert kinds[Preference][0].pairs.tolist() == [[0, 1]]
    assert kinds[Tie][0].pairs.tolist() == [[2, 0]]
    assert (kinds[Validity][0].valid.tolist(), kinds[Validity][0].index.tolist()) == ([1, 0], [0, 2])
    assert made.Y.isnan().squeeze(-1).tolist() == [False, True, True]


def test_comparisons_of_arms_that_a_part_of_the_data_lacks_are_left_out():
    made = dataset([1.0, 2.0, 3.0, 4.0], comparisons=[judged("0_0", ["9_0"]), judged("0_0", ["1_0"])])
    assert by_kind(made)[Preference][0].pairs.tolist() == [[0, 1]]


@pytest.mark.parametrize("first", [1.0, NAN])
def test_an_arm_of_several_trials_is_one_point(first):
    index = MultiIndex.from_tuples([(0, "0_0"), (1, "1_0"), (2, "0_0"), (3, "3_0")], names=INDEX.names)
    comparisons = [judged("1_0", ["0_0"]), judged("0_0", ["3_0"], tie=True)]
    valid = [1.0, NAN, 0.0, NAN]
    made = dataset([first, 2.0, 3.0, NAN], valid=valid, comparisons=comparisons, index=index, X=REPEATED)
    assert made.X.squeeze(-1).tolist() == [0.0, 0.1, 0.3]
    assert made.group_indices.tolist() == [0, 1, 3]
    kinds = by_kind(made)
    assert kinds[Numeric][0].index.tolist() == ([0, 1, 0] if first == 1.0 else [1, 0])
    assert kinds[Numeric][0].values.tolist() == ([1.0, 2.0, 3.0] if first == 1.0 else [2.0, 3.0])
    assert kinds[Preference][0].pairs.tolist() == [[1, 0]]
    assert kinds[Tie][0].pairs.tolist() == [[0, 2]]
    assert (kinds[Validity][0].valid.tolist(), kinds[Validity][0].index.tolist()) == ([1, 0], [0, 0])
    assert made.Y[:2, 0].tolist() == [2.0 if first == 1.0 else 3.0, 2.0]
    assert made.Y[2].isnan().all()


def test_labels():
    made = dataset([1.0, NAN, 0.0, 1.0], kinds=(Binary,))
    assert made.probability
    assert (made.observations[0].labels.tolist(), made.observations[0].index.tolist()) == ([1, 0, 1], [0, 1, 2])


def test_nothing_to_say():
    assert dataset([NAN] * 4) is None
    assert dataset([NAN] * 4, valid=[NAN] * 4, kinds=(Numeric, Validity)) is None


def test_equality_of_datasets():
    def make(third=NAN, **kwargs):
        comparisons = kwargs.pop("comparisons", [judged("0_0", ["2_0"])])
        return dataset([1.0, 2.0, third, NAN], comparisons=comparisons, **kwargs)

    assert make() == make()
    different = [
        make(third=3.0),
        make(comparisons=[judged("2_0", ["0_0"])]),
        make(comparisons=[judged("0_0", ["2_0"], tie=True)]),
        make(sem=[0.1, 0.1, NAN, NAN]),
        make(minimize=True),
        make(kinds=(Numeric, Preference)),
        make(valid=[1.0, 1.0, NAN, NAN]),
    ]
    for i, one in enumerate(different):
        assert one != make(), i
    with_validity = make(valid=[1.0, 0.0, NAN, NAN])
    assert with_validity != make(valid=[1.0, 1.0, NAN, NAN])
    assert make() != "something else"
    first, second = (dataset([1.0, 2.0, *ends]) for ends in ((3.0, NAN), (NAN, 3.0)))
    assert first != second


@pytest.mark.parametrize("how", ["mark_trial_failed", "mark_trial_abandoned"])
def test_numbers_of_trials_that_did_not_work_are_not_enough_to_learn_from(how):
    client = new_client()
    with_trials(client, [0.1, 0.5])
    client.attach_data(0, {"loss": 1.0})
    assert objective_is_known(client._experiment)
    getattr(client, how)(0)
    assert not objective_is_known(client._experiment)
    client.complete_trial(1, {"loss": 2.0})
    assert objective_is_known(client._experiment)


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
    same(column(loaded(client), "validity"), {0: 1.0, 1: 0.0, 3: 1.0})
