"""What both hosts must read of the same trials, refuse, ask next and recommend: one table."""

import math
import random
import re

import numpy as np
import pytest
import torch
from botorch.acquisition.multi_objective import logei
from host_cases import ERRORS, HOSTS, told
from torch.utils import cpp_extension

from botorch_skewgp.hosts.records import _warn_once

pytestmark = [
    pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning"),
    pytest.mark.parametrize("make", HOSTS.values(), ids=list(HOSTS)),
]
FAILS, WORKS = 0.0, 1.0


@pytest.fixture
def few_points(monkeypatch):
    """Questions about a small part of the search space."""
    for host in ("ax", "optuna"):
        monkeypatch.setattr(f"botorch_skewgp.{host}.decisions.NUM_SPREAD", 16)


@pytest.fixture
def compilations(monkeypatch):
    """The kernels that torch is asked to compile, none of which is."""
    asked = []
    monkeypatch.setattr(logei, "_load_attempted", False)
    monkeypatch.setattr(cpp_extension, "load", lambda name, **kwargs: asked.append(name))
    yield asked
    assert logei._load_attempted is False


def of(host, *values, xs=None):
    """The host, with trials with numbers at 0, .1, .2, ..."""
    for number, value in enumerate(values):
        host.attach(number / 10 if xs is None else xs[number])
        host.number(number, value)
    return host


def valley(host, *xs, best=0.6):
    """Trials with the numbers of a function that is best at one point."""
    return of(host, *(-host.sign * (x - best) ** 2 for x in xs), xs=xs)


# What is read


@pytest.mark.parametrize("sign", [-1, 1])
def test_numbers_are_read_in_their_units(make, sign):
    _, numbers, bounds, valid = of(make(sign=sign), 3.0, 0.0, 2.0, -1.0).read()
    assert numbers == pytest.approx({0.0: 3.0, 0.1: 0.0, 0.2: 2.0, 0.3: -1.0}, abs=1e-9)
    assert (bounds, valid) == ({}, {})


def test_failures(make):
    host = of(make(), 3.0, 1.0)
    host.fail(host.attach(0.8))
    host.unusable(host.attach(0.9), 7.0)
    host.attach(0.5)  # it runs
    _, _, _, valid = host.read()
    assert valid == {0.0: WORKS, 0.1: WORKS, 0.8: FAILS, 0.9: FAILS}


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300])
def test_a_number_without_a_square_is_a_failure(make, value):
    host = of(make(), 3.0, 1.0)
    host.number(host.attach(0.5), value)
    found = []
    told(lambda: found.extend(host.read()))
    assert found[1] == pytest.approx({0.0: 3.0, 0.1: 1.0})
    assert found[3] == {0.0: WORKS, 0.1: WORKS, 0.5: FAILS}


@pytest.mark.parametrize(
    ("ends", "lower", "upper"),
    [
        ("told while running", 2.0, None),
        ("told after", None, 2.0),
        ("never told", 2.0, 5.0),
        ("failed before", 2.0, None),
        ("failed after", None, 2.0),
    ],
)
def test_a_bound_is_read_alike_however_its_trial_ends(make, ends, lower, upper):
    host = of(make(), 3.0, 1.0)
    trial = host.attach(0.5)
    if ends == "told after":
        host.number(trial, 4.0)
    elif ends == "failed before":
        host.fail(trial)
    host.bound(trial, 0.5)
    host.bound(trial, lower, upper)  # which replaces the first
    if ends == "told while running":
        host.number(trial, 4.0)
    elif ends == "failed after":
        host.fail(trial)
    _, numbers, bounds, valid = host.read()
    assert set(numbers) == {0.0, 0.1}
    expected = -math.inf if lower is None else lower, math.inf if upper is None else upper
    assert bounds[0.5] == pytest.approx(expected)
    assert set(valid.values()) <= {WORKS}
    host.withdraw_bound(trial)
    assert host.read()[2] == {}


@pytest.mark.parametrize("sign", [-1, 1])
def test_numbers_and_bounds_are_on_one_scale(make, sign):
    """Bounds at numbers are the images of these, and an extremely bad number counts as a less bad one."""
    two, five, one, diverged = 2.0, 5.0, 1.0, -1e9 * sign
    host = of(make(sign=sign), two, five, one, diverged, 3.0)
    host.bound(host.attach(0.8), two, five)
    numbers, bounds = host.scaled()
    assert numbers[0.2] < numbers[0.0] < numbers[0.1]
    assert bounds[0.8] == pytest.approx((numbers[0.0], numbers[0.1]))
    assert abs(numbers[0.3] - numbers[0.2]) < 10 * abs(numbers[0.1] - numbers[0.2])


