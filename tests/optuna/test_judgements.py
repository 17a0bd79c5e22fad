"""What is said of trials of studies, on optuna-dashboard's page too, is checked, stored and taken back."""

import math

import numpy as np
import optuna
import pytest
import study_cases
from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna.trial import TrialState
from study_cases import ask, read, told, with_trials

from botorch_skewgp import optuna as ours
from botorch_skewgp.optuna.internals import set_study_system_attr, study_of, system_attrs_of
from botorch_skewgp.optuna.judgements import read_records

XS = (0.0, 0.1, 0.2)


@pytest.fixture(params=["preferential", "plain"])
def study(request):
    return study_cases.page(XS, 3) if request.param == "preferential" else plain()


def plain():
    study = optuna.create_study()
    for x in XS:
        ask(study, x)
    return study


@pytest.fixture
def page():
    return study_cases.page([*XS, 0.3], 3)


def everything(study):
    inner = study_of(study)
    return inner.user_attrs, system_attrs_of(inner), [trial.state for trial in inner.trials]


def test_the_dashboard_sees_comparisons_of_its_studies(study):
    ours.report_comparison(study, *np.array([2, 0]))
    assert told(read(study)) == {"Preference": [(2, 0)]}
    if hasattr(study, "get_preferences"):
        assert [(better.number, worse.number) for better, worse in study.get_preferences()] == [(2, 0)]
        assert study.trials[0].state == TrialState.COMPLETE
    else:
        assert all(trial.state == TrialState.RUNNING for trial in study.trials)


CALLS = [
    lambda study: ours.report_comparison(study, 1, 0),
    lambda study: ours.report_unusable(study, 1),
    lambda study: ours.report_number(study, 1, 0.5, "maximize"),
    lambda study: ours.report_censored(study, 1, 0.5, direction="maximize"),
    lambda study: ours.withdraw_comparison(study, 1, 0),
    lambda study: ours.withdraw_reports(study, 1),
    ours.withdraw_unreadable,
    ours.get_next_question,
    ours.get_best_trial,
]
MISTAKES = [
    (lambda study: ours.report_comparison(study, None, 1), "None is neither a trial nor the number of one"),
    (lambda study: ours.withdraw_comparison(study, None, 0), "None is neither a trial"),
    (lambda study: ours.withdraw_reports(study, False), "False is neither a trial"),
    (lambda study: ours.withdraw_reports(study, 1), "Nothing was reported of trial 1"),
    (lambda study: ours.report_unusable(study, 9), "no trial 9"),
    (lambda study: ours.report_number(study, 9, 1.0, "maximize"), "no trial 9"),
    (lambda study: ours.report_number(study, 1, 1.0, "up"), "'maximize' or 'minimize'; got 'up'"),
    (lambda study: ours.report_censored(study, 1, 1.0, direction="up"), "'maximize' or 'minimize'; got 'up'"),
    *(
        (lambda study, value=value: ours.report_number(study, 1, value, "maximize"), "of trial 1 must be a finite")
        for value in (math.nan, 10**400, "0.5")
    ),
    *(
        (lambda study, call=call, other=other: call(other), f"must be a study of Optuna or its dashboard; got {other}")
        for call in CALLS
        for other in (None, "study")
    ),
]


@pytest.mark.parametrize(("report", "message"), MISTAKES)
def test_mistakes_are_refused_and_change_nothing(study, report, message):
    before = everything(study)
    with pytest.raises(InputDataError, match=message.replace("got study", "got 'study'")):
        report(study)
    assert everything(study) == before


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_direction_is_that_of_the_study(direction):
    study, sign = optuna.create_study(direction=direction), 1 if direction == "maximize" else -1
    study.tell(ask(study, 0.5), 0.5)
    for given in (None, direction):
        ours.report_number(study, 0, 3.0, direction=given)
        ours.report_censored(study, 0, 1.0, 4.0, direction=given)
        records = read_records(study)
        assert (records.numbers, records.bounds) == (
            {0: (3.0 * sign, None)},
            {0: tuple(sorted((sign * 1.0, sign * 4.0)))},
        )
    for report in (ours.report_number, ours.report_censored):
        with pytest.raises(InputDataError, match="A preferential study has no direction; give direction="):
            report(study_cases.page(XS), 0, 3.0)


def test_trials_that_failed_and_those_with_several_objectives_have_no_number():
    study, several = plain(), optuna.create_study(directions=["minimize", "maximize"])
    for number, state in enumerate((TrialState.FAIL, TrialState.PRUNED)):
        study.tell(number, state=state)
        with pytest.raises(InputDataError, match=f"Trial {number} is {state.name}: it gave no number"):
            ours.report_number(study, number, 1.0, "maximize")
    several.tell(several.ask(), (1.0, 1.0))
    for call in CALLS[2:4]:
        with pytest.raises(UnsupportedError, match=r"single objective.*has several: minimize, maximize"):
            call(several)
    assert study.user_attrs == several.user_attrs == {}


