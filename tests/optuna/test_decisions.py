"""How many trials are compared next, and which one is recommended."""

import itertools
import math

import optuna
import pytest
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from optuna.distributions import FloatDistribution, IntDistribution
from study_cases import DISTRIBUTIONS, ask, page, sampler, with_trials

from botorch_skewgp import optuna as ours
from botorch_skewgp.optuna import decisions
from botorch_skewgp.optuna.internals import set_study_system_attr, skip_trial, study_of, system_attrs_of
from botorch_skewgp.optuna.search_space import search_space_of
from botorch_skewgp.optuna.study_data import AGAINST, read_study
from botorch_skewgp.optuna.study_model import Fits, StudyModel


def lost(xs=(0.1, 0.9, 0.5), losses=2):
    """A preferential study in which so many trials lost to the one after it, and have left the page."""
    study = page(xs)
    for worse in range(losses):
        ours.report_comparison(study, worse + 1, worse)
    return study


def measured():
    return with_trials((0.1, 0.9, 0.5))


def num_shown(study):
    return system_attrs_of(study_of(study)).get("preference:n_generate")


def test_the_most_information_for_its_price_is_asked_for(monkeypatch):
    """The best of four tells more than a duel, and less than three duels."""
    monkeypatch.setattr(decisions, "NUM_SPREAD", 64)
    study = with_trials((0.1, 0.9))
    values = {k: ours.get_next_question(study, {k: 1.0}).value for k in (2, 4)}
    assert values[4] > 1.05 * values[2] > 0
    for price, k in ((1.02, 4), (3.0, 2)):
        asked = ours.get_next_question(study, {2: 10.0, 4: 10 * price})
        assert (asked.num_new, asked.value, asked.cost) == (k - 1, values[k], {2: 10.0, 4: 10 * price}[k])
        assert asked.trials == [1]


def test_the_page_generates_as_many_trials_as_the_question_is_about():
    study = lost()
    asked = ours.get_next_question(study, {4: 1.0})
    assert (asked.trials, asked.num_new, num_shown(study)) == ([2], 3, 4)
    new = []
    while study.should_generate():
        new.append(study.ask(DISTRIBUTIONS).number)
    assert len(new) == 3
    ours.report_choice(study, new[0], [2, *new[1:]])
    assert ours.get_next_question(study, {2: 1.0}).trials == new[:1]


def test_a_question_is_about_all_trials_that_the_page_shows():
    study = lost((0.1, 0.9, 0.5, 0.2, 0.3, 0.4))
    ours.report_comparison(study, 2, 3, tie=True)
    skip_trial(study._study, study.trials[4])
    set_study_system_attr(study._study, "preference:valuesjunk", [[3, 5], 7])
    with pytest.warns(InputDataWarning, match="preference:valuesjunk is left out: 7"):
        asked = ours.get_next_question(study, {2: 1.0, 4: 99.0})
    assert (asked.trials, asked.num_new, asked.cost) == ([2, 3], 0, 1.0)
    set_study_system_attr(study._study, "preference:valuesjunk", [])
    before = system_attrs_of(study._study)
    with pytest.raises(InputDataError, match="page shows 3 trials, and costs has prices for 2 at most; add one for 3"):
        ours.get_next_question(study, {2: 1.0})
    assert system_attrs_of(study._study) == before
    ours.report_unusable(study, 5)
    for x in (0.7, 0.75, 0.8):
        ask(study, x)
    asked = ours.get_next_question(study)
    assert (asked.num_new, asked.cost) == (0, 5.0)


def test_the_cheapest_as_long_as_nothing_is_known():
    study = page([])
    asked = ours.get_next_question(study, {4: 1.0, 2: 2.0})
    assert (asked.trials, asked.num_new, asked.cost, num_shown(study)) == ([], 4, 1.0, 4)
    assert math.isnan(asked.value)
    study.ask(DISTRIBUTIONS)
    assert ours.get_next_question(study)[:2] == ([0], 1)
    plain = optuna.create_study()
    assert ours.get_next_question(plain)[:2] == ([], 2)
    assert num_shown(plain) is None


