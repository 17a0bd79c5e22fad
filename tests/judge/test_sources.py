"""What is judged: files, and what a function shows."""

import itertools

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.hosts.records import judged
from botorch_skewgp.judge import Designs, FolderItems, Rounds


def play(source, path, num_rounds, dislike, worst, judges=("ann",)):
    """Judges choose what they dislike least, or none beyond the worst; the rounds."""
    rounds = Rounds(source, path)
    for judge in itertools.islice(itertools.cycle(judges), num_rounds):
        number = rounds.open(judge)
        found = [dislike(item) for item in rounds.all[number].shown]
        rounds.answer(judge, number, found.index(min(found)) if min(found) < worst else None)
    return rounds.all


@pytest.mark.parametrize("judges", [("ann",), ("ann", "bob")])
def test_the_best_file_is_found_among_those_never_named_none(folder, tmp_path, judges):
    items = FolderItems(folder)
    played = play(items, tmp_path / "a.json", 8, lambda name: abs(int(name[0]) - 6), 3, judges)
    assert {item for entry in played[:2] for item in entry.shown} <= {*items.names}
    assert len({item for entry in played[:2] for item in entry.shown}) == 8
    assert all(len({*entry.shown}) == 4 for entry in played)
    model = items.model([entry.judgement for entry in played])
    assert len(model.datapoints) == 10
    assert items.names[int(model.posterior(model.datapoints).mean.argmax())] == "6.txt"
    assert bool(model.judges) is (len(judges) > 1)
    assert sum(entry.best is None for entry in played) < 8


def test_points_of_a_box_become_better(tmp_path):
    shown = []

    def show(a, b):
        shown.append((a, b))
        return f"{a} {b}"

    designs = Designs({"a": (0.0, 2.0), "b": (-1.0, 1.0)}, show)

    def dislike(item):
        return (item[0] - 1.3) ** 2 + (item[1] - 0.2) ** 2

    played = play(designs, tmp_path / "a.json", 6, dislike, 0.5)
    first = [item for entry in played[:2] for item in entry.shown]
    best = designs.best([entry.judgement for entry in played])
    assert dislike(tuple(best.values())) <= min(map(dislike, first))
    assert list(best) == ["a", "b"]
    for _ in range(2):
        assert designs.show(first[0]) == f"{first[0][0]} {first[0][1]}"
    assert shown == [first[0]]
    assert (1.0, 0.0) in designs
    for wrong in ((3.0, 0.0), (1.0,), "ab", (1, 0), [1.0, 0.0]):
        assert wrong not in designs


def test_a_model_of_designs_is_in_units_of_the_arguments():
    """The same answers about the same points in other units are the same model."""
    points = torch.rand(6, 2, generator=torch.Generator().manual_seed(0)).double()
    means = []
    for low, high in ((0.0, 1.0), (-50.0, 150.0)):
        X = (low + (high - low) * points).tolist()
        answers = [judged(tuple(X[k]), [tuple(X[k + 1])], or_none=True, judge="ann") for k in range(5)]
        model = Designs({"a": (low, high), "b": (low, high)}, str).model(answers)
        means.append(model.posterior(torch.tensor(X).double()).mean)
    assert torch.allclose(*means, atol=1e-4)


def test_folders(folder):
    (folder / ".hidden.png").write_bytes(b"")
    (folder / "answers.json").write_text("{}")
    (folder / "below").mkdir()
    items = FolderItems(folder)
    assert items.names == [f"{k}.txt" for k in range(10)]
    assert items.show("3.txt").read_text() == "<b>3</b>"
    assert "../conftest.py" not in items
    for nothing in (folder / "below", folder / "missing", folder / "1.txt"):
        with pytest.raises(InputDataError, match="must be a folder with two pictures"):
            FolderItems(nothing)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({}, "ranges must be a lower and an upper bound for each"),
        ([(0, 1)], "ranges must be"),
        ({"a": 3}, "The range of 'a' must be"),
        ({"a": "01"}, "The range of 'a' must be"),
        ({"a": (1, 1)}, "lower bound of 'a' must be below"),
        ({"a": (0, float("nan"))}, "A bound of 'a'"),
    ],
)
def test_ranges(ranges, message):
    with pytest.raises(InputDataError, match=message):
        Designs(ranges, str)


def test_no_answers(folder):
    with pytest.raises(InputDataError, match="no answers"):
        FolderItems(folder).model([])
    with pytest.raises(InputDataError, match="no answers"):
        Designs({"a": (0.0, 1.0)}, str).best([])