def test_judgements(make):
    host = make()
    host.attach(0.0, 0.1, 0.2, 0.3)
    host.prefer(2, 0)
    host.prefer(1, 0, judge="bob")
    host.prefer(0, 1, judge="ann")
    host.prefer(0, 3, tie=True)
    host.choose(2, [0, 3])
    host.choose(3, [1])
    host.choose(None, [0, 1])
    host.choose(1, [], or_none=True)
    host.choose(2, [1], or_none=True, judge=7)
    said, numbers, _, _ = host.read()
    assert said == {
        "Preference": {(0.2, 0.0), (0.3, 0.1), (0.1, 0.0, 2), (0.0, 0.1, 1)},
        "Tie": {(0.0, 0.3)},
        "Choice": {(0.2, 0.0, 0.3)},
        "ChoiceOrNone": {(0.0, 0.1, True), (0.1, False), (0.2, 0.1, False, 0)},
    }
    assert numbers == {}
    for pair in ((1, 0), (3, 0), (0, 2)):
        host.withdraw(*pair)
    said, *_ = host.read()
    assert said == {
        "Preference": {(0.3, 0.1), (0.2, 0.3)},
        "ChoiceOrNone": {(0.0, 0.1, True), (0.1, False), (0.2, 0.1, False, 0)},
    }
    host.withdraw(1, 2)
    assert host.read()[0]["ChoiceOrNone"] == {(0.0, 0.1, True), (0.1, False), (0.2, False, 0)}


def test_judgements_beside_numbers_and_failures(make):
    host = of(make(), 3.0, 1.0)
    host.prefer(host.attach(0.7), 0)
    said, numbers, _, valid = host.read()
    assert said["Preference"] == {(0.7, 0.0)}
    assert numbers == pytest.approx({0.0: 3.0, 0.1: 1.0})
    assert valid == {}
    host.fail(2)
    said, *_, valid = host.read()
    assert (said["Preference"], valid[0.7]) == ({(0.7, 0.0)}, FAILS)


TWICE = "named twice; name different ones|same arm, [0-9_]+; name different ones"
NO_LIST = "must be a list of the trials that were not chosen"
MISTAKES = [
    (lambda host: host.prefer(0, 9), "no trial 9"),
    (lambda host: host.prefer(-1, 0), "no trial -1"),
    (lambda host: host.prefer(True, 0), "no trial True|True is neither a trial"),
    (lambda host: host.prefer(1.0, 0), "no trial 1.0|1.0 is neither a trial"),
    (lambda host: host.prefer([], 0), r"no trial \[\]|\[\] is neither a trial"),
    (lambda host: host.prefer(1, 9, tie=True), "no trial 9"),
    (lambda host: host.prefer(1, 1), TWICE),
    (lambda host: host.prefer(1, 0, tie="no"), "tie must be True or False; got 'no'"),
    (lambda host: host.choose(1, [0, 0]), TWICE),
    (lambda host: host.choose(1, [2, 0, 1]), TWICE),
    (lambda host: host.choose(None, [1, 1]), TWICE),
    (lambda host: host.choose(None, [1, 9]), "no trial 9"),
    (lambda host: host.choose(1, []), NO_LIST),
    (lambda host: host.choose(None, [], or_none=True), NO_LIST),
    *((lambda host, others=others: host.choose(1, others), NO_LIST) for others in ("02", 0, b"\x00")),
    (lambda host: host.choose(1, [0], or_none="yes"), "or_none must be"),
    *((lambda host, judge=judge: host.prefer(1, 0, judge=judge), "judge must be a name") for judge in (-1, "", 1.5)),
    (lambda host: host.prefer(1, 0, judge=True), "judge must be a name"),
    (lambda host: host.withdraw(0, 1), "were not compared"),
    (lambda host: host.bound(9, 1.0), "no trial 9"),
    *((lambda host, bound=bound: host.bound(1, bound), "finite") for bound in (math.nan, 10**400, True, "a", None)),
    (lambda host: host.bound(1, 2.0, 2.0), "finite bounds, lower below upper; got lower=2.0, upper=2.0"),
    (lambda host: host.withdraw_bound(1), "there is nothing to take back"),
    (lambda host: host.ask({}), "costs must be a price for each of"),
    *(
        (lambda host, costs=costs: host.ask(costs), "costs must be a price for each of")
        for costs in (3.0, [1.0], {"duel": 1.0}, {1: 1.0}, {2.0: 1.0}, {True: 1.0}, {"2": 1.0})
    ),
    *(
        (lambda host, price=price: host.ask({host.questions[0]: price}), "The price of .* must be a .*finite number")
        for price in (0.0, -1.0, math.nan, math.inf, "cheap", None, True)
    ),
    (lambda host: host.best(), "Nothing is known of the objective yet"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_mistakes_are_refused_and_change_nothing(make, mistake, message):
    host = make()
    host.attach(0.0, 0.1, 0.2)
    before = host.stored()
    with pytest.raises(host.error, match=message):
        mistake(host)
    assert host.stored() == before


OF_ONE_OBJECTIVE = [
    lambda host: host.prefer(0, 1),
    lambda host: host.prefer(0, 1, tie=True),
    lambda host: host.choose(0, [1]),
    lambda host: host.ask({host.questions[0]: 1.0}),
]


def test_judgements_of_several_objectives_are_refused(make):
    host = make(num_objectives=2)
    host.attach(0.0, 0.1)
    before = host.stored()
    for call in OF_ONE_OBJECTIVE:
        with pytest.raises(ERRORS, match=r"single objective.*has several: "):
            call(host)
        assert host.stored() == before
    host.junk([0, 1], {"winner": "0_0", "losers": ["1_0"]})  # from before there were several
    for trial in (0, 1):
        host.number(trial, 1.0, 2.0)
    assert any("need a single objective" in message for message in told(host.next))
    host.clean()
    _warn_once.cache_clear()
    assert told(host.next) == []


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"startup": 0}, "must be an integer of at least 1; got 0"),
        ({"startup": 1.5}, "must be an integer of at least 1; got 1.5"),
        ({"startup": True}, "must be an integer"),
        ({"startup": "a"}, "must be an integer"),
        ({"failures": "yes"}, "failures must be .*got 'yes'"),
        ({"seed": "x"}, "seed must be an integer from 0 to 9223372036854775807; got 'x'"),
        ({"seed": 2**70}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
    ],
)
def test_arguments(make, kwargs, message):
    with pytest.raises(ERRORS, match=message):
        make(**kwargs)


