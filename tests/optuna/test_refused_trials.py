""" "All of these are bad" as an answer in studies, from the first round on."""

import itertools

import pytest

pytest.importorskip("optuna")

import optuna
from botorch.exceptions.errors import InputDataError
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from optuna_dashboard import preferential
from study_cases import choices

from botorch_skewgp.observations import ChoiceOrNone
from botorch_skewgp.optuna import (
    SkewGPSampler,
    get_best_trial,
    get_next_question,
    report_choice,
    withdraw_comparison,
    withdraw_reports,
)
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study

SPACE = {"x": FloatDistribution(0, 1)}


def read(study):
    return read_study(getattr(study, "_study", study), SearchSpace(SPACE))


def chosen_among(study):
    data = read(study)
    return {tuple(data.trials[row] for row in rows) for rows in choices(data)}


def asked(study, x):
    """A running trial at a value."""
    getattr(study, "_study", study).enqueue_trial({"x": x})
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    return trial


@pytest.fixture
def study():
    return preferential.create_study(n_generate=2, sampler=SkewGPSampler(seed=0, num_startup_trials=2))


def test_what_is_stored_is_read(study):
    for x in (0.1, 0.4, 0.6, 0.8):
        asked(study, x)
    report_choice(study, None, [0, 1])
    report_choice(study, study.trials[2], [3], or_none=True)
    report_choice(study, 3, [], or_none=True, judge="ann")
    shared, named = read(study).observed().observations
    assert isinstance(shared, ChoiceOrNone)
    assert sorted(zip(shared.none.tolist(), shared.options.tolist(), strict=True)) == [(False, [2, 3]), (True, [0, 1])]
    assert (named.none.tolist(), named.options.tolist(), named.judge.tolist()) == ([False], [[3]], [0])
    assert all(trial.state == TrialState.RUNNING for trial in study.trials)
    assert read(study).shown.tolist() == [False, False, True, False]
    assert study.should_generate()
    withdraw_comparison(study, 2, 3)
    assert chosen_among(study) == {(0, 1), (2,), (3,)}
    withdraw_reports(study, 0)
    assert chosen_among(study) == {(1,), (2,), (3,)}
    with pytest.raises(InputDataError, match="Trials 0 and 1 were not compared"):
        withdraw_comparison(study, 0, 1)


def test_all_first_answers_are_none_and_the_search_leaves_what_was_refused(study):
    """Then something is good; it is recommended, and the search stays near it."""
    refused = [0.05, 0.15, 0.1, 0.2]
    for number, x in enumerate(refused):
        asked(study, x)
        if number % 2:
            report_choice(study, None, [number - 1, number])
            if number > 1:
                far = asked(study, 0.0).number  # a trial that says nothing
                assert get_next_question(study, {2: 1.0, 3: 2.0}).num_new >= 0
                assert far == number + 1
    chosen = [study.ask().suggest_float("x", 0, 1) for _ in range(2)]
    assert min(chosen) > 0.3
    assert get_best_trial(study).params["x"] in refused
    number = asked(study, 0.7).number
    report_choice(study, number, [0], or_none=True)
    assert get_best_trial(study).number == number
    assert abs(study.ask().suggest_float("x", 0, 1) - 0.7) < 0.3


def test_a_study_of_comparisons_alone_starts_the_model():
    """Its trials go on running, as there is no value to tell."""
    study = optuna.create_study(direction="maximize", sampler=SkewGPSampler(seed=0, num_startup_trials=4))
    numbers = [asked(study, x).number for x in (0.1, 0.3, 0.5, 0.7)]
    for worse, better in itertools.pairwise(numbers):
        report_choice(study, better, [worse])
    assert study.ask().suggest_float("x", 0, 1) > 0.6
    assert any(key.startswith("skewgp:") for key in study.trials[-1].system_attrs)