def test_no_more_trials_than_there_are_points():
    study = page([])
    for _ in range(2):
        study.ask({"n": IntDistribution(0, 2)})
    ours.report_comparison(study, 0, 1)
    assert ours.get_next_question(study, {2: 100.0, 4: 1.0}).cost == 100.0
    before = system_attrs_of(study._study)
    for asked, sizes, num_points in ((study, {4: 1.0}, 3), (measured(), {200: 1.0}, 131)):
        with pytest.raises(InputDataError, match=f"about {num_points} points of this study at most; add a price for"):
            ours.get_next_question(asked, sizes)
    assert system_attrs_of(study._study) == before


def test_the_best_trial_of_comparisons_on_the_page():
    assert ours.get_best_trial(lost((0.1, 0.4, 0.9))).params == {"x": 0.9}


def loss_of(x):
    return (x - 0.3) ** 2


@pytest.mark.parametrize(
    "kind", ["a range that widens", "branches", "a branch beside a shared parameter", "no parameter"]
)
@pytest.mark.parametrize("numbers", [True, False])
def test_trials_that_share_no_parameter_have_a_best_one_too(kind, numbers):
    """It is the one that Optuna knows; where people compare, the one that never lost."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    losses = []
    for number in range(6):
        trial = study.ask()
        if kind == "a branch beside a shared parameter":
            trial.suggest_categorical("shared", ["a", "b"])
        if kind == "no parameter":
            x = 0.15 * number
        elif kind == "a range that widens":
            x = trial.suggest_float("x", 0, 1 if number < 3 else 3)
        else:
            x = trial.suggest_float("uv"[number % 2], 0, 1)
        losses.append(loss_of(x))
        if numbers:
            study.tell(trial, losses[-1])
    order = sorted(range(6), key=losses.__getitem__)
    if not numbers:
        for better, worse in itertools.pairwise(order):
            ours.report_comparison(study, better, worse)
            ours.report_comparison(study, better, worse)
    assert ours.get_best_trial(study).number == order[0]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_best_point_was_not_tried(sign):
    """It is where the parabola of the numbers ends, which is between two trials, and within its interval."""
    study = optuna.create_study(direction="maximize" if sign > 0 else "minimize")
    for x in (0.0, 0.2, 0.4, 0.8, 1.0):
        study.tell(ask(study, x), -sign * (3 + 100 * loss_of(x)))
    found = ours.get_best_point(study)
    assert abs(found.params["x"] - 0.3) < 0.03
    assert found.low < found.median < found.high
    assert abs(found.median + sign * 3) < 0.5
    assert found.p_works == 1.0


def test_the_best_point_is_likely_to_work():
    """What is best is where trials fail."""
    study = with_trials((0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 1.0), lambda x: (x - 0.9) ** 2 if x < 0.5 else None)
    found = ours.get_best_point(study)
    assert 0.3 < found.params["x"] < 0.7
    assert 0.49 < found.p_works < 1


def test_the_best_point_of_comparisons_and_of_nothing():
    study = optuna.create_study(direction="minimize")
    for x in (0.1, 0.4, 0.9):
        ask(study, x)
    for _ in range(3):
        ours.report_comparison(study, 1, 0)
        ours.report_comparison(study, 1, 2)
    found = ours.get_best_point(study)
    assert 0.2 < found.params["x"] < 0.7
    assert found.median > 0, "a utility, of which much is good"
    with pytest.raises(InputDataError, match="Nothing is known"):
        ours.get_best_point(optuna.create_study())


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_answers_outweigh_a_number_that_is_a_little_better(direction):
    """Optuna's own best trial is the one that lost all its comparisons."""
    study, sign = optuna.create_study(direction=direction), 1.0 if direction == "maximize" else -1.0
    for x, value in ((0.0, 0.0), (0.2, 1.0), (0.4, 0.99), (1.0, -3.0)):
        study.tell(ask(study, x), sign * value)
    for _ in range(20):
        ours.report_comparison(study, 2, 1)
    assert study.best_trial.number == 1
    assert ours.get_best_trial(study).number == 2


