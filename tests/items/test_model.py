"""Models of items: closed forms, a probit fit by hand, features, judges, and what was the case at votes."""

import math
import pickle

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.fit import fit_gpytorch_mll

from botorch_skewgp.items import (
    add_items,
    add_votes,
    feature_share,
    item_model,
    leaderboard,
    next_votes,
    verdict,
    win_probabilities,
)
from botorch_skewgp.items.effects import item_points
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference, Tie

double = torch.double
N, HOME = 6, 1.0


def fit(model):
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def votes_of(utility, num, generator, home=0.0):
    """Pairs, winner first, and whether the winner and the loser were at home, as the first item shown is."""
    first = torch.randint(len(utility), (num,), generator=generator)
    second = (first + torch.randint(1, len(utility), (num,), generator=generator)) % len(utility)
    said = utility[first] - utility[second] + home + 2**0.5 * torch.randn(num, generator=generator, dtype=double)
    won, pairs = (said > 0).unsqueeze(-1), torch.stack([first, second], dim=-1)
    return torch.where(won, pairs, pairs.flip(-1)), torch.cat([won, ~won], dim=-1).double()


def test_one_vote_in_closed_form():
    """Items of variance s: `E[f_0 - f_1 | 0 wins] = 2 s / sqrt(2 s + 2) phi(0) / Phi(0)`, and nothing of a third."""
    model = item_model(3, Preference([[0, 1]]), approximation="ep")  # exact with a single row
    model.covar_module.outputscale = s = 3.0
    posterior = model.posterior(model.datapoints)
    rise = 2 * s / math.sqrt(2 * s + 2) * 2 / math.sqrt(2 * math.pi)
    expected = torch.tensor([rise / 2, -rise / 2, 0.0]).double()
    assert torch.allclose(posterior.mean.squeeze(-1) - model.mean_module(model.datapoints), expected, atol=1e-8)
    assert posterior.variance[2].item() == pytest.approx(s, rel=1e-6)  # never asked about


def test_votes_of_a_judge_who_had_not_voted_may_be_added():
    """Where judges have widths of their own: as any other data, and by `add_items` afterwards too."""
    votes = [Preference([[0, 1], [1, 2], [2, 0]], judge=[0, 1, 2]), Tie([[0, 2], [1, 0]], judge=[1, 2])]
    likelihood = PreferenceLikelihood(tie_width=torch.ones(3), learn_tie_width=True)
    model, new = item_model(3, votes, likelihood=likelihood, approximation="ep"), Preference([[0, 1]], judge=[3])
    X = model.items_at()
    added, other = add_votes(model, new), model.condition_on_observations(X, new)
    torch.testing.assert_close(added.posterior(X, judge=3).mean, other.posterior(X, judge=3).mean)
    assert add_items(added, 1).judges == {0, 1, 2, 3}
    assert model.judges == {0, 1, 2}
    assert len(model.likelihood.tie_width) == 3


def test_features_that_help_and_that_do_not(generator):
    X = torch.rand(25, 2, generator=generator, dtype=double)
    other = 1.5 * torch.randn(25, generator=generator, dtype=double)
    helped, not_helped = (
        fit(item_model(25, Preference(votes_of(utility, 300, generator)[0]), X, approximation="ep"))
        for utility in (4 * X[:, 0], other)
    )
    assert feature_share(helped) > 0.8 > 0.3 > feature_share(not_helped)
    new = item_points([25, 26], features=[[0.95, 0.5], [0.05, 0.5]])  # never seen, but for their features
    assert helped.predictive(new).probs.item() > 0.9


def test_features_may_have_any_scale(generator):
    X = torch.rand(10, 2, generator=generator, dtype=double)
    pairs, _ = votes_of(X[:, 0], 50, generator)
    scaled = torch.stack([1000 * X[:, 0] - 300, torch.full((10,), 7.0).double()], dim=-1)  # the second one is constant
    base = torch.stack([X[:, 0], torch.full((10,), 0.5).double()], dim=-1)
    means = [item_model(10, Preference(pairs), F, approximation="ep") for F in (scaled, base)]
    first, second = (model.posterior(model.datapoints).mean for model in means)
    assert torch.allclose(first, second, atol=1e-8)


