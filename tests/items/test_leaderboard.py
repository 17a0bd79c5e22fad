"""Leaderboards against closed forms of one vote, and against loops over draws."""

import math
import sys
from functools import partial

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from botorch_skewgp.items import item_model, leaderboard, next_votes, verdict, win_probabilities
from botorch_skewgp.items.leaderboard import ranks_of, tiers, utility_draws
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Choice, Preference, Tie

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
    assert table["mean"]["winner"] == pytest.approx(mean, abs=4 * math.sqrt(SCALE / 2 / 2048))
    assert table["mean"].sum() == pytest.approx(0.0, abs=1e-12)
    assert table.votes.tolist() == [1, 1]


def test_columns_are_those_of_loops_over_draws(five):
    table = leaderboard(five, k=2, probability=0.8, num_samples=500, seed=3).sort_index()
    draws = utility_draws(five, 500, 3, "test").numpy()
    relative = draws - draws.mean(1, keepdims=True)
    ranks = np.array([[1 + sum(row > x) for x in row] for row in draws])
    for i in range(5):
        assert table["mean"][i] == pytest.approx(relative[:, i].mean())
        assert np.mean(relative[:, i] < table.lower[i]) == pytest.approx(0.1, abs=0.003)
        assert np.mean(relative[:, i] > table.upper[i]) == pytest.approx(0.1, abs=0.003)
        assert np.mean(ranks[:, i] < table.rank_low[i]) <= 0.1
        assert np.mean(ranks[:, i] > table.rank_high[i]) <= 0.1
        assert table.rank_low[i] <= table["rank"][i] <= table.rank_high[i]
        assert table.p_best[i] == np.mean(ranks[:, i] == 1)
        assert table.p_top[i] == np.mean(ranks[:, i] <= 2)
    assert table.votes.tolist() == [3, 3, 3, 3, 0]


def test_intervals_of_win_probabilities_are_those_of_differences(five):
    """The probability of a win rises with the difference, so that its quantiles are those of the difference."""
    table = win_probabilities(five, list("abcde"), num_samples=4_000, probability=0.8, seed=3)
    draws = utility_draws(five, 4_000, 3, "test")
    for i, j in ((0, 1), (3, 2), (4, 0)):
        difference = draws[:, i] - draws[:, j]
        for name, level in (("low", 0.1), ("high", 0.9)):
            beyond = difference.quantile(level) - five.likelihood.tie_width.item() * five.likelihood.ties_allowed
            end = torch.special.ndtr(beyond / math.sqrt(2 * float(five.likelihood.noise.detach())))
            assert table[name].iloc[i, j] == pytest.approx(float(end), abs=5e-3)
    assert (table["low"].fillna(0) <= table["mean"].fillna(0)).all(axis=None)
    assert (table["mean"].fillna(0) <= table["high"].fillna(0)).all(axis=None)
    np.testing.assert_allclose(table["mean"], win_probabilities(five, num_samples=4_000, seed=3))


def test_intervals_for_a_new_judge_weigh_reliabilities():
    model = item_model(2, Preference([[0, 1]] * 3 + [[1, 0]], judge=[0, 0, 1, 1]), approximation="ep")
    table = win_probabilities(model, judge="new", probability=0.8, num_samples=500)
    draws, (values, weights) = utility_draws(model, 500, 0, "test", "new"), model.judge_reliability.around_judge("new")
    gap = values.unsqueeze(-1) * (draws[:, 0] - draws[:, 1])
    wins, order = torch.special.ndtr(gap / math.sqrt(2)).flatten().detach().sort()
    share = weights.repeat_interleave(500)[order].cumsum(0) / (500 * weights.sum())
    for name, level in (("low", 0.1), ("high", 0.9)):
        assert table[name].loc[0, 1] == pytest.approx(wins[share.gt(level).nonzero()[0]].item(), abs=1e-3)


def test_win_probabilities_are_predictive_ones(five):
    table = win_probabilities(five, [("a", i) for i in range(5)], num_samples=20_000)  # names may be pairs
    assert np.isnan(np.diag(table)).all()
    for i, j in [(0, 1), (1, 0), (2, 3), (4, 0)]:
        win = five.predictive(five.datapoints[[i, j]]).probs[0].item()
        assert table.iloc[i, j] == pytest.approx(win, abs=4 * 0.3 * math.sqrt(1 / 20_000 + 1 / 2048))
    field = leaderboard(five).sort_index().win_probability
    assert field[0] == pytest.approx(np.nanmean(table.iloc[0]), abs=0.02)


@pytest.mark.parametrize("judge", [None, 0, 1, "new"])
def test_votes_to_be_won_are_slips_at_times(judge):
    """As often as those of the judge who votes; of others as often as those of all on average."""
    votes = Preference([[0, 1], [0, 2], [1, 2], [2, 0], [0, 1], [1, 2]], judge=[0, 1] * 3)
    rates = torch.tensor([0.1, 0.8]).double()
    model = item_model(3, votes, likelihood=PreferenceLikelihood(slip=rates), approximation="ep")
    model.covar_module.outputscale = 9.0
    table = win_probabilities(model, judge=judge, num_samples=20_000)
    for i, j in [(0, 1), (2, 0)]:
        win = model.predictive(model.datapoints[[i, j]], judge).probs.item()
        assert table.iloc[i, j] == pytest.approx(win, abs=4 * 0.4 / math.sqrt(20_000))


