"""The trial that is recommended."""

import pytest

pytest.importorskip("optuna")

import optuna
from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from optuna_dashboard import preferential

from botorch_skewgp.optuna import get_best_trial, report_comparison, report_unusable

X = {"x": FloatDistribution(0, 1)}


def ask(study, x):
    getattr(study, "_study", study).enqueue_trial({"x": x})
    return study.ask(X)


@pytest.mark.parametrize("new", [optuna.create_study, lambda: preferential.create_study(n_generate=2)])
def test_comparisons_decide_where_there_are_no_numbers(new):
    study = new()
    for x in (0.1, 0.9, 0.5):
        ask(study, x)
    for _ in range(2):
        report_comparison(study, 1, 0)
        report_comparison(study, 1, 2)
    assert get_best_trial(study).params == {"x": 0.9}


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_answers_outweigh_a_number_that_is_a_little_better(direction):
    """Optuna's own best trial is the one that lost all its comparisons."""
    study, sign = optuna.create_study(direction=direction), 1.0 if direction == "maximize" else -1.0
    for x, value in ((0.0, 0.0), (0.2, 1.0), (0.4, 0.99), (1.0, -3.0)):
        study.tell(ask(study, x), sign * value)
    for _ in range(20):
        report_comparison(study, 2, 1)
    assert study.best_trial.number == 1
    assert get_best_trial(study).number == 2


def test_failed_trials_and_broken_constraints_are_left_out():
    study = optuna.create_study()
    for x in (0.1, 0.4, 0.9):
        trial = ask(study, x)
        trial.set_constraint("mass", x - 0.5)
        study.tell(trial, -x)
    assert get_best_trial(study).number == 1
    report_unusable(study, 1)
    assert get_best_trial(study).number == 0
    report_unusable(study, 0)
    with pytest.raises(InputDataError, match="all trials failed or broke a constraint"):
        get_best_trial(study)


def test_without_data_or_with_several_objectives():
    study = optuna.create_study()
    with pytest.raises(InputDataError, match="Nothing is known of the objective yet"):
        get_best_trial(study)
    study.tell(ask(study, 0.5), state=TrialState.FAIL)
    with pytest.raises(InputDataError, match="Nothing is known of the objective yet"):
        get_best_trial(study)
    with pytest.raises(UnsupportedError, match="has several: minimize, maximize"):
        get_best_trial(optuna.create_study(directions=["minimize", "maximize"]))
    with pytest.raises(InputDataError, match="study must be a study of Optuna"):
        get_best_trial(3)