# Several questions at once, fixed parameters, champions


@pytest.mark.slow
def test_open_questions_are_known_and_answered_in_any_order():
    """Their answers leave less to learn, and what is asked next is another trial."""
    study = with_trials((), None)
    for x in (0.1, 0.9, 0.5):
        ask(study, x)
    for winner, loser in ((2, 0), (2, 1)):
        ours.report_comparison(study, winner, loser)
    asked, new = [], []
    for _ in range(3):
        asked.append(ours.get_next_question(study, {2: 1.0}))
        assert asked[-1][:2] == ([2], 1)
        new.append(study.ask(DISTRIBUTIONS))
    assert len({trial.params["x"] for trial in new}) == 3
    assert asked[0].value > asked[1].value > 0
    for k in (1, 2, 0):
        ours.report_comparison(study, 2, new[k])
    assert ours.get_next_question(study, {2: 1.0}).trials == [2]


@pytest.mark.slow
def test_others_are_the_best_beside_what_is_fixed():
    """Of (x - y)^2: whatever y is fixed at, x follows."""
    space = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=sampler(n_startup_trials=2))
    for x, y in itertools.product((0.0, 0.5, 1.0), repeat=2):
        study.enqueue_trial({"x": x, "y": y})
        study.tell(study.ask(space), (x - y) ** 2)
    for y in (0.25, 0.75):
        asked = ours.get_next_question(study, {2: 1.0}, fixed_parameters={"y": y})
        assert asked[:2] == ([], 2)  # no trial has the value
        new = [study.ask(space).params for _ in range(2)]
        assert {params["y"] for params in new} == {y}
        assert abs(new[0]["x"] - y) < 0.15
    asked = ours.get_next_question(study, {2: 1.0}, fixed_parameters={"y": 0.5})
    assert study.trials[asked.trials[0]].params == {"x": 0.5, "y": 0.5}


@pytest.mark.slow
def test_a_champion_is_challenged():
    """New trials improve on it, not on the best one, and keep away from those that challenge it already."""
    study = with_trials((0.1, 0.5, 0.9))
    assert ours.get_next_question(study, {2: 1.0}).trials == [1]
    asked = ours.get_next_question(study, {3: 1.0}, against=study.trials[2], seed=1)
    assert asked[:2] == ([2], 2)
    space = search_space_of(study.trials)
    for _ in range(2):
        trial = study.ask(DISTRIBUTIONS)
        data = read_study(study, space, leave_out=[trial.number])
        against = study.trials[trial.number].system_attrs[AGAINST]
        champion = StudyModel(data, space, Fits(0)).acquisition(0, data.X[data.pending], against)
        assert champion.X_baseline.tolist() == [[0.9]]
    number = study.ask(DISTRIBUTIONS).number
    assert AGAINST not in study.trials[number].system_attrs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fixed_parameters": {"z": 1.0}}, "names z, which no trial has"),
        ({"fixed_parameters": {"x": 3.0}}, "must be fixed at a value of FloatDistribution"),
        ({"fixed_parameters": {"x": "a"}}, "must be fixed at a value of FloatDistribution"),
        ({"fixed_parameters": {"x": 0.2}, "against": 0}, "Trial 0 has other values"),
        ({"against": 7}, "no trial 7"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_changes_nothing(options, message):
    study = measured()
    with pytest.raises(InputDataError, match=message):
        ours.get_next_question(study, {2: 1.0}, **options)
    assert len(study.trials) == 3


def test_a_champion_is_on_the_page():
    study = lost()
    with pytest.raises(InputDataError, match=r"Trial 0 is not on the page, which shows \[2\]"):
        ours.get_next_question(study, against=0)
    assert ours.get_next_question(study, {2: 1.0}, against=2)[:2] == ([2], 1)
    assert study.trials[study.ask(DISTRIBUTIONS).number].system_attrs[AGAINST] == 2