@pytest.mark.parametrize("judge", [None, 0, "new"])
def test_votes_to_be_won_are_averages_over_what_is_open_of_a_width(judge):
    """Of a new judge, and of one whose answers leave it open: as predictions are."""
    votes = [Preference([[0, 1], [2, 1], [0, 2], [1, 2]], judge=[0, 1, 2, 0]), Tie([[1, 2], [0, 1]], judge=[1, 2])]
    likelihood = PreferenceLikelihood(tie_width=torch.tensor([0.2, 1.0, 2.0]), learn_tie_width=True)
    model = item_model(3, votes, likelihood=likelihood, approximation="ep")
    prior = model.likelihood.tie_width_deviation_prior  # as a fit learns it
    prior.scale.fill_(1.0)
    prior.judge_variance = torch.full_like(prior.judge_variance, 0.4)
    table = win_probabilities(model, judge=judge, num_samples=20_000)
    for i, j in [(0, 1), (2, 0)]:
        win, loss, _ = model.predictive(model.datapoints[[i, j]], judge).probs.tolist()
        assert table.iloc[i, j] == pytest.approx(win, abs=4 * 0.4 / math.sqrt(20_000))
        assert table.iloc[j, i] == pytest.approx(loss, abs=4 * 0.4 / math.sqrt(20_000))


def test_votes_of_an_ensemble_have_the_tie_width_of_each_member():
    votes = [Preference([[0, 1], [0, 2], [1, 2]]), Tie([[1, 2]])]
    members = [item_model(3, votes, approximation="ep") for _ in range(2)]
    for member, width in zip(members, (0.05, 3.0), strict=True):
        member.likelihood.tie_width = width
    table = win_probabilities(FullyBayesianSkewGP(members), num_samples=20_001)
    win = sum(member.predictive(member.datapoints[:2]).probs[0].item() for member in members) / 2
    assert table.iloc[0, 1] == pytest.approx(win, abs=4 * 0.35 / math.sqrt(20_000))


def test_votes_among_several_items_are_counted():
    table = leaderboard(item_model(3, Choice([[0, 1, 2], [1, 2]]), approximation="ep"), num_samples=10)
    assert table.sort_index().votes.tolist() == [1, 2, 2]


def test_ranks_and_tiers():
    draws = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]])
    assert ranks_of(draws).tolist() == [[1, 3, 2], [3, 1, 2]]
    # the second is above the third in 9 of 10 draws only, the first always above both
    apart = torch.tensor([[5.0, 2.0, 1.0]] * 9 + [[5.0, 1.0, 2.0]])
    assert tiers(apart, torch.tensor([0, 1, 2]), 0.95).tolist() == [1, 2, 2]
    assert tiers(apart, torch.tensor([0, 1, 2]), 0.8).tolist() == [1, 2, 3]


def test_the_panel_is_the_mean_of_its_judges():
    """Moments of the joint Gaussian of both judges' utilities, over their mean reliability."""
    votes = Preference([[0, 1]] * 3 + [[1, 0], [1, 2], [0, 2]], judge=[0, 0, 0, 1, 1, 1])
    model = item_model(3, votes, approximation="ep")
    with torch.no_grad():
        model.judge_reliability.logarithm.copy_(torch.tensor([0.5, -0.5]))
    draws = utility_draws(model, 40_000, 0, "test", "panel")
    joint = model.for_judge([0, 1]).posterior(model.datapoints)
    mean = joint.mean.detach().mean(-1) / model.judge_reliability.values.mean().item()
    covariance = torch.cov(joint.rsample(torch.Size([40_000])).detach().mean(-1).mT)
    covariance = covariance / model.judge_reliability.values.mean().item() ** 2
    assert draws.mean(0).tolist() == pytest.approx(mean.tolist(), abs=0.03)
    assert torch.allclose(torch.cov(draws.mT), covariance, atol=0.06)
    shared = utility_draws(model, 40_000, 0, "test")
    apart = draws[:, 0] - draws[:, 1]
    assert apart.var() < 0.9 * (shared[:, 0] - shared[:, 1]).var()  # of the panel there is less unknown


def test_tables_of_each_judge_and_of_the_panel():
    model = item_model(2, Preference([[0, 1]] * 12 + [[1, 0]] * 6, judge=[0] * 6 + [1] * 6 + [2] * 6))
    table = partial(leaderboard, model, ["a", "b"], judges=["ann", "bob", "eve"])
    each = table(judge="each")
    assert each.index.names == ["judge", "item"]
    assert each.index.unique("judge").tolist() == ["all", "panel", "ann", "bob", "eve"]
    for judge, number in (("panel", "panel"), ("ann", 0), ("eve", 2), ("all", None)):
        assert leaderboard(model, ["a", "b"], judge=number).equals(each.loc[judge])
    assert table(judge="eve").equals(each.loc["eve"])
    for judge, best in (("panel", "a"), ("ann", "a"), ("eve", "b")):
        assert each.p_best[judge, best] > 0.6
    assert verdict(model, judge="panel").items.tolist() == [0]
    assert [verdict(model, judge=number).items.item() for number in (0, 2)] == [0, 1]
    assert sorted(next_votes(model, judge="panel")[0].tolist()) == [0, 1]


def test_a_panel_too_large(monkeypatch):
    monkeypatch.setattr(sys.modules["botorch_skewgp.items.leaderboard"], "MAX_UTILITIES", 3)
    with pytest.raises(UnsupportedError, match="too many"):
        leaderboard(item_model(2, Preference([[0, 1], [1, 0]], judge=[0, 1])), judge="panel")


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