def test_others_may_write_numbers_and_what_is_unusable(study):
    inner = study_of(study)
    junk = {"number:x": 1.0, "number:2": math.inf, "number:9": 1.0, "unusable:0": 3, "bounds:1": [2, 1]}
    for key, value in junk.items():
        inner.set_user_attr(f"skewgp:{key}", value)
    assert len(read_records(inner).unreadable) == 5
    ours.withdraw_unreadable(study)
    assert read_records(inner).unreadable == []
    for is_unusable in (False, True):
        inner.set_user_attr("skewgp:unusable:1", is_unusable)
        assert read_records(inner).unusable == ({1} if is_unusable else set())


def test_the_best_of_three_is_one_observation(study):
    ours.report_choice(study, 2, [study.trials[0], 1])
    assert told(read(study)) == {"Choice": [(2, 0, 1)]}
    if hasattr(study, "preferences"):
        assert [(better.number, worse.number) for better, worse in study.preferences] == [(2, 0), (2, 1)]
        assert read(study).shown.tolist() == [False, False, True]
        assert study.should_generate()
    ours.withdraw_comparison(study, 0, 2)
    assert told(read(study)) == {"Preference": [(2, 1)]}
    ours.withdraw_comparison(study, 2, 1)
    assert read(study).observed() is None
    with pytest.raises(InputDataError, match="Trials 2 and 1 were not compared"):
        ours.withdraw_comparison(study, 2, 1)


def test_the_worst_of_three_on_the_page_is_one_observation(page):
    page.report_preference([page.trials[0], page.trials[2]], page.trials[1])  # what the page stores
    ours.report_comparison(page, 0, 2)
    _, worst = read(page).observed().observations
    assert worst.items[0, -1] == 1
    assert sorted(worst.duels.tolist()) == [[0, 1], [2, 1]]
    assert read(page).shown.tolist() == [True, False, False, True]


def test_pairs_of_one_report_without_a_common_trial_are_comparisons(page):
    page.report_preference([page.trials[0], page.trials[1]], [page.trials[2], page.trials[3]])
    assert told(read(page)) == {"Preference": [(0, 2), (0, 3), (1, 2), (1, 3)]}


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ({"winner": 0, "losers": [1], "tie": True}, {"Preference": [(0, 2)], "Tie": [(0, 1)]}),
        ({"winner": 0, "losers": [1], "judge": "ann"}, {"Preference": [(0, 2), (0, 1)]}),
        ([0, 2], {"Preference": [(0, 2), (0, 2)]}),
    ],
)
def test_ties_other_judges_and_pairs_told_twice_make_no_choice(page, odd, expected):
    """Others may write into the dashboard's entries."""
    set_study_system_attr(page._study, "preference:valuesodd", [[0, 2], odd])
    assert told(read(page)) == expected


def test_all_of_these_are_bad_on_the_page(page):
    ours.report_choice(page, None, [0, 1])
    ours.report_choice(page, page.trials[2], [3], or_none=True)
    ours.report_choice(page, 3, [], or_none=True, judge="ann")
    assert all(trial.state == TrialState.RUNNING for trial in page.trials)
    assert sorted(told(read(page))["ChoiceOrNone"]) == [(0, 1), (2, 3), (3,)]
    assert read(page).shown.tolist() == [False, False, True, False]
    assert page.should_generate()
    ours.withdraw_comparison(page, 2, 3)
    ours.withdraw_reports(page, 0)
    assert sorted(told(read(page))["ChoiceOrNone"]) == [(1,), (2,), (3,)]
    with pytest.raises(InputDataError, match="Trials 0 and 1 were not compared"):
        ours.withdraw_comparison(page, 0, 1)


def test_numbers_with_known_noise_count_by_it():
    """An exact low number outweighs many noisy high ones; the variance is on the scale of the transformed numbers."""
    study = with_trials([0.0, 0.5, 1.0], lambda x: 10 * x, n_startup_trials=9)
    ours.report_number(study, 1, 7.0, noise=0.25)
    data = read(study)
    known = data.observed()
    exact, learned = known.observations
    assert exact.index.tolist() == [1]
    at = data.power_transform(np.array([-7.5, -6.5]))
    assert float(exact.noise) ** 0.5 == pytest.approx((at[1] - at[0]) / 2)
    assert exact.values.tolist() == pytest.approx(data.power_transform(np.array([-7.0])).tolist())
    assert learned.noise is None
    ours.report_number(study, 1, 7.0)
    assert [entry.noise for entry in read(study).observed().observations] == [None]
    for wrong in (-1.0, float("nan"), "x"):
        with pytest.raises(InputDataError, match="noise"):
            ours.report_number(study, 1, 7.0, noise=wrong)
