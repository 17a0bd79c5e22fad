"""Rounds of several judges in one file."""

import json

import pytest
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning

from botorch_skewgp.judge import Rounds, read_rounds


class Letters:
    """A source that shows the letters in turn, and remembers what it is told."""

    def __init__(self, letters="abcdefghij"):
        self.letters, self.asked, self.told = letters, [], {}

    def __contains__(self, item):
        return item in self.letters

    def ask(self, num_shown, answers, pending):
        self.asked.append(([entry.better for entry in answers], list(pending)))
        first = (len(self.asked) - 1) * num_shown
        return [self.letters[(first + k) % len(self.letters)] for k in range(num_shown)]

    def show(self, item):
        return item

    def report(self, key, judgement):
        self.told[key] = judgement

    def withdraw(self, key):
        del self.told[key]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.json"


def test_a_round_is_open_until_its_judge_has_answered_it_and_goes_on_in_another_process(path):
    rounds = Rounds(Letters(), path, num_shown=3)
    number = rounds.open("ann")
    assert sorted(rounds.all[number].shown) == ["a", "b", "c"]
    for process in range(3):
        rounds = Rounds(Letters(), path, num_shown=3)
        assert rounds.open("ann") == number
        assert [entry.shown for entry in rounds.all] == [entry.shown for entry in read_rounds(path)]
        assert process == 2 or rounds.num_answered("ann") == 0
    rounds.answer("ann", number, 1)
    judgement = rounds.all[number].judgement
    assert judgement.better == (rounds.all[number].shown[1],)
    assert {*judgement.better, *judgement.worse} == {"a", "b", "c"}
    assert judgement.or_none
    assert judgement.judge == "ann"
    (stored,) = read_rounds(path)
    assert stored == rounds.all[0]
    assert rounds.open("ann") == 1


def test_what_others_are_asked_is_pending(path):
    rounds = Rounds(source := Letters(), path, num_shown=2)
    first = rounds.open("ann")
    second = rounds.open("bob")
    assert source.asked[1] == ([], [rounds.all[first].shown])
    rounds.answer("ann", first, None)
    rounds.open("ann")
    assert source.asked[2] == ([()], [rounds.all[second].shown])


def test_answers_are_taken_back_one_after_the_other(path):
    rounds = Rounds(source := Letters(), path, num_shown=2)
    for _ in range(3):
        rounds.answer("ann", rounds.open("ann"), 0)
        rounds.answer("bob", rounds.open("bob"), 1)
    waiting = rounds.open("ann")
    for left in (2, 1):
        rounds.undo("ann")
        assert rounds.num_answered("ann") == left
        assert len(source.told) == 3 + left
    assert [rounds.open("ann")] == [number for number in range(6) if rounds.all[number].judge == "ann"][1:2]
    rounds.answer("ann", rounds.open("ann"), None)
    rounds.answer("ann", rounds.open("ann"), 1)
    assert rounds.open("ann") == waiting
    assert [entry.best for entry in read_rounds(path) if entry.judge == "ann"] == [0, None, 1, None]
    assert {key: entry.better for key, entry in source.told.items()} == {
        entry.key: entry.judgement.better for entry in rounds.all if entry.is_answered
    }
    rounds.undo("bob")
    rounds.undo("bob")
    rounds.undo("bob")
    with pytest.raises(InputDataError, match="no answer to take back"):
        rounds.undo("bob")


@pytest.mark.parametrize(
    ("judge", "number", "best", "message"),
    [
        ("bob", 0, 0, "not open"),
        ("ann", 1, 0, "not open"),
        ("ann", -1, 0, "not open"),
        ("ann", True, 0, "not open"),
        ("ann", "0", 0, "not open"),
        ("ann", 0, 3, "one of 3 places"),
        ("ann", 0, -1, "one of 3 places"),
        ("ann", 0, "../x", "one of 3 places"),
        ("ann", 0, True, "one of 3 places"),
    ],
)
def test_wrong_answers_change_nothing(path, judge, number, best, message):
    rounds = Rounds(source := Letters(), path, num_shown=3)
    rounds.open("ann")
    before = path.read_bytes()
    with pytest.raises(InputDataError, match=message):
        rounds.answer(judge, number, best)
    assert (path.read_bytes(), source.told) == (before, {})


def test_a_round_is_answered_once(path):
    rounds = Rounds(Letters(), path)
    rounds.answer("ann", rounds.open("ann"), 0)
    with pytest.raises(InputDataError, match="not open"):
        rounds.answer("ann", 0, 1)
    assert rounds.all[0].best == 0


@pytest.mark.parametrize("name", ["", "  ", None, 3, "x" * 81, ["ann"]])
def test_names_of_judges(path, name):
    with pytest.raises(InputDataError, match="1 to 80 characters"):
        Rounds(Letters(), path).open(name)
    assert not path.exists()


def test_an_answer_that_could_not_be_stored_is_open_still(path, monkeypatch):
    """The file is the old one, and what the source was told has a key that the next answer replaces."""
    rounds = Rounds(source := Letters(), path, num_shown=2)
    number = rounds.open("ann")
    before = path.read_bytes()

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        rounds.answer("ann", number, 0)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before
    monkeypatch.undo()
    rounds.answer("ann", rounds.open("ann"), 1)
    assert [entry.better for entry in source.told.values()] == [(rounds.all[number].shown[1],)]


def test_two_processes_do_not_write_over_each_other(path):
    one, other = Rounds(Letters(), path), Rounds(Letters(), path)
    one.open("ann")
    before = path.read_bytes()
    with pytest.raises(InputDataError, match=r"Another process has changed .*answers\.json"):
        other.open("bob")
    assert path.read_bytes() == before


def test_rounds_about_what_is_gone_are_left_out(path):
    rounds = Rounds(Letters(), path, num_shown=2)
    rounds.answer("ann", rounds.open("ann"), 0)
    rounds.open("ann")
    with pytest.warns(InputDataWarning, match="not there any more, and are left out as far: c, d"):
        rounds = Rounds(Letters("abxy"), path, num_shown=2)
    assert rounds.open("ann") == 2


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"rounds": [{"judge": "ann"}]}', '{"rounds": 3}'])
def test_files_that_are_none_of_rounds(path, text):
    path.write_text(text)
    with pytest.raises(InputDataError, match="is not a file of answers"):
        Rounds(Letters(), path)
    assert path.read_text() == text


def test_points_come_back_as_they_were(path):
    class Points(Letters):
        def ask(self, num_shown, answers, pending):
            return [(0.1 + 0.2, 1e-300), (1 / 3, -2.5)]

        def __contains__(self, item):
            return isinstance(item, tuple)

    rounds = Rounds(Points(), path)
    rounds.open("ann")
    assert {*Rounds(Points(), path).all[0].shown} == {(0.1 + 0.2, 1e-300), (1 / 3, -2.5)}
    assert json.loads(path.read_text())