JUNK = [
    "junk",
    {"winner": 0},
    {"winner": ["0_0"], "losers": [1]},
    {"winner": 2, "losers": 3},
    4.5,
    [[1], 0],
    [9, 0],
    {"winner": 0, "losers": [0]},
    {"winner": 0, "losers": [1], "judge": [1]},
    {"winner": None, "losers": [1], "tie": True},
]
BOUNDS_OF_NOTHING = [5, {"trial": True, "arm": "0_0", "metric": "loss", "lower": 1.0}]


def test_entries_that_cannot_be_read_are_told_once_and_can_be_taken_back(make):
    host = of(make(), 3.0, 1.0)
    host.prefer(1, 0)
    host.junk(*JUNK)
    host.junk_bounds(*BOUNDS_OF_NOTHING)
    messages = told(host.read)
    assert len(messages) == len(set(messages)) == len(JUNK) + len(BOUNDS_OF_NOTHING)
    assert all(re.search("is left out: .*withdraw_unreadable", message) for message in messages)
    assert told(host.read) == []
    host.clean()
    _warn_once.cache_clear()
    assert told(host.read) == []
    assert not any(repr(entry) in host.stored() for entry in JUNK[1:])
    assert host.read()[0]["Preference"] == {(0.1, 0.0)}


# What comes next


def test_running_trials_are_kept_away_from_and_seeds_repeat(make, few_points):
    """Global random states are neither used nor changed."""
    found = []
    for state, seed in enumerate((0, 0, 1)):
        host = valley(make(seed=seed, sign=2 * seed - 1), 0.0, 0.25, 0.5, 0.75, 1.0)
        torch.manual_seed(state)
        np.random.seed(state)  # noqa: NPY002
        random.seed(state)
        before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
        found.append((host.next(), host.next(), () if seed else host.ask({host.questions[0]: 1.0})))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]  # noqa: NPY002
    assert found[0] == found[1]
    assert abs(found[0][0] - 0.6) < 0.1
    assert abs(found[0][0] - found[0][1]) > 0.01
    assert host.best() == 0.5


def test_points_depend_on_the_seed(make):
    first = [make(seed=seed, startup=5).next() for seed in (0, 0, 1, None, None)]
    assert first[0] == first[1]
    assert len(set(first)) == 4


def test_failures_are_kept_away_from_or_ignored(make):
    for failures, keeps_away in (("constraint", True), ("ignore", False)):
        host = make(failures=failures)
        for number, x in enumerate([0.1, 0.3, 0.5, 0.58, 0.62, 0.7, 0.8, 0.9]):
            host.attach(x)
            host.fail(number) if x > 0.55 else host.number(number, (x - 0.7) ** 2)
        assert (host.next() < 0.58) is keeps_away
        assert host.best() == 0.5


def test_constraints_are_met(make):
    """What is best is beyond; a point that is likely to meet the constraint is asked for, and recommended."""
    host = valley(make(limit=0.5), 0.0, 0.2, 0.4, 0.8, 1.0, best=0.7)
    assert 0.4 < host.next() < 0.55
    assert host.best() == 0.4


