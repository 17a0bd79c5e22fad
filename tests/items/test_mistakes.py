"""Wrong calls of `items` are refused in words, and leagues without a vote have a leaderboard."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP

from botorch_skewgp.items import (
    add_items,
    add_votes,
    feature_share,
    item_model,
    leaderboard,
    next_votes,
    read_votes,
    verdict,
    win_probabilities,
)
from botorch_skewgp.observations import Choice, Preference, number_judges
from botorch_skewgp.plots import plot_leaderboard

WON = {"winner": ["a", "c"], "loser": ["b", "a"]}
ONE = {"winner": ["x"], "loser": ["y"]}
FEATURES = torch.tensor([[0.0], [0.5], [1.0]])
DUEL, TWO = Preference([[0, 1]]), Preference([[0, 1], [1, 2]])


@cache
def league(**kwargs):
    """Three items and two judges."""
    return item_model(3, Preference([[0, 1], [1, 2]], judge=[0, 1]), **kwargs)


@cache
def plain(num_items=3):
    """Items without judges."""
    return item_model(num_items, TWO)


@cache
def botorchs():
    X = torch.rand(3, 1).double()
    return SingleTaskGP(X, X)


@pytest.mark.parametrize("votes", [[], Preference([])])
def test_a_league_that_nobody_has_voted_in(votes):
    table = leaderboard(item_model(3, votes))
    assert table["votes"].tolist() == [0, 0, 0]
    assert table["p_best"].to_numpy() == pytest.approx(1 / 3, abs=0.05)


VOTES = [
    (lambda: read_votes([["a", "b"]]), "frame must be a data frame or a dictionary of columns; got list"),
    (lambda: read_votes(np.array([["a", "b"]])), "frame must be a data frame or a dictionary of columns; got ndarray"),
    (lambda: read_votes({"winner": [["a"]], "loser": ["b"]}), "'winner' must hold names"),
    (lambda: read_votes({**WON, "who": ["x"]}, judge="who"), "'who' must have one length; got 2 and 1"),
    (lambda: read_votes({**WON, "end": ["tie"]}, outcome="end"), "'end' must have one length; got 2 and 1"),
    (lambda: read_votes({"winner": ["a"], "loser": ["a"]}), "compared with itself in rows"),
    (lambda: read_votes({"winner": ["a"], "lost": ["b"]}), "no column 'loser'"),
    (lambda: read_votes({"winner": ["a", None], "loser": ["b", "c"]}), r"empty in rows \[1\]"),
    (lambda: read_votes(pd.DataFrame({"winner": ["a", pd.NA], "loser": ["b", "c"]})), r"empty in rows \[1\]"),
    (lambda: read_votes({"winner": ["a", "b"], "loser": ["b"]}), "one length; got 2 and 1"),
    (lambda: read_votes(ONE, items=["x", "q"]), r"all items of votes; \['y'\] are missing"),
    (lambda: read_votes(ONE, items=["x", "x"]), "items must name each once"),
    (lambda: read_votes(ONE, items=["a", "b", None]), "items must hold names"),
    (lambda: read_votes(ONE, items=["a", "b", ["c"]]), "items must hold names"),
    (lambda: read_votes({**ONE, "how": ["lost"]}, outcome="how"), "Outcomes must be"),
    (lambda: read_votes(ONE, both_alike="both"), "both_alike"),
    (lambda: read_votes(pd.DataFrame([["a", "b", "c"]], columns=["winner", "winner", "loser"])), "several columns"),
    (lambda: read_votes({"winner": [3, "a"], "loser": ["3", 3]}), r"3'? and '?3'? have the same text"),
    (lambda: read_votes({"winner": [True, 1], "loser": ["a", "b"]}), "are equal; write them as texts"),
    (lambda: read_votes({"winner": [0, "a"], "loser": ["b", False]}), "are equal; write them as texts"),
    (lambda: read_votes({**WON, "judge": [True, 1]}, judge="judge"), r"judge has the names 1 and True"),
    (lambda: number_judges([1.0, True]), r"names has the names 1\.0 and True"),
]
MODELS = [
    (lambda: item_model(3, read_votes(WON)), "Give votes.observations"),
    (lambda: item_model(3, None), "votes must be an observation such as Preference, or a list of them"),
    (lambda: item_model(3, Preference([[0, 7]])), r"items \[7\]; there are 3"),
    (lambda: item_model(1, DUEL), "num_items"),
    (lambda: item_model(3, Preference([[1, 1]])), "itself"),
    (lambda: item_model(3, DUEL, features=torch.rand(4, 2)), "features must be 3 x d"),
    (lambda: item_model(3, DUEL, features=[[0.0], [float("nan")], [1.0]]), r"finite; see items \[1\]"),
    (lambda: item_model(3, [[0, 1]]), "observations such as Preference"),
    (lambda: item_model(3, TWO, advantages=torch.zeros(3, 2)), "advantages must be finite and 2 x 2 x c"),
    (lambda: item_model(3, TWO, categories=[0]), "categories must hold a number for each of 2 votes"),
    (lambda: item_model(3, TWO, times=[0.0, float("inf")]), "times must hold a finite number"),
    (lambda: item_model(3, Choice([[0, 1, 2]]), times=[1.0]), "between two items"),
    (lambda: add_votes(plain(), DUEL, times=[1.0]), "same kinds"),
    (lambda: add_items(league(), -1), "num_items must be an integer of at least 1; got -1"),
    (lambda: add_items(plain(), 1, features=[[0.5]]), "items have 0 features; got 1"),
    (lambda: feature_share(plain()), "no features"),
]
TABLES = [
    (lambda: leaderboard(league(), k=1.5), "k must be an integer from 1 to 2; got 1.5"),
    (lambda: leaderboard(plain(), k=3), "k must be an integer from 1 to 2"),
    (lambda: leaderboard(league(), judge="each", judges=["x", "x"]), "judges must name each judge once"),
    (lambda: leaderboard(league(), judge="each", judges=["ann"]), "name all 2 judges"),
    (lambda: leaderboard(league(), judge="dan", judges=["ann", "bob"]), "one of judges"),
    (lambda: leaderboard(league(), judge="each", judges=["ann", "panel"]), "without the names 'all' and 'panel'"),
    (lambda: leaderboard(plain(), judge="panel"), "two judges"),
    (lambda: leaderboard(plain(), judge="each"), "votes with judges"),
    (lambda: leaderboard(league(), [["a"], ["b"], ["c"]]), "items must hold names"),
    (lambda: leaderboard(plain(), ["a"]), "items must name each of the 3"),
    (lambda: win_probabilities(plain(), ["a", "a", "b"]), "items must name each once"),
    (lambda: win_probabilities(plain(), probability=1.0), "probability must be strictly between"),
    (lambda: leaderboard(plain(), probability=1.0), "probability"),
    (lambda: leaderboard(plain(), num_samples=0), "num_samples"),
    *[
        (lambda ask=ask, of=of: ask(plain(), **of), f"{next(iter(of))} is for models of votes with")
        for ask in (leaderboard, verdict, next_votes, win_probabilities)
        for of in ({"at": 1.0}, {"category": 0})
    ],
    (lambda: leaderboard(botorchs()), "needs a SkewGP"),
    (lambda: plot_leaderboard(league()), r"that of leaderboard\(model\); got ItemModel"),
    (lambda: plot_leaderboard(leaderboard(league(), judge="each")), "of one judge"),
    (lambda: plot_leaderboard(leaderboard(plain()).drop(columns="p_best")), "Missing columns"),
]
NEXT = [
    (lambda: next_votes(plain(), goal="worst"), "goal must be"),
    (lambda: next_votes(plain(), goal="best", k=2), "k is for goal='top'"),
    (lambda: verdict(plain(), "top"), "k is for goal='top'"),
    (lambda: verdict(plain(), "top", 3), "k must be an integer from 1 to 2"),
    (lambda: next_votes(plain(), goal="top", k=1.5), r"k must be an integer from 1 to 2; got 1\.5"),
    (lambda: next_votes(plain(), 4), "num_votes must be at most 3, the number of pairs; got 4"),
    (lambda: next_votes(plain(), 0), "num_votes must be an integer of at least 1"),
    (lambda: next_votes(plain(), 1.5), r"num_votes .* got 1\.5"),
    (lambda: next_votes(plain(), pairs=[[0, 3]]), "numbered from 0"),
    (lambda: next_votes(plain(), pairs=[[1, 1]]), "itself"),
    (lambda: next_votes(botorchs()), "needs a SkewGP"),
    (lambda: next_votes(botorchs(), judge=0), "has no judges"),
]


@pytest.mark.parametrize(("call", "message"), VOTES + MODELS + TABLES + NEXT)
def test_mistakes(call, message):
    with pytest.raises((InputDataError, UnsupportedError), match=message):
        call()