def test_more_votes_and_items_are_the_larger_model(generator):
    pairs, home = votes_of(torch.randn(5, generator=generator, dtype=double), 30, generator)
    X = torch.rand(7, 2, generator=generator, dtype=double)
    X[5:] = 0.5  # within the range of the others
    late = Preference([[5, 0], [6, 5]])
    model = item_model(5, Preference(pairs), X[:5], advantages=home, approximation="ep")
    more = add_votes(add_items(model, 2, X[5:]), late, advantages=home[:2])
    both = [Preference(pairs), late]
    whole = item_model(7, both, X, advantages=torch.cat([home, home[:2]]), approximation="ep")
    one, other = (part.posterior(part.items_at()).mean for part in (more, whole))
    assert torch.allclose(one, other, atol=1e-6)
    assert leaderboard(more)["votes"].sum() == 64
    assert (len(model.items_at()), len(model.observations)) == (5, 1)  # as it was


def test_a_judge_who_answers_at_random_is_found_out(generator):
    utility = 1.5 * torch.randn(8, generator=generator, dtype=double)
    pairs = torch.cat([votes_of(scale * utility, 120, generator)[0] for scale in (1, 1, 0)])
    model = fit(item_model(8, Preference(pairs, judge=torch.arange(3).repeat_interleave(120)), approximation="ep"))
    weights = model.judge_reliability.values
    assert weights[2] < 0.4 * weights[:2].min()
    pooled = fit(item_model(8, Preference(pairs), approximation="ep"))

    def error(m):
        mean = m.posterior(m.datapoints).mean.squeeze(-1)
        return (mean - mean.mean() - utility + utility.mean()).square().mean()

    assert error(model) < 0.5 * error(pooled)


def test_judges_with_features(generator):
    X = torch.rand(8, 2, generator=generator, dtype=double)
    pairs = torch.cat([votes_of(4 * X[:, i], 70, generator)[0] for i in (0, 1)])
    model = fit(item_model(8, Preference(pairs, judge=torch.arange(140) // 70), X, approximation="ep"))
    top = torch.tensor([[8.0, 1.0, 0.0], [9.0, 0.0, 1.0]]).double()
    first, second = (model.predictive(top, judge=judge).probs.item() for judge in (0, 1))
    assert first > 0.7 > 0.3 > second


def test_ties_alone_are_warned_of():
    with pytest.warns(InputDataWarning, match="All votes are ties"):
        model = item_model(3, Tie([[0, 1], [1, 2]]))
    with pytest.raises(InputDataError, match=r"items \[3\]"):
        add_votes(model, Preference([[0, 3]]))
    assert len(model.observations) == 1


def test_an_advantage_is_that_of_a_probit_fit_by_hand(generator):
    wins, home = votes_of(torch.linspace(-1.5, 1.5, N).double(), 300, generator, HOME)
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


@pytest.mark.parametrize(("name", "first", "second"), [("at", 0, 9), ("category", 0, 1)])
def test_answers_are_of_a_time_or_of_a_category(name, first, second):
    """At first 0 and 1 are level and ahead of 2 and 3, and then behind."""
    before = [[0, 1], [1, 0]] * 10 + [[0, 2], [1, 3], [0, 3], [1, 2]] * 10
    after = [[2, 3], [3, 2]] * 10 + [[2, 0], [3, 1], [3, 0], [2, 1]] * 10
    when = {"times" if name == "at" else "categories": torch.tensor([first] * 60 + [second] * 60)}
    model = fit(item_model(4, Preference(before + after), approximation="ep", **when))
    for place, pair in ((first, [0, 1]), (second, [2, 3])):
        of = {name: place}
        assert sorted(leaderboard(model, **of).index[:2]) == pair
        assert sorted(verdict(model, "top", 2, **of).items.tolist()) == pair
        assert next_votes(model, **of).sort().values.tolist() == [pair]
        wins = win_probabilities(model, probability=0.9, **of)
        assert wins["low"].loc[pair[0], (pair[1] + 1) % 4] > 0.6
    if name == "at":
        assert leaderboard(model).equals(leaderboard(model, at=9))
        wide, narrow = (leaderboard(model, at=at).loc[1] for at in (30, 9))  # the future is open
        assert wide["upper"] - wide["lower"] > 1.2 * (narrow["upper"] - narrow["lower"])


def test_a_model_of_circumstances_is_pickled(generator):
    wins, home = votes_of(torch.zeros(N), 10, generator)
    times = torch.arange(10.0)
    model = item_model(N, Preference(wins), advantages=home, categories=[0, 1] * 5, times=times, approximation="ep")
    again = pickle.loads(pickle.dumps(model))
    assert torch.equal(again.items_at(at=3.0, category=1), model.items_at(at=3.0, category=1))
    assert torch.equal(again.posterior(again.items_at()).mean, model.posterior(model.items_at()).mean)
