"""What is said of trials is checked, stored and taken back."""

import math

import pytest

pytest.importorskip("optuna")

import numpy as np
import optuna
from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from optuna_dashboard import preferential
from study_cases import choices, preferences, ties

from botorch_skewgp.observations import Choice, Preference, Ranking
from botorch_skewgp.optuna import (
    SkewGPSampler,
    get_next_question,
    report_at_least,
    report_at_most,
    report_choice,
    report_comparison,
    report_number,
    report_tie,
    report_unusable,
    withdraw_comparison,
    withdraw_reports,
    withdraw_unreadable,
)
from botorch_skewgp.optuna.internals import set_study_system_attr
from botorch_skewgp.optuna.judgements import read_records
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study

SPACE = SearchSpace({"x": FloatDistribution(0, 1)})


def study_of(kind):
    """Three trials, running."""
    study = (
        preferential.create_study(n_generate=3, sampler=SkewGPSampler(seed=0))
        if kind == "preferential"
        else optuna.create_study()
    )
    for _ in range(3):
        study.ask().suggest_float("x", 0, 1)
    return study


@pytest.fixture(params=["preferential", "plain"])
def study(request):
    return study_of(request.param)


def read(study):
    return read_study(getattr(study, "_study", study), SPACE)


def everything(study):
    inner = getattr(study, "_study", study)
    attrs = inner._storage.get_study_system_attrs(inner._study_id)
    return inner.user_attrs, attrs, [trial.state for trial in inner.trials]


def test_the_dashboard_sees_comparisons_of_its_studies():
    study = study_of("preferential")
    report_comparison(study, 2, 0)
    assert [(better.number, worse.number) for better, worse in study.get_preferences()] == [(2, 0)]
    assert study.trials[0].state == TrialState.COMPLETE


def test_a_running_trial_of_a_plain_study_goes_on_running():
    study = study_of("plain")
    report_comparison(study, 2, 0)
    assert all(trial.state == TrialState.RUNNING for trial in study.trials)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (lambda study: report_comparison(study, "0", 1), "'0' is neither a trial nor the number of one"),
        (lambda study: report_tie(study, 0, 1.5), "1.5 is neither a trial"),
        (lambda study: withdraw_comparison(study, None, 0), "None is neither a trial"),
        (lambda study: report_choice(study, 1, 0), "others must be a list of the trials.*got 0"),
        (lambda study: report_unusable(study, 9), "no trial 9"),
        (lambda study: report_number(study, 9, 1.0, "maximize"), "no trial 9"),
        (lambda study: report_number(study, 1, math.nan, "maximize"), "must be a finite number; got nan"),
        (lambda study: report_number(study, 1, 1.0, "up"), "'maximize' or 'minimize'; got 'up'"),
        (lambda study: report_comparison(study, True, 0), "True is neither a trial nor the number of one"),
        (lambda study: withdraw_reports(study, False), "False is neither a trial"),
        (lambda study: report_choice(study, 1, b"\x00"), "others must be a list"),
        (lambda study: report_number(study, 1, 10**400, "maximize"), "The number of trial 1 must be a finite number"),
        (lambda study: report_number(study, 1, "0.5", "maximize"), "must be a finite number; got '0.5'"),
    ],
)
def test_mistakes_are_refused_and_change_nothing(study, report, message):
    before = everything(study)
    with pytest.raises(InputDataError, match=message):
        report(study)
    assert everything(study) == before


@pytest.mark.parametrize(
    "report",
    [
        lambda study: report_comparison(study, 1, 0),
        lambda study: report_unusable(study, 1),
        lambda study: report_number(study, 1, 0.5, "maximize"),
        lambda study: withdraw_comparison(study, 1, 0),
        lambda study: withdraw_reports(study, 1),
        withdraw_unreadable,
        get_next_question,
    ],
)
@pytest.mark.parametrize("other", [None, "study"])
def test_something_else_than_a_study(report, other):
    with pytest.raises(InputDataError, match=f"study must be a study of Optuna or its dashboard; got {other!r}"):
        report(other)


def test_numbers_of_trials_may_be_those_of_arrays(study):
    report_comparison(study, *np.array([2, 0]))
    assert preferences(read(study)) == ((2, 0),)


