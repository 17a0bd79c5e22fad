"""What a study knows, read trial by trial."""

import math
import re
from contextlib import nullcontext
from datetime import datetime

import pytest

pytest.importorskip("optuna")

import optuna
from botorch.exceptions.warnings import InputDataWarning
from optuna.distributions import FloatDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState
from optuna_dashboard import preferential
from sqlalchemy import text
from study_cases import SPACE, ask, choices, preferences, read, ties

from botorch_skewgp.optuna import (
    SkewGPSampler,
    report_censored,
    report_choice,
    report_comparison,
    report_number,
    report_unusable,
    withdraw_reports,
)
from botorch_skewgp.optuna.internals import set_study_system_attr, skip_trial
from botorch_skewgp.optuna.study_data import read_study


def with_values(xs, direction="minimize"):
    study = optuna.create_study(direction=direction)
    for x in xs:
        study.tell(ask(study, x), 100 * x)
    return study


def test_directions_of_several_objectives():
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.tell(ask(study, 0.1), (2.0, 3.0))
    assert read(study).numbers.tolist() == [[-2.0, 3.0]]


def test_states():
    study = with_values([0.1])
    study.tell(ask(study, 0.2), state=TrialState.FAIL)
    pruned = ask(study, 0.3)
    pruned.report(5.0, step=0)
    study.tell(pruned, state=TrialState.PRUNED)
    ask(study, 0.4)
    study.enqueue_trial({"x": 0.5})  # waits: nobody works on it
    data = read(study)
    assert data.X.squeeze(-1).tolist() == [0.1, 0.2, 0.3, 0.4]
    assert data.valid.nan_to_num(nan=-1).tolist() == [1.0, 0.0, 0.0, -1.0]
    assert data.pending.tolist() == [False, False, False, True]
    assert data.numbers.isnan().squeeze(-1).tolist() == [False, True, True, True]
    ignoring = read_study(study, SPACE, failures="ignore", leave_out=[3])
    assert ignoring.X.squeeze(-1).tolist() == [0.1]


def test_a_trial_that_was_tried_again_says_nothing():
    """Its worker died; the trial in its place is known."""
    study = with_values([0.1])
    study.tell(ask(study, 0.2), state=TrialState.FAIL)
    with pytest.warns(ExperimentalWarning):
        retry = optuna.storages.RetryHeartbeatStaleTrialCallback()
    retry(study, study.trials[1])
    study.tell(study.ask(), 20.0)
    data = read(study)
    assert data.valid.tolist() == [1.0, 1.0]
    assert data.X.squeeze(-1).tolist() == [0.1, 0.2]


def raising(error):
    def objective(trial):
        trial.suggest_float("x", 0, 1)
        raise error

    return objective


