"""Votes at home, in categories and in time: beside a probit fit by hand, and what leaderboards say then."""

import pickle

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll

from botorch_skewgp.items import (
    add_items,
    add_votes,
    item_model,
    leaderboard,
    next_votes,
    read_votes,
    verdict,
    win_probabilities,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference

double = torch.double
N, HOME = 6, 1.0


def shown(m, seed=0, n=N):
    """Pairs, and a generator."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(n, (m,), generator=generator)
    return torch.stack([first, (first + torch.randint(1, n, (m,), generator=generator)) % n], dim=-1), generator


def decided(pairs, gap, generator):
    """Pairs with the winner first, and whether the first of two items has won."""
    noise = 2**0.5 * torch.randn(len(pairs), dtype=double, generator=generator)
    won = gap + noise > 0
    return torch.where(won.unsqueeze(-1), pairs, pairs.flip(-1)), won


def at_home(m=400):
    """Votes in which the first item shown is at home, and what the winner and the loser had of it."""
    pairs, generator = shown(m)
    strength = torch.linspace(-1.5, 1.5, N).double()
    wins, won = decided(pairs, strength[pairs[:, 0]] - strength[pairs[:, 1]] + HOME, generator)
    home = torch.stack([won, ~won], dim=-1).double()
    return wins, home


def fit(model):
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def test_an_advantage_is_that_of_a_probit_fit_by_hand():
    wins, home = at_home()
    model = fit(item_model(N, Preference(wins), advantages=home, approximation="ep"))
    item, effect = model.covar_module.kernels
    spread = torch.cat([item.outputscale.expand(N), effect.variance.reshape(1)]).detach().double()
    design = torch.zeros(len(wins), N + 1, dtype=double)
    design[torch.arange(len(wins)), wins[:, 0]] = 1.0
    design[torch.arange(len(wins)), wins[:, 1]] = -1.0
    design[:, N] = home[:, 0] - home[:, 1]
    weight = torch.zeros(N + 1, dtype=double)
    for _ in range(30):  # Newton's method for the most probable weights
        weight.requires_grad_(True)

        def loss(w):
            return -torch.special.log_ndtr(design @ w / 2**0.5).sum() + 0.5 * (w.square() / spread).sum()

        (slope,) = torch.autograd.grad(loss(weight), weight)
        curvature = torch.autograd.functional.hessian(loss, weight.detach())
        weight = (weight - torch.linalg.solve(curvature, slope)).detach()
    deviation = torch.linalg.inv(curvature).diagonal().sqrt()
    both = model.items_at()[:1].repeat(2, 1)
    both[0, -1] = 1.0  # at home
    gain = model.posterior(both).mean[0] - model.posterior(both).mean[1]
    assert float(gain) == pytest.approx(float(weight[N]), abs=0.15 * float(deviation[N]))
    assert float(gain) == pytest.approx(HOME, abs=3 * float(deviation[N]))
    relative = model.posterior(model.items_at()).mean.flatten().detach()
    expected = weight[:N] - weight[:N].mean()
    assert torch.allclose(relative - relative.mean(), expected, atol=0.15 * float(deviation[:N].max()))
    plain = fit(item_model(N, Preference(wins), approximation="ep"))
    evidences = [one.log_marginal_likelihood("ep").value for one in (model, plain)]
    assert evidences[0] > evidences[1] + 10
    table = leaderboard(model)
    assert table.index.tolist() == [5, 4, 3, 2, 1, 0]
    assert int(table["votes"].sum()) == 2 * len(wins)


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
    assert votes.categories == ("cup", "league")
    assert told["categories"].tolist() == [0, 0, 1]
    assert told["times"].tolist() == [3.0, 2.0, 1.0]
    model = item_model(3, votes.observations, **told)
    assert model.items_at().tolist() == [[i, 0.0, -1.0, 3.0] for i in range(3)]
    with pytest.raises(InputDataError, match="'week' must hold numbers; got 'May' in row 1"):
        read_votes({**frame, "week": [3, "May", 2]}, "a", "b", "said", time="week")


def test_strengths_drift_and_leaderboards_are_of_a_time():
    """The weakest item of the first half is the best of the second."""
    pairs, generator = shown(500, seed=1, n=4)
    time = torch.arange(500) // 50
    strength = torch.tensor([[2.0, 0.0, 0.5, -2.0], [-2.0, 0.0, 0.5, 2.0]]).double()[(time >= 5).long()]
    gap = strength.gather(-1, pairs[:, :1]) - strength.gather(-1, pairs[:, 1:])
    wins, _ = decided(pairs, gap.squeeze(-1), generator)
    model = fit(item_model(4, Preference(wins), times=time, approximation="ep"))
    assert leaderboard(model).index[0] == 3
    assert leaderboard(model, at=9).index[0] == 3
    assert leaderboard(model, at=0).index[0] == 0
    assert leaderboard(model, at=2)["p_best"][0] > 0.9
    wide, narrow = (leaderboard(model, at=at).loc[1] for at in (30, 9))  # the future is open
    assert wide["utility_high"] - wide["utility_low"] > 1.2 * (narrow["utility_high"] - narrow["utility_low"])


def test_categories_have_an_order_of_their_own():
    pairs, generator = shown(400, seed=2, n=4)
    kind = torch.arange(400) % 2
    strength = torch.tensor([[2.0, 1.0, -1.0, -2.0], [-1.0, 2.0, 1.0, -2.0]]).double()[kind]
    gap = strength.gather(-1, pairs[:, :1]) - strength.gather(-1, pairs[:, 1:])
    wins, _ = decided(pairs, gap.squeeze(-1), generator)
    model = fit(item_model(4, Preference(wins), categories=kind, approximation="ep"))
    assert leaderboard(model, category=0).index.tolist() == [0, 1, 2, 3]
    assert leaderboard(model, category=1).index.tolist() == [1, 2, 0, 3]
    assert leaderboard(model).index[0] == 1


def test_more_votes_and_items_are_those_of_a_model_of_all():
    wins, home = at_home(60)
    some = item_model(N, Preference(wins[:40]), advantages=home[:40], approximation="ep")
    more = add_votes(some, Preference(wins[40:]), advantages=home[40:])
    every = item_model(N, Preference(wins), advantages=home, approximation="ep")
    one, other = (model.posterior(model.items_at()) for model in (more, every))
    assert torch.allclose(one.mean, other.mean, atol=1e-6)
    larger = add_items(more, 1)
    larger = add_votes(larger, Preference([[N, 0]] * 5), advantages=[[0.0, 1.0]] * 5)
    table = leaderboard(larger)
    assert len(table) == N + 1
    assert table.loc[N, "votes"] == 5
    assert next_votes(larger, 2).max() <= N


def test_verdicts_and_next_votes_are_of_a_time():
    early, late = [[0, 1]] * 20 + [[1, 2]] * 20, [[2, 1]] * 20 + [[1, 0]] * 20
    model = item_model(3, Preference(early + late), times=[0.0] * 40 + [9.0] * 40)
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    assert verdict(model).items.tolist() == verdict(model, at=9).items.tolist() == [2]
    assert verdict(model, "order", at=0).items.tolist() == [0, 1, 2]
    wins = win_probabilities(model, at=0)
    assert wins.loc[0, 2] > 0.9 > 0.1 > win_probabilities(model).loc[0, 2]
    assert float(win_probabilities(model, at=0, probability=0.9)["low"].loc[0, 2]) > 0.9


def test_verdicts_and_next_votes_are_of_a_category():
    wins = Preference([[0, 1]] * 20 + [[1, 0]] * 20)
    model = item_model(2, wins, categories=[0] * 20 + [1] * 20)
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    assert [verdict(model, category=number).items.item() for number in (0, 1)] == [0, 1]
    assert win_probabilities(model, category=1).loc[1, 0] > 0.8 > win_probabilities(model, category=0).loc[1, 0]


def test_next_votes_are_about_what_is_open_at_a_time():
    """At first 0 and 1 are level and ahead of 2 and 3, and later behind."""
    early = [[0, 1], [1, 0]] * 10 + [[0, 2], [1, 3], [0, 3], [1, 2]] * 10
    late = [[2, 3], [3, 2]] * 10 + [[2, 0], [3, 1], [3, 0], [2, 1]] * 10
    model = item_model(4, Preference(early + late), times=[0.0] * 60 + [9.0] * 60)
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    for at, pair in ((0, [0, 1]), (9, [2, 3]), (None, [2, 3])):
        assert next_votes(model, at=at).sort().values.tolist() == [pair]


def test_a_model_of_circumstances_is_pickled():
    wins, home = at_home(10)
    times = torch.arange(10.0)
    model = item_model(N, Preference(wins), advantages=home, categories=[0, 1] * 5, times=times, approximation="ep")
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again.items_at(at=3.0, category=1), model.items_at(at=3.0, category=1))
    assert torch.equal(again.posterior(again.items_at()).mean, model.posterior(model.items_at()).mean)
