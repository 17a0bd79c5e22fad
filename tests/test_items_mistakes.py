"""Wrong calls of `items` are refused in words, and leagues without a vote have a leaderboard."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.items import add_items, item_model, leaderboard, read_votes
from botorch_skewgp.observations import Preference
from botorch_skewgp.plots import plot_leaderboard

pytest.importorskip("pandas")
WON = {"winner": ["a", "c"], "loser": ["b", "a"]}
FEATURES = torch.tensor([[0.0], [0.5], [1.0]])


def league(**kwargs):
    return item_model(3, Preference([[0, 1], [1, 2]], judge=[0, 1]), **kwargs)


@pytest.mark.parametrize("votes", [[], Preference([])])
def test_a_league_that_nobody_has_voted_in(votes):
    table = leaderboard(item_model(3, votes))
    assert table["votes"].tolist() == [0, 0, 0]
    assert table["p_best"].to_numpy() == pytest.approx(1 / 3, abs=0.05)


MISTAKES = {
    "no table": (lambda: read_votes([["a", "b"]]), "frame must be a data frame or a dictionary of columns; got list"),
    "lists as names": (lambda: read_votes({"winner": [["a"]], "loser": ["b"]}), "'winner' must hold names"),
    "judges too few": (lambda: read_votes({**WON, "who": ["x"]}, judge="who"), "'who' has 1 entries for 2 votes"),
    "outcomes too few": (lambda: read_votes({**WON, "end": ["tie"]}, outcome="end"), "'end' has 1 entries for 2 votes"),
    "votes as read": (lambda: item_model(3, read_votes(WON)), "Give votes.observations"),
    "no votes": (lambda: item_model(3, None), "votes must be an observation such as Preference, or a list of them"),
    "fewer items": (lambda: add_items(league(), -1), "num_items must be an integer of at least 1; got -1"),
    "groups in place of features": (
        lambda: add_items(league(features=FEATURES), 1, groups=[1]),
        "items have no groups",
    ),
    "half a place": (lambda: leaderboard(league(), k=1.5), "k must be an integer from 1 to 2; got 1.5"),
    "names of judges twice": (
        lambda: leaderboard(league(), judge="each", judges=["x", "x"]),
        "judges must name each judge once",
    ),
    "lists as names of items": (lambda: leaderboard(league(), [["a"], ["b"], ["c"]]), "items must hold names"),
    "a model as a table": (lambda: plot_leaderboard(league()), r"that of leaderboard\(model\); got ItemModel"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, message = MISTAKES[name]
    with pytest.raises(InputDataError, match=message):
        call()