def run_one(study, error):
    """Run one trial that ends by an error."""
    with pytest.raises(type(error)) if not isinstance(error, optuna.TrialPruned) else nullcontext():
        study.optimize(raising(error), n_trials=1)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    ("error", "valid"),
    [
        (RuntimeError("overload"), [0.0]),
        (MemoryError(), [0.0]),
        (optuna.TrialPruned(), [0.0]),
        (KeyboardInterrupt(), []),
        (SystemExit(), [math.nan]),  # Optuna leaves it running
    ],
    ids=repr,
)
@pytest.mark.parametrize("pruner", [None, optuna.pruners.HyperbandPruner()], ids=["", "hyperband"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_what_an_objective_raises_counts_and_ctrl_c_does_not(error, valid, pruner, wrapped):
    sampler = SkewGPSampler(seed=0)
    if wrapped:
        sampler = optuna.samplers.PartialFixedSampler({}, sampler)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    run_one(study, error)
    assert str(read(study).valid.tolist()) == str(valid)


def test_what_is_known_of_an_interrupted_trial_counts():
    study = with_values([0.1, 0.2], "maximize")
    study.sampler = SkewGPSampler(seed=0)
    for _ in range(4):
        run_one(study, KeyboardInterrupt())
    report_censored(study, 2, 7.0)
    report_comparison(study, 3, 0)
    report_unusable(study, 4)
    data = read(study)
    assert data.trials == (0, 1, 2, 3, 4)
    assert data.bounds[0, :, 0].tolist() == [-math.inf, -math.inf, 7.0, -math.inf, -math.inf]
    assert data.valid.nan_to_num(nan=-1).tolist() == [1.0, 1.0, 1.0, -1.0, 0.0]
    assert not data.pending.any()
    withdraw_reports(study, 4)
    assert read(study).trials == (0, 1, 2, 3)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("retries", [None, 0, 1])
def test_a_killed_worker_says_nothing_with_retries_or_without(tmp_path, retries):
    retry = None if retries is None else optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=retries)
    url = f"sqlite:///{tmp_path}/study.db"
    storage = optuna.storages.RDBStorage(url, heartbeat_interval=60, heartbeat_stale_trial_callback=retry)
    study = optuna.create_study(storage=storage, sampler=SkewGPSampler(seed=0))

    def killed(trial):
        trial.suggest_float("x", 0, 1)
        raise SystemExit  # as far as the storage is concerned: nothing more is heard of it

    with pytest.raises(SystemExit):
        study.optimize(killed, n_trials=1)
    assert read(study).pending.tolist() == [True]
    with storage.engine.begin() as connection:
        connection.execute(text("UPDATE trial_heartbeats SET heartbeat = :then"), {"then": datetime(2000, 1, 1)})
    optuna.storages.fail_stale_trials(study)
    assert study.trials[0].state == TrialState.FAIL
    assert read(study).trials == ()
    if retries == 1:  # its retry is a trial of its own, which fails by itself
        run_one(study, RuntimeError("overload"))
        assert read(study).valid.tolist() == [0.0]


def test_trials_without_all_parameters_are_left_out():
    study = with_values([0.1])
    study.add_trial(optuna.create_trial(value=3.0))
    study.add_trial(optuna.create_trial(value=3.0, params={"x": 0.2}, distributions={"x": FloatDistribution(0, 9)}))
    assert len(read(study).X) == 1


def test_constraints():
    study = with_values([0.1])
    for x, constraint in ((0.2, 0.5), (0.3, -0.5)):
        trial = ask(study, x)
        trial.set_constraint("mass", constraint)
        study.tell(trial, 1.0)
    data = read(study)
    assert data.constraints.nan_to_num(nan=7).tolist() == [[7.0], [0.5], [-0.5]]
    assert data.feasible.tolist() == [True, False, True]


@pytest.mark.parametrize(("value", "valid"), [(math.inf, 0.0), (1e300, 0.0), (-math.inf, 1.0)])
def test_a_constraint_without_a_square_is_left_out_and_broken_if_it_is_positive(value, valid):
    study = with_values([0.1])
    trial = ask(study, 0.2)
    trial.set_constraint("mass", value)
    study.tell(trial, 1.0)
    with pytest.warns(InputDataWarning, match=rf"Constraint 'mass' of trial 1 is left out: {re.escape(str(value))} is"):
        data = read(study)
    assert data.constraints.isnan().all()
    assert data.valid.tolist() == [1.0, valid]


def dashboard(xs):
    study = preferential.create_study(n_generate=len(xs), sampler=SkewGPSampler(seed=0))
    for x in xs:
        ask(study, x)
    return study


def test_comparisons_of_the_dashboard():
    study = dashboard([0.1, 0.2, 0.3])
    study.report_preference(study.trials[2], [study.trials[0]])
    data = read(study)
    assert data.preferential
    assert preferences(data) == ((2, 0),)
    assert data.compared.tolist() == [True, False, True]
    assert data.shown.tolist() == [False, True, True]  # the loser is not shown again
    assert data.pending.tolist() == [False, True, False]
    assert data.numbers.isnan().all()  # the dashboard's zeros
    assert data.valid.nan_to_num(nan=-1).tolist() == [1.0, -1.0, 1.0]


def test_skipped_trials_are_left_out():
    study = dashboard([0.1, 0.2, 0.3])
    study.report_preference(study.trials[1], [study.trials[0]])
    study.report_preference(study.trials[2], [study.trials[1]])
    skip_trial(study._study, study.trials[1])
    data = read(study)
    assert data.X.squeeze(-1).tolist() == [0.1, 0.3]
    assert preferences(data) == ()


def test_trials_at_one_point_that_are_compared_tell_nothing():
    """A space of few values offers some of them again, and people may compare the two."""
    study = dashboard([0.1, 0.1, 0.2])
    report_comparison(study, 0, 1)
    report_comparison(study, 1, 0, tie=True)
    assert read(study).observed() is None
    report_comparison(study, 1, 2, judge="ann")
    report_comparison(study, 1, 0, judge="ann")
    (duel,) = read(study).observed().observations
    assert (duel.pairs.tolist(), duel.judge.tolist()) == ([[0, 1]], [0])
    assert 0 <= study.ask().suggest_float("x", 0, 1) <= 10


def test_skipped_trials_are_left_out_of_choices():
    study = dashboard([0.1, 0.2, 0.3, 0.4])
    study.report_preference(study.trials[1], [study.trials[0], study.trials[2], study.trials[3]])
    skip_trial(study._study, study.trials[2])
    data = read(study)
    assert choices(data) == ((1, 0, 3),)
    skip_trial(study._study, study.trials[1])
    assert choices(read(study)) == ()


def test_a_failed_trial_keeps_its_choices_where_failures_are_ignored():
    study = with_values([0.1, 0.2])
    study.tell(ask(study, 0.3), state=TrialState.FAIL)
    study.tell(ask(study, 0.4), state=TrialState.FAIL)
    report_choice(study, 0, [1, 2])
    data = read_study(study, SPACE, failures="ignore")
    assert data.trials == (0, 1, 2)
    assert choices(data) == ((0, 1, 2),)


def test_what_the_page_has_no_button_for():
    study = dashboard([0.1, 0.2, 0.3, 0.4])
    report_comparison(study, 0, study.trials[1], tie=True)
    report_number(study, 1, 5.0, direction="minimize")
    report_number(study, 2, 7.0, direction="maximize")
    report_unusable(study, 3)
    data = read(study)
    assert ties(data) == ((0, 1),)
    assert data.numbers.squeeze(-1).nan_to_num(nan=0).tolist() == [0.0, -5.0, 7.0, 0.0]
    assert data.valid.nan_to_num(nan=-1).tolist() == [-1.0, -1.0, -1.0, 0.0]
    assert data.shown.tolist() == [True, True, True, False]
    assert study.trials[3].state == TrialState.FAIL


def test_a_trial_that_was_compared_may_turn_out_not_to_work():
    study = dashboard([0.1, 0.2])
    study.report_preference(study.trials[1], [study.trials[0]])
    report_unusable(study, 1)
    data = read(study)
    assert data.valid.tolist() == [1.0, 0.0]
    assert study.should_generate()


def test_values_told_in_a_preferential_study_are_numbers():
    study = dashboard([0.1, 0.2])
    study._study.tell(0, 3.0)
    study.report_preference(study.trials[0], [study.trials[1]])
    assert read(study).numbers.squeeze(-1).nan_to_num(nan=0).tolist() == [-3.0, 0.0]


def test_comparisons_of_unknown_trials_are_left_out():
    """The dashboard stores them."""
    study = dashboard([0.1, 0.2])
    set_study_system_attr(study._study, "preference:valuesabc", [[0, 7]])
    with pytest.warns(InputDataWarning, match=r"preference:valuesabc is left out: \[0, 7\].*withdraw_unreadable"):
        assert preferences(read(study)) == ()


def test_what_the_sampler_has_chosen_counts_before_the_objective_asks():
    study = with_values([0.1])
    study.ask()
    study._storage.set_trial_system_attr(1, "skewgp:relative_params:x", 0.6)
    data = read(study)
    assert data.X[data.pending].tolist() == [[0.6]]
    assert data.pending.tolist() == [False, True]
