"""Votes from data frames and back."""

import pandas as pd
import pytest
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning

from botorch_skewgp.items import item_model, leaderboard, read_votes
from botorch_skewgp.observations import Preference, Tie, Vote

ARENA = pd.DataFrame(
    {
        "model_a": ["x", "y", "z", "x", "y"],
        "model_b": ["y", "z", "x", "z", "x"],
        "winner": ["model_a", "model_b", "tie", "tie (bothbad)", "model_b"],
        "judge": ["ann", "bot", "bot", "ann", "bot"],
    }
)


def test_winners_and_losers():
    votes = read_votes({"winner": ["b", "a"], "loser": ["a", "c"]})
    assert (votes.items, votes.people) == (("a", "b", "c"), None)
    (entry,) = votes.observations
    assert (type(entry), entry.pairs.tolist(), entry.judge) == (Preference, [[1, 0], [0, 2]], None)


def test_outcomes_and_judges():
    votes = read_votes(ARENA, "model_a", "model_b", outcome="winner", judge="judge", both_alike="tie")
    wins, ties = votes.observations
    assert (wins.pairs.tolist(), wins.judge.tolist()) == ([[0, 1], [2, 1], [0, 1]], [0, 1, 1])
    assert (type(ties), ties.pairs.tolist(), ties.judge.tolist()) == (Tie, [[2, 0], [0, 2]], [1, 0])
    assert votes.people == ("ann", "bot")
    (_, ties) = read_votes(ARENA, "model_a", "model_b", outcome="winner", both_alike="drop").observations
    assert ties.pairs.tolist() == [[2, 0]]


def test_both_bad_tells_the_level():
    votes = read_votes(ARENA, "model_a", "model_b", outcome="winner", judge="judge")
    (entry,) = votes.observations
    assert (type(entry), entry.buttons) == (Vote, ("first", "second", "tie", "both bad"))
    assert entry.pairs.tolist() == [[0, 1], [1, 2], [2, 0], [0, 2], [1, 0]]
    assert (entry.answers.tolist(), entry.judge.tolist()) == ([0, 1, 2, 3, 1], [0, 1, 1, 0, 1])


def test_items_that_are_both_bad_are_bad():
    """Of items that never won, those that were bad with others are below one that was never shown."""
    frame = {"a": ["x"] * 6, "b": ["y"] * 6, "how": ["both bad"] * 6}
    votes = read_votes(frame, "a", "b", "how", items=["x", "y", "unseen"])
    model = item_model(3, votes.observations)
    model.covar_module.outputscale = 5.0
    table = leaderboard(model, votes.items)
    assert table["mean"]["unseen"] > table["mean"]["x"] + 0.2
    tied = read_votes(frame, "a", "b", "how", both_alike="tie")
    with pytest.warns(InputDataWarning, match="All votes are ties"):
        item_model(2, tied.observations)


def test_items_that_no_vote_is_about_keep_their_place():
    votes = read_votes({"winner": [3], "loser": [1]}, items=[5, 3, 1])
    assert (votes.items, votes.observations[0].pairs.tolist()) == ((5, 3, 1), [[1, 2]])


def test_a_frame_of_votes_is_read_back_without_naming_its_columns():
    names = {"winner": ["a", "b", "a"], "loser": ["b", "c", "c"], "judge": ["x", "y", "x"]}
    votes = read_votes({**names, "outcome": ["winner", "tie", "both bad"]}, both_alike="tie")
    won, tied = votes.observations
    assert (won.pairs.tolist(), tied.pairs.tolist()) == ([[0, 1]], [[1, 2], [0, 2]])
    assert (won.judge.tolist(), tied.judge.tolist(), votes.people) == ([0], [1, 0], ("x", "y"))


def test_names_of_several_classes():
    assert read_votes({"winner": [3, "a"], "loser": ["b", 3]}).items == (3, "a", "b")
    assert read_votes({"winner": [True, False], "loser": [False, True]}).items == (False, True)
    assert read_votes({"winner": [1.0, 2], "loser": [2.0, 3]}).items == (1.0, 2, 3)  # of a column with empty cells


def test_read_votes_names_who_was_at_home():
    frame = {
        "a": ["x", "y", "z"],
        "b": ["y", "z", "x"],
        "said": ["a", "tie", "b"],
        "home": ["y", "y", None],
        "kind": ["cup", "league", "cup"],
        "week": [3, 1, 2],
    }
    votes = read_votes(frame, "a", "b", "said", advantages=["home"], category="kind", time="week")
    told = votes.circumstances  # wins come before ties, winners first
    assert [entry.num_answers for entry in votes.observations] == [2, 1]
    assert votes.observations[0].pairs.tolist() == [[0, 1], [0, 2]]
    assert told["advantages"].squeeze(-1).tolist() == [[0, 1], [0, 0], [1, 0]]
    assert (votes.category_names, told["categories"].tolist()) == (("cup", "league"), [0, 0, 1])
    assert told["times"].tolist() == [3.0, 2.0, 1.0]
    model = item_model(3, votes.observations, **told)
    assert model.items_at().tolist() == [[i, 0.0, -1.0, 3.0] for i in range(3)]
    assert model.items_at(at=1.0, category=1).tolist() == [[i, 0.0, 1.0, 1.0] for i in range(3)]
    with pytest.raises(InputDataError, match="'week' must hold finite numbers; got 'May' in row 1"):
        read_votes({**frame, "week": [3, "May", 2]}, "a", "b", "said", time="week")