@pytest.mark.parametrize("limit", [None, 0.5])
def test_the_best_point_need_not_have_been_tried_and_asking_changes_nothing(make, limit):
    """It is where the parabola ends, or at the constraint, which is met there as likely as not."""
    hosts = [valley(make(limit=limit), 0.0, 0.2, 0.4, 0.8, 1.0, best=0.7) for _ in range(2)]
    x, p_works = hosts[0].best_point()
    assert abs(x - (0.7 if limit is None else 0.5)) < 0.03
    assert p_works == 1.0 if limit is None else 0.5 <= p_works < 0.65
    assert hosts[0].best_point() == (x, p_works)
    assert hosts[0].next() == hosts[1].next()


def test_no_trial_meets_the_constraint(make, few_points):
    host = valley(make(limit=0.2), 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, best=0.7)
    with pytest.raises(host.error, match=r"No (trial|arm) is best"):
        host.best()
    assert host.next() < 0.5
    assert host.ask({host.questions[0]: 1.0})[1] >= 0


@pytest.mark.parametrize("sign", [-1, 1])
def test_several_objectives(make, sign, compilations):
    host = make(sign=sign, num_objectives=2)
    for number, x in enumerate((0.0, 0.1, 0.9, 1.0)):
        host.attach(x)
        host.number(number, sign * (x - 0.3) ** 2 * -1, sign * (x - 0.7) ** 2 * -1)
    assert 0.2 < host.next() < 0.8
    assert compilations == []
    with pytest.raises(ERRORS, match=r"has several|with several objectives"):
        host.best()


def test_comparisons_lead_to_what_wins_and_decide_where_there_are_no_numbers(make):
    host = make()
    host.attach(0.1, 0.3, 0.5, 0.2)
    for pair in ((1, 0), (2, 1), (2, 3), (2, 3)):
        host.prefer(*pair)
    assert host.next() > 0.45
    assert host.best() == 0.5


def test_all_first_answers_are_none(make, few_points):
    """The search leaves what was refused; then the first that is good enough is the best."""
    host = make()
    host.attach(0.05, 0.15, 0.1, 0.2)
    host.choose(None, [0, 1])
    host.choose(None, [2, 3])
    assert host.next() > 0.3
    assert host.ask({host.questions[0]: 1.0})[1] >= 0
    good = host.attach(0.7)
    host.choose(good, [0], or_none=True)
    assert host.best() == 0.7


@pytest.mark.slow
@pytest.mark.parametrize("what", ["numbers and failures", "numbers and bounds", "comparisons"])
def test_the_optimum_is_found(make, what):
    """It lies close to where trials crash, which bounds may say as well: at least as bad as the worst one seen."""
    host = make(startup=4, **({"failures": "ignore"} if what == "numbers and bounds" else {}))
    best, xs = 0, []
    for number in range(14):
        x = host.next()
        xs.append(x)
        if what == "comparisons":
            best, other = sorted((best, number), key=lambda k: abs(xs[k] - 0.62))
            host.prefer(best, other) if number else None
        elif x < 0.7:
            host.number(number, (x - 0.62) ** 2)
        else:
            host.fail(number)
            host.bound(number, lower=1.0) if what == "numbers and bounds" else None
    assert abs(host.best() - 0.62) < (0.1 if what == "comparisons" else 0.03)


# Questions


def test_the_price_decides_between_questions(make, few_points):
    host = valley(make(), 0.1, 0.5, 0.9)
    cheap, dear = host.questions
    low = host.ask({cheap: 1.0, dear: 1e6})
    assert (low[0], low[2]) == (cheap, 1.0)
    assert host.ask({cheap: 1e6, dear: 1.0})[::2] == (dear, 1.0)


def test_values_of_questions_are_in_units_of_the_objective_whichever_way_it_goes(make, few_points):
    values = []
    for unit, sign in ((1.0, -1), (1.0, 1), (100.0, -1)):
        xs = [0.1, 0.5, 0.9]
        host = of(make(sign=sign), *(-sign * unit * (x - 0.6) ** 2 for x in xs), xs=xs)
        values.append(host.ask({host.questions[1]: 1.0})[1])
    assert values[0] > 0
    assert values == pytest.approx([values[0], values[0], 100 * values[0]], rel=1e-2)


def test_the_cheapest_question_as_long_as_nothing_is_known(make):
    cheap, dear = make.questions
    for costs, wanted in (({cheap: 1.0, dear: 2.0}, cheap), ({cheap: 2.0, dear: 1.0}, dear)):
        asked, value, cost = make().ask(costs)
        assert (asked, cost) == (wanted, 1.0)
        assert math.isnan(value)
