"""How many trials are compared next, by the prices of questions."""

import math

import pytest
import torch

pytest.importorskip("optuna")

import optuna
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from optuna.distributions import FloatDistribution, IntDistribution
from optuna_dashboard import preferential

from botorch_skewgp.optuna import (
    SkewGPSampler,
    get_next_question,
    report_choice,
    report_comparison,
    report_tie,
    report_unusable,
)
from botorch_skewgp.optuna.internals import set_study_system_attr, skip_trial, system_attrs_of

X = {"x": FloatDistribution(0, 1)}


def ask(study, x):
    """A running trial at a value."""
    getattr(study, "_study", study).enqueue_trial({"x": x})
    return study.ask(X)


def page(xs):
    """A preferential study in which each trial lost to the one after it, so that its page shows the last one."""
    study = preferential.create_study(n_generate=2, sampler=SkewGPSampler(seed=0))
    for x in xs:
        ask(study, x)
    for worse in range(len(xs) - 1):
        report_comparison(study, worse + 1, worse)
    return study


def measured(xs, sign=1, direction="maximize"):
    study = optuna.create_study(direction=direction, sampler=SkewGPSampler(seed=0, num_startup_trials=2))
    for x in xs:
        study.tell(ask(study, x), -sign * (x - 0.6) ** 2)
    return study


def num_shown(study):
    return system_attrs_of(getattr(study, "_study", study)).get("preference:n_generate")


@pytest.mark.parametrize("new", [lambda: page([0.1, 0.9, 0.5]), lambda: measured([0.1, 0.9, 0.5])])
def test_the_most_information_for_its_price_is_asked_for(new):
    """The best of three tells more than a duel, and about as much as two duels."""
    study = new()
    values = {k: get_next_question(study, {k: 1.0}).value for k in (2, 3)}
    assert values[3] > 1.05 * values[2] > 0
    for price, k in ((1.05, 3), (3.0, 2)):
        asked = get_next_question(study, {2: 10.0, 3: 10 * price})
        assert (asked.num_new, asked.value, asked.cost) == (k - 1, values[k], {2: 10.0, 3: 10 * price}[k])
        assert asked.trials == [2]


def test_the_page_generates_as_many_trials_as_the_question_is_about():
    study = page([0.1, 0.9, 0.5])
    asked = get_next_question(study, {4: 1.0})
    assert (asked.trials, asked.num_new, num_shown(study)) == ([2], 3, 4)
    new = []
    while study.should_generate():
        new.append(study.ask(X).number)
    assert len(new) == 3
    report_choice(study, new[0], [2, *new[1:]])
    assert get_next_question(study, {2: 1.0}).trials == new[:1]


def test_a_question_is_about_all_trials_that_the_page_shows():
    study = page([0.1, 0.9, 0.5])
    for x in (0.2, 0.3, 0.4):
        ask(study, x)
    report_tie(study, 2, 3)
    skip_trial(study._study, study.trials[4])
    for junk, shown in (([[3, 5], 7], [2, 3]), (8, [2, 3, 5])):
        set_study_system_attr(study._study, "preference:valuesjunk", junk)
        with pytest.warns(InputDataWarning, match="preference:valuesjunk is left out: [78]"):
            asked = get_next_question(study, {len(shown): 1.0, 4: 99.0})
        assert (asked.trials, asked.num_new, asked.cost) == (shown, 0, 1.0)
    set_study_system_attr(study._study, "preference:valuesjunk", [])
    report_unusable(study, 5)
    before = system_attrs_of(study._study)
    ask(study, 0.7)
    with pytest.raises(InputDataError, match="page shows 3 trials, and costs has prices for 2 at most; add one for 3"):
        get_next_question(study, {2: 1.0})
    assert system_attrs_of(study._study) == before
    for x in (0.75, 0.8, 0.85):
        ask(study, x)
    assert (len(asked := get_next_question(study)), asked.num_new, asked.cost) == (4, 0, 6.0)


