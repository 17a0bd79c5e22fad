"""What a study knows, read trial by trial."""

import math
import re
from contextlib import nullcontext
from datetime import datetime

import optuna
import pytest
from botorch.exceptions.warnings import InputDataWarning
from optuna.distributions import FloatDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState
from sqlalchemy import text
from study_cases import SPACE, ask, page, read, told, with_trials

from botorch_skewgp import optuna as ours
from botorch_skewgp.optuna import SkewGPSampler
from botorch_skewgp.optuna.internals import set_study_system_attr, skip_trial
from botorch_skewgp.optuna.study_data import read_study

NONE = None  # where a tensor has NaN


def of(data, field):
    """A field of the data as a flat list, the number of a trial in place of its row."""
    values = getattr(data, field)
    if field == "trials":
        return list(values)
    return [NONE if value != value else value for value in values.flatten().tolist()]


def with_values(xs, direction="minimize"):
    return with_trials(xs, lambda x: 100 * x, optuna.create_study(direction=direction))


def of_all_states():
    study = with_values([0.1])
    study.tell(ask(study, 0.2), state=TrialState.FAIL)
    pruned = ask(study, 0.3)
    pruned.report(5.0, step=0)
    study.tell(pruned, state=TrialState.PRUNED)
    for x, constraint in ((0.4, 0.5), (0.5, -0.5)):
        trial = ask(study, x)
        trial.set_constraint("mass", constraint)
        study.tell(trial, 1.0)
    ours.report_censored(study, ask(study, 0.6), lower=7.0)
    study.ask()
    study._storage.set_trial_system_attr(6, "skewgp:relative_params:x", 0.7)  # before the objective asks for it
    study.add_trial(optuna.create_trial(value=3.0))
    study.add_trial(optuna.create_trial(value=3.0, params={"x": 0.2}, distributions={"x": FloatDistribution(0, 9)}))
    study.enqueue_trial({"x": 0.8})  # waits: nobody works on it
    return study


def of_two_objectives():
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.tell(ask(study, 0.1), (2.0, 3.0))
    return study


def of_the_page():
    study = page([0.1, 0.2, 0.3])
    study.report_preference(study.trials[2], [study.trials[0]])
    return study


def of_what_has_no_button():
    study = page([0.1, 0.2, 0.3, 0.4])
    ours.report_comparison(study, 0, study.trials[1], tie=True)
    ours.report_number(study, 1, 5.0, direction="minimize")
    ours.report_number(study, 2, 7.0, direction="maximize")
    ours.report_censored(study, 3, 7.0, direction="maximize")
    ours.report_unusable(study, 3)
    assert study.trials[3].state == TrialState.FAIL
    return study


def of_a_winner_that_does_not_work():
    study = page([0.1, 0.2])
    study.report_preference(study.trials[1], [study.trials[0]])
    ours.report_unusable(study, 1)
    assert study.should_generate()
    return study


def of_a_value_beside_comparisons():
    study = page([0.1, 0.2])
    study._study.tell(0, 3.0)
    study.report_preference(study.trials[0], [study.trials[1]])
    return study


READ = [
    (of_all_states, "trials", [0, 1, 2, 3, 4, 5, 6, 8]),
    (of_all_states, "X", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.2]),
    (of_all_states, "valid", [1, 0, 0, 1, 1, 1, NONE, 1]),
    (of_all_states, "pending", [False] * 6 + [True, False]),
    (of_all_states, "known", [True, False, False, True, True, True, False, True]),
    (of_all_states, "numbers", [-10.0, NONE, NONE, -1.0, -1.0, NONE, NONE, -3.0]),
    (of_all_states, "constraints", [NONE, NONE, NONE, 0.5, -0.5, NONE, NONE, NONE]),
    (of_all_states, "feasible", [True, False, False, False, True, True, True, True]),
    (of_two_objectives, "numbers", [-2.0, 3.0]),
    (of_the_page, "known", [True, False, True]),
    (of_the_page, "shown", [False, True, True]),  # the loser is not shown again
    (of_the_page, "pending", [False, True, False]),
    (of_the_page, "numbers", [NONE, NONE, NONE]),  # the dashboard's zeros
    (of_the_page, "valid", [1, NONE, 1]),
    (of_what_has_no_button, "numbers", [NONE, -5.0, 7.0, NONE]),
    (of_what_has_no_button, "bounds", [-math.inf] * 4 + [math.inf] * 4),  # of what does not work there are none
    (of_what_has_no_button, "valid", [NONE, NONE, NONE, 0]),
    (of_what_has_no_button, "shown", [True, True, True, False]),
    (of_a_winner_that_does_not_work, "valid", [1, 0]),
    (of_a_value_beside_comparisons, "numbers", [-3.0, NONE]),
]


@pytest.mark.parametrize(("make", "field", "expected"), READ)
def test_what_is_read(make, field, expected):
    assert of(read(make()), field) == expected


def test_a_model_begins_when_enough_trials_have_ended_or_were_judged():
    study = of_all_states()
    assert [read(study).has_started(number) for number in (7, 8)] == [True, False]
    ours.report_comparison(study, 6, 0)
    assert read(study).has_started(8)


def test_failures_that_are_ignored_and_trials_that_are_left_out():
    assert of(read_study(of_all_states(), SPACE, failures="ignore", leave_out=[4, 5]), "trials") == [0, 3, 6, 8]
    study = with_values([0.1, 0.2])
    for x in (0.3, 0.4):
        study.tell(ask(study, x), state=TrialState.FAIL)
    ours.report_choice(study, 0, [1, 2])
    data = read_study(study, SPACE, failures="ignore")
    assert of(data, "trials") == [0, 1, 2]  # a failed trial keeps its choices
    assert of(data, "valid") == [1, 1, NONE]
    assert told(data) == {"Choice": [(0, 1, 2)]}