@pytest.mark.parametrize("report", [report_number, report_at_least, report_at_most])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_direction_is_that_of_the_study(report, direction):
    study = optuna.create_study(direction=direction)
    study.tell(study.ask(), 0.5)
    report(study, 0, 3.0)
    without = read_records(study)
    report(study, 0, 3.0, direction=direction)
    assert read_records(study) == without
    assert 3.0 * (1 if direction == "maximize" else -1) in [
        *without.numbers.values(),
        *without.lower.values(),
        *without.upper.values(),
    ]
    page = preferential.create_study(n_generate=2)
    page.ask()
    with pytest.raises(InputDataError, match="A preferential study has no direction; give direction="):
        report(page, 0, 3.0)


@pytest.mark.parametrize(("direction", "other"), [("maximize", report_at_most), ("minimize", report_at_least)])
def test_bounds_that_leave_no_number_are_named_as_they_were_given(study, direction, other):
    first, bound = (report_at_least, -3.0) if other is report_at_most else (report_at_most, -5.0)
    first(study, 1, bound, direction)
    before = everything(study)
    with pytest.raises(InputDataError, match=f"no number between them: {-8.0 - bound} and {bound}"):
        other(study, 1, -8.0 - bound, direction)
    assert everything(study) == before


@pytest.mark.parametrize("state", [TrialState.FAIL, TrialState.PRUNED])
def test_trials_that_failed_have_no_number(state):
    study = study_of("plain")
    study.tell(0, state=state)
    with pytest.raises(InputDataError, match=f"Trial 0 is {state.name}: it gave no number"):
        report_number(study, 0, 1.0, "maximize")
    assert study.user_attrs == {}


@pytest.mark.parametrize(
    "report",
    [
        lambda study: report_comparison(study, 0, 1),
        lambda study: report_choice(study, 0, [1]),
        lambda study: report_tie(study, 0, 1),
        lambda study: report_number(study, 0, 1.0, "maximize"),
    ],
)
def test_judgements_of_several_objectives_are_refused_when_they_are_made(report):
    study = optuna.create_study(directions=["minimize", "maximize"])
    for value in (1.0, 2.0):
        study.tell(study.ask(), (value, value))
    with pytest.raises(UnsupportedError, match=r"single objective.*has several: minimize, maximize"):
        report(study)
    assert not study.user_attrs


def test_the_best_of_three_is_one_observation(study):
    report_choice(study, 2, [study.trials[0], 1])
    (choice,) = read(study).observed().observations
    assert isinstance(choice, Choice)
    assert choice.options.tolist() == [[2, 0, 1]]
    assert read(study).compared.all()
    if hasattr(study, "preferences"):
        assert [(better.number, worse.number) for better, worse in study.preferences] == [(2, 0), (2, 1)]
        assert read(study).shown.tolist() == [False, False, True]
        assert study.should_generate()


def test_the_worst_of_three_on_the_page_is_one_observation():
    study = study_of("preferential")
    study.report_preference([study.trials[0], study.trials[2]], study.trials[1])  # what the page stores
    report_comparison(study, 0, 2)
    duel, worst = read(study).observed().observations
    assert isinstance(duel, Preference)
    assert isinstance(worst, Ranking)
    assert worst.items[0, -1] == 1
    assert sorted(worst.duels.tolist()) == [[0, 1], [2, 1]]
    assert read(study).shown.tolist() == [True, False, False]


def test_pairs_of_one_report_without_a_common_trial_are_comparisons():
    study = study_of("preferential")
    study.ask().suggest_float("x", 0, 1)
    study.report_preference([study.trials[0], study.trials[1]], [study.trials[2], study.trials[3]])
    data = read(study)
    assert set(preferences(data)) == {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert choices(data) == ()


@pytest.mark.parametrize(
    "odd", [{"winner": 0, "loser": 1, "tie": True}, {"winner": 0, "loser": 1, "judge": "ann"}, [0, 2]]
)
def test_ties_other_judges_and_pairs_told_twice_make_no_choice(odd):
    """Others may write into the dashboard's entries."""
    study = study_of("preferential")
    set_study_system_attr(study._study, "preference:valuesodd", [[0, 2], odd])
    data = read(study)
    assert choices(data) == ()
    assert len(preferences(data)) + len(ties(data)) == 2


def test_choices_are_taken_back_pair_by_pair(study):
    report_choice(study, 2, [0, 1])
    withdraw_comparison(study, 0, 2)
    assert (*preferences(read(study)), *choices(read(study))) == ((2, 1),)
    withdraw_comparison(study, 2, 1)
    assert read(study).observed() is None
    with pytest.raises(InputDataError, match="were not compared"):
        withdraw_comparison(study, 2, 1)