def test_the_cheapest_as_long_as_nothing_is_known():
    study = preferential.create_study(n_generate=2, sampler=SkewGPSampler(seed=0))
    asked = get_next_question(study, {4: 1.0, 2: 2.0})
    assert (asked.trials, asked.num_new, asked.cost, num_shown(study)) == ([], 4, 1.0, 4)
    assert math.isnan(asked.value)
    study.ask(X)
    assert get_next_question(study)[:2] == ([0], 1)
    plain = optuna.create_study()
    assert get_next_question(plain)[:2] == ([], 2)
    assert num_shown(plain) is None


def test_low_is_good_where_the_objective_is_minimised():
    high, low = (
        get_next_question(measured([0.1, 0.9, 0.5], sign, direction))
        for sign, direction in ((1, "maximize"), (-1, "minimize"))
    )
    assert high.value > 0
    assert low == high


def test_the_best_trial_is_none_that_failed():
    study = measured([0.1, 0.5, 0.9])
    report_comparison(study, 1, 2)
    assert get_next_question(study).trials == [1]
    report_unusable(study, 1)
    assert get_next_question(study).trials == [2]


def test_no_more_trials_than_there_are_points():
    study = preferential.create_study(n_generate=2, sampler=SkewGPSampler(seed=0))
    for _ in range(2):
        study.ask({"n": IntDistribution(0, 2)})
    report_comparison(study, 0, 1)
    assert get_next_question(study, {2: 100.0, 4: 1.0}).cost == 100.0
    before = system_attrs_of(study._study)
    with pytest.raises(InputDataError, match="about 3 points of this study at most; add a price for fewer"):
        get_next_question(study, {4: 1.0})
    assert system_attrs_of(study._study) == before


def test_a_question_about_more_trials_than_points_is_refused_in_place_of_nan():
    study = measured([0.1, 0.9, 0.5])
    with pytest.raises(InputDataError, match="about 131 points of this study at most"):
        get_next_question(study, {200: 1.0})
    asked = get_next_question(study, {200: 1.0, 2: 300.0})
    assert (asked.cost, asked.value > 0) == (300.0, True)


def test_it_depends_on_the_data_alone():
    study = page([0.1, 0.9, 0.5])
    state = torch.get_rng_state()
    first = get_next_question(study)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert get_next_question(page([0.1, 0.9, 0.5])) == first


def test_mistakes_change_nothing():
    study = page([0.1, 0.9])
    before = system_attrs_of(study._study)
    for costs in ({}, 3.0, [1.0, 2.0], {1: 1.0}, {2.0: 1.0}, {True: 1.0}, {"2": 1.0}):
        with pytest.raises(InputDataError, match="costs must be a price for each of the numbers of trials, from 2 on"):
            get_next_question(study, costs)
    for price in (0.0, -1.0, math.nan, math.inf, "cheap", None, True):
        with pytest.raises(InputDataError, match="price of 2 trials must be a"):
            get_next_question(study, {2: price})
    assert system_attrs_of(study._study) == before
    with pytest.raises(UnsupportedError, match="has several: minimize, maximize"):
        get_next_question(optuna.create_study(directions=["minimize", "maximize"]))


@pytest.mark.slow
def test_a_person_who_names_the_best_finds_it():
    study = preferential.create_study(n_generate=2, sampler=SkewGPSampler(seed=0))
    space = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
    sizes = set()
    for _ in range(8):
        asked = get_next_question(study, {2: 1.0, 4: 1.5})
        shown = [*asked.trials, *(study.ask(space).number for _ in range(asked.num_new))]
        sizes.add(len(shown))
        loss = {n: (study.trials[n].params["x"] - 0.3) ** 2 + (study.trials[n].params["y"] - 0.6) ** 2 for n in shown}
        best = min(shown, key=loss.__getitem__)
        report_choice(study, best, [n for n in shown if n != best])
    assert sizes == {2, 4}
    assert loss[best] < 0.01
