"""What both hosts must read of the same trials: one table."""

import math
import re

import pytest

pytest.importorskip("ax")
pytest.importorskip("optuna")

from host_cases import HOSTS, told

pytestmark = [
    pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning"),
    pytest.mark.parametrize("make", HOSTS.values(), ids=list(HOSTS)),
]
FAILS, WORKS = 0.0, 1.0


@pytest.fixture(autouse=True)
def _quiet():
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def of(make, *values):
    """Trials with numbers at 0, .1, .2, ..."""
    host = make()
    for number, value in enumerate(values):
        host.attach(number / 10)
        host.number(number, value)
    return host


def test_numbers_are_read_in_their_units(make):
    _, numbers, bounds, valid = of(make, 3.0, 0.0, 2.0, -1.0).read()
    assert numbers == pytest.approx({0.0: 3.0, 0.1: 0.0, 0.2: 2.0, 0.3: -1.0}, abs=1e-9)
    assert (bounds, valid) == ({}, {})


def test_failures(make):
    host = of(make, 3.0, 1.0)
    host.fail(host.attach(0.8))
    host.unusable(host.attach(0.9), 7.0)
    host.attach(0.5)  # it runs
    _, _, _, valid = host.read()
    assert valid == {0.0: WORKS, 0.1: WORKS, 0.8: FAILS, 0.9: FAILS}


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300])
def test_a_number_without_a_square_is_a_failure(make, value):
    host = of(make, 3.0, 1.0)
    host.number(host.attach(0.5), value)
    found = []
    told(lambda: found.extend(host.read()))
    assert found[1] == pytest.approx({0.0: 3.0, 0.1: 1.0})
    assert found[3] == {0.0: WORKS, 0.1: WORKS, 0.5: FAILS}


@pytest.mark.parametrize("ends", ["told while running", "told after", "never told", "failed before", "failed after"])
@pytest.mark.parametrize(("lower", "upper"), [(2.0, None), (None, 2.0), (2.0, 5.0)])
def test_a_bound_is_read_alike_however_its_trial_ends(make, ends, lower, upper):
    host = of(make, 3.0, 1.0)
    trial = host.attach(0.5)
    if ends == "told after":
        host.number(trial, 4.0)
    elif ends == "failed before":
        host.fail(trial)
    host.bound(trial, lower, upper)
    if ends == "told while running":
        host.number(trial, 4.0)
    elif ends == "failed after":
        host.fail(trial)
    _, numbers, bounds, valid = host.read()
    assert set(numbers) == {0.0, 0.1}
    expected = -math.inf if lower is None else lower, math.inf if upper is None else upper
    assert bounds[0.5] == pytest.approx(expected)
    assert set(valid.values()) <= {WORKS}


def test_judgements(make):
    host = make()
    host.attach(0.0, 0.1, 0.2, 0.3)
    host.prefer(2, 0)
    host.prefer(1, 0, judge="bob")
    host.prefer(0, 1, judge="ann")
    host.tie(0, 3)
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
    host.withdraw(1, 0)
    host.withdraw(3, 0)
    host.withdraw(0, 2)
    said, *_ = host.read()
    assert said == {
        "Preference": {(0.3, 0.1), (0.2, 0.3)},
        "ChoiceOrNone": {(0.0, 0.1, True), (0.1, False), (0.2, 0.1, False, 0)},
    }


def test_judgements_beside_numbers(make):
    host = of(make, 3.0, 1.0)
    host.prefer(host.attach(0.7), 0)
    said, numbers, _, valid = host.read()
    assert said["Preference"] == {(0.7, 0.0)}
    assert numbers == pytest.approx({0.0: 3.0, 0.1: 1.0})
    assert valid == {}


TWICE = "named twice; name different ones|same arm, [0-9_]+; name different ones"
MISTAKES = [
    (lambda host: host.prefer(0, 9), "no trial 9"),
    (lambda host: host.prefer(-1, 0), "no trial -1"),
    (lambda host: host.tie(1, 9), "no trial 9"),
    (lambda host: host.prefer(1, 1), TWICE),
    (lambda host: host.choose(1, [0, 0]), TWICE),
    (lambda host: host.choose(1, [2, 0, 1]), TWICE),
    (lambda host: host.choose(None, [1, 1]), TWICE),
    (lambda host: host.choose(None, [1, 9]), "no trial 9"),
    (lambda host: host.choose(1, []), "must be a list of the trials that were not chosen"),
    (lambda host: host.choose(None, [], or_none=True), "must be a list of the trials that were not chosen"),
    (lambda host: host.choose(1, "02"), "must be a list of the trials that were not chosen"),
    (lambda host: host.choose(1, [0], or_none="yes"), "or_none must be"),
    *((lambda host, judge=judge: host.prefer(1, 0, judge), "judge must be a name") for judge in (-1, "", 1.5, True)),
    (lambda host: host.withdraw(0, 1), "were not compared"),
    (lambda host: host.bound(9, 1.0), "no trial 9"),
    (lambda host: host.bound(1, math.nan), "finite"),
    (lambda host: host.bound(1, 10**400), "finite"),
    (lambda host: host.bound(1, True), "finite"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_mistakes_are_refused_and_change_nothing(make, mistake, message):
    host = make()
    host.attach(0.0, 0.1, 0.2)
    before = host.stored()
    with pytest.raises(host.error, match=message):
        mistake(host)
    assert host.stored() == before


JUNK = ["junk", [3], {"winner": 0}, {"winner": ["0_0"], "loser": 1}, {"winner": 2, "losers": 3}, 4.5, [[1], 0]]


def test_entries_that_cannot_be_read_are_told_once_and_can_be_taken_back(make):
    host = of(make, 3.0, 1.0)
    host.prefer(1, 0)
    host.junk(*JUNK)
    messages = told(host.read)
    assert len(messages) == len(set(messages)) == len(JUNK)
    assert all(re.search("is left out: .*withdraw_unreadable", message) for message in messages)
    assert told(host.read) == []
    host.clean()
    assert told(host.read) == []
    assert not any(repr(entry) in host.stored() for entry in JUNK[1:])
    assert host.read()[0]["Preference"] == {(0.1, 0.0)}


def test_running_trials_are_kept_away_from_and_seeds_repeat(make):
    found = []
    for seed in (0, 0, 1):
        host = make(seed=seed)
        for number, x in enumerate([0.0, 0.25, 0.5, 0.75, 1.0]):
            host.attach(x)
            host.number(number, (x - 0.6) ** 2)
        found.append((host.next(), host.next()))
    assert found[0] == found[1]
    assert abs(found[0][0] - 0.6) < 0.1
    assert abs(found[0][0] - found[0][1]) > 0.01
    assert host.best() == 0.5


def test_failures_are_kept_away_from(make):
    host = make()
    for number, x in enumerate([0.1, 0.3, 0.5, 0.58, 0.62, 0.7, 0.8, 0.9]):
        host.attach(x)
        host.fail(number) if x > 0.55 else host.number(number, (x - 0.7) ** 2)
    assert host.next() < 0.62
    assert host.best() == 0.5


def test_all_first_answers_are_none(make):
    """The search leaves what was refused; then the first that is good enough is the best."""
    host = make()
    host.attach(0.05, 0.15, 0.1, 0.2)
    host.choose(None, [0, 1])
    host.choose(None, [2, 3])
    assert host.next() > 0.3
    good = host.attach(0.7)
    host.choose(good, [0], or_none=True)
    assert host.best() == 0.7
