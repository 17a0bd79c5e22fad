"""Whatever others have written into a study: the sampler reads what it can, tells the rest, and goes on."""

import math
import re
import warnings

import pytest

pytest.importorskip("optuna")

import optuna
from botorch.exceptions.warnings import InputDataWarning
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from study_cases import choices, preferences

from botorch_skewgp.optuna import (
    SkewGPSampler,
    report_choice,
    report_comparison,
    withdraw_reports,
    withdraw_unreadable,
)
from botorch_skewgp.optuna.internals import set_study_system_attr, set_trial_system_attr, study_of
from botorch_skewgp.optuna.judgements import read_records
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study

SPACE = SearchSpace({"x": FloatDistribution(0, 1)})
NUM_TRIALS = 5

KINDS = ("better", "tie", "choice", "unusable", "number", "lower", "upper")
FIELDS = ["winner", "loser", "losers", "tie", "judge"]

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.integers(-1, NUM_TRIALS)
json = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=6,
)
names = st.integers(-1, NUM_TRIALS).map(str) | st.text(max_size=5)
of_study = st.dictionaries(
    st.builds(
        str.__add__,
        st.sampled_from([f"skewgp:{kind}:" for kind in KINDS]),
        names,
    ),
    json | st.fixed_dictionaries({"winner": json, "losers": json}, optional={"judge": json}),
    max_size=4,
)
of_dashboard = st.dictionaries(
    st.builds(str.__add__, st.sampled_from(["preference:values", "preference:skip_trial:"]), names)
    | st.just("preference:is_preferential"),
    json,
    max_size=3,
)
of_trial = st.dictionaries(
    st.builds(str.__add__, st.sampled_from(["constraints:", "skewgp:relative_params:"]), st.sampled_from(["x", "c"]))
    | st.sampled_from(["constraints", "retry_history", "skewgp:choosing"]),
    json,
    max_size=3,
)


def new_study():
    """Four trials that ended, and one that runs."""
    study = optuna.create_study(sampler=SkewGPSampler(seed=0, num_startup_trials=3))
    for x in (0.1, 0.4, 0.6, 0.9):
        study.enqueue_trial({"x": x})
        trial = study.ask()
        study.tell(trial, (trial.suggest_float("x", 0, 1) - 0.5) ** 2)
    study.ask()
    return study


def written(study, user_attrs, system_attrs, trial_attrs, running_attrs):
    for key, value in user_attrs.items():
        study.set_user_attr(key, value)
    for key, value in system_attrs.items():
        set_study_system_attr(study, key, value)
    stored = study._storage._studies[study._study_id].trials  # a storage in memory refuses to change trials that ended
    stored[1].system_attrs.update(trial_attrs)
    for key, value in running_attrs.items():
        set_trial_system_attr(study, study.trials[-1], key, value)


def told(action):
    """What an action tells of entries that are left out; nothing else is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    assert all(issubclass(entry.category, InputDataWarning) for entry in caught)
    return [str(entry.message) for entry in caught]


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(of_study, of_dashboard, of_trial, of_trial)
def test_any_entries_are_read_or_told_and_can_be_taken_back(user_attrs, system_attrs, trial_attrs, running_attrs):
    study = new_study()
    written(study, user_attrs, system_attrs, trial_attrs, running_attrs)
    messages = told(lambda: read_study(study, SPACE))
    subjects = [re.escape(key) for key in (*user_attrs, *system_attrs)]
    subject = "|".join([*subjects, r"Constraint '.*' of trial [14]", r"retry_history of trial [14]"])
    assert all(re.match(f"({subject}) is left out", message, re.DOTALL) for message in messages), messages
    assert all(study.study_name in message for message in messages)
    data = read_study(study, SPACE)
    assert not data.constraints.isinf().any()
    assert set(data.valid.nan_to_num(nan=0.5).tolist()) <= {0.0, 0.5, 1.0}
    assert told(lambda: read_study(study, SPACE)) == []  # once
    withdraw_unreadable(study)
    assert read_records(study).unreadable == []
    for number in range(NUM_TRIALS):
        if any(study.user_attrs.get(f"skewgp:{kind}:{number}") is not None for kind in ("number", "lower", "upper")):
            withdraw_reports(study, number)
    records = read_records(study)
    assert (records.numbers, records.lower, records.upper) == ({}, {}, {})


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(of_study, of_trial)
def test_the_sampler_goes_on_whatever_others_wrote(user_attrs, trial_attrs):
    study = new_study()
    written(study, user_attrs, {}, trial_attrs, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        trial = study.ask()
        assert 0 <= trial.suggest_float("x", 0, 1) <= 1


def test_an_entry_that_says_usable_is_none_of_unusable():
    study = new_study()
    study.set_user_attr("skewgp:unusable:1", False)
    assert read_study(study, SPACE).valid.tolist()[:4] == [1.0] * 4
    study.set_user_attr("skewgp:unusable:1", True)
    assert read_study(study, SPACE).valid.tolist()[:4] == [1.0, 0.0, 1.0, 1.0]


def test_a_study_with_junk_keeps_what_is_right():
    study = study_of(new_study())
    report_comparison(study, 1, 0)
    study.set_user_attr("skewgp:better:junk", {"winner": 1, "loser": [0]})
    study.set_user_attr("skewgp:number:x", 1.0)
    study.set_user_attr("skewgp:number:2", math.inf)
    report_choice(study, 2, [0, 3], judge="ann")
    for name, losers in (("twice", [0, 0]), ("none", []), ("unknown", [0, 9]), ("itself", [2, 0]), ("text", "01")):
        study.set_user_attr(f"skewgp:choice:{name}", {"winner": 2, "losers": losers})
    study.set_user_attr("skewgp:choice:judge", {"winner": 2, "losers": [0, 1], "judge": [1]})
    messages = told(lambda: read_study(study, SPACE))
    assert len(messages) == 9
    assert sum("does not name a winner and a loser or losers" in message for message in messages) == 7
    withdraw_unreadable(study)
    assert preferences(read_study(study, SPACE)) == ((1, 0),)
    assert choices(read_study(study, SPACE)) == ((2, 0, 3),)
    assert read_records(study).unreadable == []
    assert study.trials[0].state == TrialState.COMPLETE
