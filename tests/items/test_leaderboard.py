"""Leaderboards against closed forms of one vote, and against loops over draws."""

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP

from botorch_skewgp.items import item_model, leaderboard, win_probabilities
from botorch_skewgp.items.draws import utility_draws
from botorch_skewgp.items.leaderboard import ranks_of, tiers
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Preference, Tie

SCALE = 3.0


@pytest.fixture(scope="module")
def two():
    model = item_model(2, Preference([[1, 0]]))
    model.covar_module.outputscale = SCALE
    return model


@pytest.fixture(scope="module")
def five():
    votes = [Preference([[0, 1], [0, 2], [3, 1], [0, 3], [2, 1]]), Tie([[2, 3]])]
    return item_model(5, votes)


def test_one_vote_in_closed_form(two):
    """With `d` the difference, of variance `2 s`, and votes of noise 2: orthants of `d`, the vote and a second one."""
    table = leaderboard(two, ["loser", "winner"], num_samples=20_000)
    assert table.index.tolist() == ["winner", "loser"]
    correlation = math.sqrt(2 * SCALE / (2 * SCALE + 2))
    best = 0.5 + math.asin(correlation) / math.pi
    again = 0.5 + math.asin(correlation**2) / math.pi
    error = math.sqrt(best * (1 - best) * (1 / 20_000 + 1 / 2048))
    assert table.p_best["winner"] == pytest.approx(best, abs=4 * error)
    assert table.win_probability["winner"] == pytest.approx(again, abs=4 * error)
    assert table.p_best.sum() == pytest.approx(1.0)
    mean = SCALE / math.sqrt(2 * SCALE + 2) * 2 / math.sqrt(2 * math.pi)
    assert table.utility["winner"] == pytest.approx(mean, abs=4 * math.sqrt(SCALE / 2 / 2048))
    assert table.utility.sum() == pytest.approx(0.0, abs=1e-12)
    assert table.votes.tolist() == [1, 1]


def test_columns_are_those_of_loops_over_draws(five):
    table = leaderboard(five, k=2, probability=0.8, num_samples=500, seed=3).sort_index()
    draws = utility_draws(five, 500, 3, "test").numpy()
    relative = draws - draws.mean(1, keepdims=True)
    ranks = np.array([[1 + sum(row > x) for x in row] for row in draws])
    for i in range(5):
        assert table.utility[i] == pytest.approx(relative[:, i].mean())
        assert np.mean(relative[:, i] < table.utility_low[i]) == pytest.approx(0.1, abs=0.003)
        assert np.mean(relative[:, i] > table.utility_high[i]) == pytest.approx(0.1, abs=0.003)
        assert np.mean(ranks[:, i] < table.rank_low[i]) <= 0.1
        assert np.mean(ranks[:, i] > table.rank_high[i]) <= 0.1
        assert table.rank_low[i] <= table["rank"][i] <= table.rank_high[i]
        assert table.p_best[i] == np.mean(ranks[:, i] == 1)
        assert table.p_top[i] == np.mean(ranks[:, i] <= 2)
    assert table.votes.tolist() == [3, 3, 3, 3, 0]


def test_win_probabilities_are_predictive_ones(five):
    table = win_probabilities(five, list("abcde"), num_samples=20_000)
    assert np.isnan(np.diag(table)).all()
    for i, j in [(0, 1), (1, 0), (2, 3), (4, 0)]:
        win = five.predictive(five.datapoints[[i, j]]).probs[0].item()
        assert table.iloc[i, j] == pytest.approx(win, abs=4 * 0.3 * math.sqrt(1 / 20_000 + 1 / 2048))
    field = leaderboard(five).sort_index().win_probability
    assert field[0] == pytest.approx(np.nanmean(table.iloc[0]), abs=0.02)


def test_ranks_and_tiers():
    draws = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]])
    assert ranks_of(draws).tolist() == [[1, 3, 2], [3, 1, 2]]
    # the second is above the third in 9 of 10 draws only, the first always above both
    apart = torch.tensor([[5.0, 2.0, 1.0]] * 9 + [[5.0, 1.0, 2.0]])
    assert tiers(apart, torch.tensor([0, 1, 2]), 0.95).tolist() == [1, 2, 2]
    assert tiers(apart, torch.tensor([0, 1, 2]), 0.8).tolist() == [1, 2, 3]


def test_judges():
    votes = Preference([[0, 1]] * 8 + [[1, 0]] * 8, judge=[0] * 8 + [1] * 8)
    model = item_model(2, votes)
    table = leaderboard(model, ["a", "b"], judge="each", judges=["ann", "bob"])
    assert table.index.names == ["judge", "item"]
    assert table.p_best["ann", "a"] > 0.6
    assert table.p_best["bob", "b"] > 0.6
    assert table.p_best["all", "a"] == pytest.approx(0.5, abs=0.1)
    alone = leaderboard(model, ["a", "b"], judge=1)
    assert alone.p_best["b"] == table.p_best["bob", "b"]
    with pytest.raises(InputDataError, match="name all 2 judges"):
        leaderboard(model, judge="each", judges=["ann"])


def test_an_ensemble_is_the_mixture_of_its_members(two):
    other = item_model(2, Preference([[1, 0]]))
    other.covar_module.outputscale = 1e-3
    ensemble = FullyBayesianSkewGP([two, other])
    best = leaderboard(ensemble, num_samples=20_000).sort_index().p_best[1]
    apart = [leaderboard(member).sort_index().p_best[1] for member in (two, other)]
    assert best == pytest.approx(sum(apart) / 2, abs=0.04)


def test_draws_are_those_of_the_seed(two):
    first, again, other = (utility_draws(two, 50, seed, "test") for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_bad_input(five, two):
    with pytest.raises(InputDataError, match="items must name each of the 5"):
        leaderboard(five, ["a"])
    with pytest.raises(InputDataError, match="items must name each"):
        win_probabilities(two, ["a", "a"])
    with pytest.raises(InputDataError, match="k must be from 1 to 4"):
        leaderboard(five, k=5)
    with pytest.raises(InputDataError, match="probability"):
        leaderboard(five, probability=1.0)
    with pytest.raises(InputDataError, match="num_samples"):
        leaderboard(five, num_samples=0)
    with pytest.raises(InputDataError, match="votes with judges"):
        leaderboard(five, judge="each")
    X = torch.rand(3, 1).double()
    with pytest.raises(UnsupportedError, match="needs a SkewGP"):
        leaderboard(SingleTaskGP(X, X))
