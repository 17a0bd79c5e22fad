"""Models of items: closed forms of one vote, features that help and that do not, judges, and bad input."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.fit import fit_gpytorch_mll

from botorch_skewgp.items import add_items, add_votes, feature_share, item_model
from botorch_skewgp.items.effects import item_points
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference, Tie


def fit(model):
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model


def votes_of(utility, num, generator):
    n = len(utility)
    first = torch.randint(n, (num,), generator=generator)
    second = (first + torch.randint(1, n, (num,), generator=generator)) % n
    said = utility[first] - utility[second] + math.sqrt(2) * torch.randn(num, generator=generator, dtype=torch.float64)
    pairs = torch.stack([first, second], dim=-1)
    return torch.where((said > 0).unsqueeze(-1), pairs, pairs.flip(-1))


def test_one_vote_in_closed_form():
    """Items of variance s: `E[f_0 - f_1 | 0 wins] = 2 s / sqrt(2 s + 2) phi(0) / Phi(0)`, and nothing of a third."""
    model = item_model(3, Preference([[0, 1]]), approximation="ep")  # exact with a single row
    model.covar_module.outputscale = s = 3.0
    posterior = model.posterior(model.datapoints)
    rise = 2 * s / math.sqrt(2 * s + 2) * 2 / math.sqrt(2 * math.pi)
    expected = torch.tensor([rise / 2, -rise / 2, 0.0]).double()
    assert torch.allclose(posterior.mean.squeeze(-1) - model.mean_module(model.datapoints), expected, atol=1e-8)
    assert posterior.variance[2].item() == pytest.approx(s, rel=1e-6)  # never asked about


def test_features_that_help_and_that_do_not(generator):
    X = torch.rand(40, 2, generator=generator, dtype=torch.float64)
    by_feature = votes_of(4 * X[:, 0], 600, generator)
    other = votes_of(1.5 * torch.randn(40, generator=generator, dtype=torch.float64), 600, generator)
    helped = fit(item_model(40, Preference(by_feature), X, approximation="ep"))
    not_helped = fit(item_model(40, Preference(other), X, approximation="ep"))
    assert feature_share(helped) > 0.8
    assert feature_share(not_helped) < 0.3
    new = item_points([40, 41], features=[[0.95, 0.5], [0.05, 0.5]])  # never seen, but for their features
    assert helped.predictive(new).probs.item() > 0.9


def test_features_may_have_any_scale(generator):
    X = torch.rand(10, 2, generator=generator, dtype=torch.float64)
    pairs = votes_of(X[:, 0], 50, generator)
    scaled = torch.stack([1000 * X[:, 0] - 300, torch.full((10,), 7.0).double()], dim=-1)  # the second one is constant
    base = torch.stack([X[:, 0], torch.full((10,), 0.5).double()], dim=-1)
    means = [item_model(10, Preference(pairs), F, approximation="ep") for F in (scaled, base)]
    first, second = (model.posterior(model.datapoints).mean for model in means)
    assert torch.allclose(first, second, atol=1e-8)


def test_more_votes_and_items_are_the_larger_model(generator):
    pairs = votes_of(torch.randn(5, generator=generator, dtype=torch.float64), 30, generator)
    X = torch.rand(7, 2, generator=generator, dtype=torch.float64)
    X[5:] = 0.5  # within the range of the others
    model = item_model(5, Preference(pairs), X[:5], approximation="ep")
    late = add_votes(add_items(model, 2, X[5:]), Preference([[5, 0], [6, 5]]))
    whole = item_model(7, [Preference(pairs), Preference([[5, 0], [6, 5]])], X, approximation="ep")
    assert torch.equal(late.datapoints, whole.datapoints)
    assert torch.allclose(late.posterior(late.datapoints).mean, whole.posterior(whole.datapoints).mean, atol=1e-8)
    assert len(model.datapoints) == 5  # as it was
    assert len(model.observations) == 1


def test_a_judge_who_answers_at_random_is_found_out(generator):
    utility = 1.5 * torch.randn(12, generator=generator, dtype=torch.float64)
    pairs = [
        votes_of(utility, 150, generator),
        votes_of(utility, 150, generator),
        votes_of(0 * utility, 150, generator),
    ]
    judge = torch.arange(3).repeat_interleave(150)
    model = fit(item_model(12, Preference(torch.cat(pairs), judge=judge), approximation="ep"))
    weights = model.judge_reliability.values
    assert weights[2] < 0.4 * weights[:2].min()
    pooled = fit(item_model(12, Preference(torch.cat(pairs)), approximation="ep"))

    def error(m):
        mean = m.posterior(m.datapoints).mean.squeeze(-1)
        return (mean - mean.mean() - utility + utility.mean()).square().mean()

    assert error(model) < 0.5 * error(pooled)


def test_judges_with_features(generator):
    X = torch.rand(8, 2, generator=generator, dtype=torch.float64)
    judge = torch.arange(200) % 2
    pairs = torch.where(
        (judge == 0).unsqueeze(-1), votes_of(4 * X[:, 0], 200, generator), votes_of(4 * X[:, 1], 200, generator)
    )
    model = fit(item_model(8, Preference(pairs, judge=judge), X, approximation="ep"))
    top = torch.tensor([[8.0, 1.0, 0.0], [9.0, 0.0, 1.0]]).double()
    assert model.predictive(top, judge=0).probs.item() > 0.7
    assert model.predictive(top, judge=1).probs.item() < 0.3


def test_ties_alone_are_warned_of():
    with pytest.warns(InputDataWarning, match="All votes are ties"):
        model = item_model(3, Tie([[0, 1], [1, 2]]))
    with pytest.raises(InputDataError, match=r"items \[3\]"):
        add_votes(model, Preference([[0, 3]]))
    assert len(model.observations) == 1