def test_a_trial_that_was_tried_again_says_nothing():
    """Its worker died; the trial in its place is known."""
    study = with_values([0.1])
    study.tell(ask(study, 0.2), state=TrialState.FAIL)
    with pytest.warns(ExperimentalWarning):
        retry = optuna.storages.RetryHeartbeatStaleTrialCallback()
    retry(study, study.trials[1])
    study.tell(study.ask(), 20.0)
    assert (of(read(study), "valid"), of(read(study), "X")) == ([1, 1], [0.1, 0.2])


def run_one(study, error):
    """Run one trial that ends by an error."""

    def objective(trial):
        trial.suggest_float("x", 0, 1)
        raise error

    with pytest.raises(type(error)) if not isinstance(error, optuna.TrialPruned) else nullcontext():
        study.optimize(objective, n_trials=1)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    ("error", "valid"),
    [
        (RuntimeError("overload"), [0]),
        (MemoryError(), [0]),
        (optuna.TrialPruned(), [0]),
        (KeyboardInterrupt(), []),
        (SystemExit(), [NONE]),  # Optuna leaves it running
    ],
    ids=repr,
)
def test_what_an_objective_raises_counts_and_ctrl_c_does_not(error, valid):
    own = SkewGPSampler(seed=0)
    for sampler in (own, optuna.samplers.PartialFixedSampler({}, own)):
        for pruner in (None, optuna.pruners.HyperbandPruner()):
            study = optuna.create_study(sampler=sampler, pruner=pruner)
            run_one(study, error)
            assert of(read(study), "valid") == valid


def test_what_is_known_of_an_interrupted_trial_counts():
    study = with_values([0.1, 0.2], "maximize")
    study.sampler = SkewGPSampler(seed=0)
    for _ in range(4):
        run_one(study, KeyboardInterrupt())
    ours.report_censored(study, 2, 7.0)
    ours.report_comparison(study, 3, 0)
    ours.report_unusable(study, 4)
    data = read(study)
    assert data.bounds[0].tolist() == [-math.inf, -math.inf, 7.0, -math.inf, -math.inf]
    assert of(data, "valid") == [1, 1, 1, NONE, 0]
    assert not data.pending.any()
    ours.withdraw_reports(study, 4)
    assert of(read(study), "trials") == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("retries", [None, 1])
def test_a_killed_worker_says_nothing_with_retries_or_without(tmp_path, retries):
    retry = None if retries is None else optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=retries)
    url = f"sqlite:///{tmp_path}/study.db"
    storage = optuna.storages.RDBStorage(url, heartbeat_interval=60, heartbeat_stale_trial_callback=retry)
    study = optuna.create_study(storage=storage, sampler=SkewGPSampler(seed=0))
    run_one(study, SystemExit())  # as far as the storage is concerned, nothing more is heard of it
    assert read(study).pending.tolist() == [True]
    with storage.engine.begin() as connection:
        connection.execute(text("UPDATE trial_heartbeats SET heartbeat = :then"), {"then": datetime(2000, 1, 1)})
    optuna.storages.fail_stale_trials(study)
    assert study.trials[0].state == TrialState.FAIL
    assert read(study).trials == ()
    if retries == 1:  # its retry is a trial of its own, which fails by itself
        run_one(study, RuntimeError("overload"))
        assert of(read(study), "valid") == [0]


@pytest.mark.parametrize(("value", "valid"), [(math.inf, 0), (1e300, 0), (-math.inf, 1)])
def test_a_constraint_without_a_square_is_left_out_and_broken_if_it_is_positive(value, valid):
    study = with_values([0.1])
    trial = ask(study, 0.2)
    trial.set_constraint("mass", value)
    study.tell(trial, 1.0)
    with pytest.warns(InputDataWarning, match=rf"Constraint 'mass' of trial 1 is left out: {re.escape(str(value))} is"):
        data = read(study)
    assert data.constraints.isnan().all()
    assert of(data, "valid") == [1, valid]


def test_skipped_trials_are_left_out_of_comparisons_and_choices():
    study = page([0.1, 0.2, 0.3, 0.4])
    trials = study.trials
    study.report_preference(trials[1], [trials[0], trials[2], trials[3]])
    study.report_preference(trials[3], [trials[2]])
    skip_trial(study._study, trials[2])
    data = read(study)
    assert of(data, "X") == [0.1, 0.2, 0.4]
    assert told(data) == {"Choice": [(1, 0, 3)]}
    skip_trial(study._study, trials[1])
    assert told(read(study)) == {}


def test_trials_at_one_point_that_are_compared_tell_nothing():
    """A space of few values offers some of them again, and people may compare the two."""
    study = page([0.1, 0.1, 0.2])
    ours.report_comparison(study, 0, 1)
    ours.report_comparison(study, 1, 0, tie=True)
    assert read(study).observed() is None
    ours.report_comparison(study, 1, 2, judge="ann")
    ours.report_comparison(study, 1, 0, judge="ann")
    (duel,) = read(study).observed().observations
    assert (duel.pairs.tolist(), duel.judge.tolist()) == ([[0, 1]], [0])
    assert 0 <= study.ask().suggest_float("x", 0, 1) <= 1


def test_comparisons_of_unknown_trials_are_left_out():
    """The dashboard stores them, and cannot read its study then."""
    study = page([0.1, 0.2])
    set_study_system_attr(study._study, "preference:valuesabc", [[0, 7]])
    with pytest.warns(InputDataWarning, match=r"preference:valuesabc is left out: \[0, 7\].*withdraw_unreadable"):
        assert told(read(study)) == {}
    ours.withdraw_comparison(study, 0, 7)
    assert study.get_preferences() == []
