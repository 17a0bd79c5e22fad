"""What to ask next, against formulas written out another way; and when to stop."""

import importlib
import itertools
import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP

from botorch_skewgp.items import add_votes, item_model, next_votes, verdict
from botorch_skewgp.items.draws import fisher_information, outcomes_of_votes, utility_draws, vote_readings
from botorch_skewgp.items.next_votes import _Contenders
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Preference, Tie

NUM = 256


@pytest.fixture(scope="module")
def model():
    votes = [Preference([[0, 1], [0, 2], [3, 1], [0, 3], [2, 1], [0, 4]]), Tie([[2, 3]])]
    return item_model(6, votes)


@pytest.fixture(scope="module")
def ensemble(model):
    """Two members, of which the second calls more duels a tie."""
    members = [item_model(6, list(model.observations)) for _ in range(2)]
    for member, width in zip(members, (0.05, 2.0), strict=True):
        member.likelihood.tie_width = width
    return FullyBayesianSkewGP(members)


def members_of(model):
    return getattr(model, "members", [model])


def outcome_probabilities(model, difference):
    """Loss, tie and win of the first of two items, from the width and the noise."""
    width = model.likelihood.tie_width.item()
    cuts = [(-width - difference) / math.sqrt(2), (width - difference) / math.sqrt(2)]
    below = [0.5 * (1 + math.erf(cut / math.sqrt(2))) for cut in cuts]
    return [below[0], below[1] - below[0], 1 - below[1]]


def entropy(p):
    return -sum(x * math.log(x) for x in p if x > 0)


def information(model, draws, pair, states):
    """`H(y) - sum_t P(t) H(y | t)` with `t` one of the states of the draws."""
    members = members_of(model)
    rows = [
        outcome_probabilities(members[s * len(members) // len(draws)], draw[pair[0]] - draw[pair[1]])
        for s, draw in enumerate(draws.tolist())
    ]

    def average(which):
        return [sum(rows[s][o] for s in which) / len(which) for o in range(3)]

    groups = {}
    for s, state in enumerate(states):
        groups.setdefault(state, []).append(s)
    rest = sum(len(which) / len(rows) * entropy(average(which)) for which in groups.values())
    return entropy(average(range(len(rows)))) - rest


def moments(draws):
    return draws.mean(0), torch.cov(draws.mT, correction=0)


def covariance_after(model, mean, covariance, pair):
    """The covariance once a noisy difference of a pair was seen, with the information of a vote, from precisions."""
    gap, step = float(mean[pair[0]] - mean[pair[1]]), 1e-5
    told = 0.0
    for member in members_of(model):
        above, at, below = (outcome_probabilities(member, gap + shift) for shift in (step, 0.0, -step))
        of_member = sum(((a - b) / (2 * step)) ** 2 / p for a, p, b in zip(above, at, below, strict=True))
        told += of_member / len(members_of(model))
    contrast = torch.zeros(len(mean)).double()
    contrast[pair[0]], contrast[pair[1]] = 1.0, -1.0
    ridge = 1e-9 * torch.eye(len(mean)).double()
    return ((covariance + ridge).inverse() + told * contrast.outer(contrast)).inverse()


def share_of_variance(model, draws, covariance, pair):
    """What a noisy difference of a pair takes from the variance of the best item of one draw less that of another."""
    wins = draws.argmax(-1).tolist()
    best = [(wins.count(i) + 1 / 6) / (len(wins) + 1) for i in range(6)]
    after = covariance_after(model, draws.mean(0), covariance, pair)
    total = 0.0
    for i, j in itertools.permutations(range(6), 2):
        was, left = (c[i, i] + c[j, j] - 2 * c[i, j] for c in (covariance, after))
        total += best[i] * best[j] * float(1 - left / was)
    return total


@pytest.mark.parametrize("name", ["model", "ensemble"])
@pytest.mark.parametrize(("goal", "k"), [("best", None), ("top", 2), ("order", None)])
def test_the_most_telling_pair_is_that_of_formulas_written_out(name, goal, k, request):
    model = request.getfixturevalue(name)
    draws = utility_draws(model, NUM, 0, "test")
    found = {}
    for pair in itertools.combinations(range(6), 2):
        if goal == "order":
            found[pair] = information(model, draws, pair, range(NUM))
        elif goal == "best":
            found[pair] = share_of_variance(model, draws, moments(draws)[1], pair)
        else:
            inside = [set(draw.topk(2).indices.tolist()) for draw in draws]
            found[pair] = sum(information(model, draws, pair, [i in top for top in inside]) for i in range(6))
    pairs, values = next_votes(model, 1, goal, k, num_samples=NUM)
    best = max(found, key=found.get)
    assert tuple(sorted(pairs[0].tolist())) == best
    assert values.item() == pytest.approx(found[best], abs=2e-6)  # in single precision
    if goal == "best":
        assert values.item() > 0.01
    one = torch.tensor([[4, 5]])
    value = next_votes(model, 1, goal, k, pairs=one, num_samples=NUM).values.item()
    assert value == pytest.approx(found[4, 5], abs=2e-6)


def test_the_second_of_a_batch_knows_the_covariance_that_the_first_leaves(model):
    draws = utility_draws(model, NUM, 0, "test")
    mean, covariance = moments(draws)
    pairs, values = next_votes(model, 2, "best", distinct=False, num_samples=NUM)
    left = covariance_after(model, mean, covariance, pairs[0].tolist())
    found = {pair: share_of_variance(model, draws, left, pair) for pair in itertools.combinations(range(6), 2)}
    assert tuple(sorted(pairs[1].tolist())) == max(found, key=found.get)
    assert values[1].item() == pytest.approx(max(found.values()), abs=2e-6)
    first = share_of_variance(model, draws, covariance, sorted(pairs[1].tolist()))
    assert values[1].item() != pytest.approx(first, abs=1e-4)


def test_outcomes_of_votes(model):
    reading = vote_readings(model, "test")[0]
    difference = torch.tensor([-1.0, 0.3, 2.0]).double()
    known = torch.stack(outcomes_of_votes(reading, difference), dim=-1)
    for row, d in zip(known.tolist(), difference.tolist(), strict=True):
        assert row == pytest.approx(outcome_probabilities(model, d)[:2], rel=1e-10)


def test_information_of_votes_in_the_tails(model):
    """From a central difference where that has digits; a vote whose answer is certain tells nothing."""
    reading, step = vote_readings(model, "test")[0], 1e-5
    difference = torch.tensor([-4.0, -1.0, 0.3, 2.0, -60.0, 60.0, 14.0, -14.0]).double()
    found = fisher_information(reading, difference).tolist()
    for told, d in zip(found[:4], difference.tolist(), strict=False):
        above, at, below = (outcome_probabilities(model, d + shift) for shift in (step, 0.0, -step))
        slopes = [(a - b) / (2 * step) for a, b in zip(above, below, strict=True)]
        assert told == pytest.approx(sum(s**2 / p for s, p in zip(slopes, at, strict=True)), rel=1e-4)
    assert found[4] == found[5] == 0.0
    assert 0 < found[6] < 1e-15
    assert found[6] == pytest.approx(found[7], rel=1e-9)


@pytest.mark.parametrize(("judge", "slip"), [(None, 0.3), (1, 0.5), ("new", 0.3), ("panel", 0.3)])
def test_votes_that_may_be_slips_tell_less(judge, slip):
    likelihood = PreferenceLikelihood(slip=torch.tensor([0.1, 0.5]).double(), ties_allowed=True)
    votes = [Preference([[0, 1], [1, 2]], judge=[0, 1]), Tie([[0, 2]], judge=1)]
    slippery = item_model(3, votes, likelihood=likelihood, approximation="ep")
    reading, step = vote_readings(slippery, "test", judge)[0], 1e-5
    difference = torch.tensor([-4.0, -1.0, 0.3, 2.0]).double()

    def probabilities(d):
        return [slip / 3 + (1 - slip) * p for p in outcome_probabilities(slippery, d)]

    known = torch.stack(outcomes_of_votes(reading, difference.clone()), dim=-1)
    for row, told, d in zip(
        known.tolist(), fisher_information(reading, difference).tolist(), difference.tolist(), strict=True
    ):
        above, at, below = (probabilities(d + shift) for shift in (step, 0.0, -step))
        assert row == pytest.approx(at[:2], rel=1e-7)
        slopes = [(a - b) / (2 * step) for a, b in zip(above, below, strict=True)]
        assert told == pytest.approx(sum(s**2 / p for s, p in zip(slopes, at, strict=True)), rel=1e-4)


def test_a_judge_who_slips_is_asked_for_less():
    """Of the same posterior, the votes of one who slips have smaller values, of all goals."""
    likelihood = PreferenceLikelihood(slip=torch.tensor([0.01, 0.7]).double())
    judged = item_model(4, Preference([[0, 1], [2, 3], [1, 2]], judge=[0, 1, 0]), likelihood=likelihood)
    judged.covar_module.outputscale = 4.0
    for goal, k in (("best", None), ("top", 2), ("order", None)):
        values = [next_votes(judged, 1, goal, k, [[0, 2]], judge).values.item() for judge in (0, 1)]
        assert 0 < values[1] < 0.5 * values[0]


def test_a_batch_knows_what_it_has_asked():
    """Two items that beat all others and never met: the first question is between them, and the next tell little."""
    sure = [[0, i] for i in range(2, 8)] * 40 + [[1, i] for i in range(2, 8)] * 40
    model = item_model(8, Preference(sure), approximation="ep")
    model.covar_module.outputscale = 4.0
    pairs, values = next_votes(model, 3, "best")
    assert sorted(pairs[0].tolist()) == [0, 1]  # only they can be the best
    assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == 3
    again, repeated = next_votes(model, 3, "best", distinct=False)
    assert [sorted(pair) for pair in again.tolist()] == [[0, 1]] * 3  # noise leaves something to ask
    assert (repeated.diff() < 0).all()
    assert (repeated[1:] > values[1:]).all()
    assert next_votes(model, 1, "top", k=2).values.item() == pytest.approx(0.0, abs=1e-6)  # both are sure to be in


def test_many_items_are_screened(model, monkeypatch):
    """Of 42 items the two that matter are among the pairs that are looked at."""
    monkeypatch.setattr(importlib.import_module("botorch_skewgp.items.next_votes"), "MAX_PAIRS", 20)
    losers = [[i % 2, 2 + i % 40] for i in range(400)]
    large = item_model(42, Preference(losers), approximation="ep")
    pairs, _ = next_votes(large, 1, "best")
    assert sorted(pairs[0].tolist()) == [0, 1]
    pairs, _ = next_votes(large, 20, "order")
    assert len(pairs) == 20


def test_verdict_is_the_share_of_draws(model):
    draws = utility_draws(model, 1000, 5, "test")
    best = verdict(model, num_samples=1000, seed=5)
    wins = draws.argmax(-1).bincount()
    assert best.items.tolist() == [int(wins.argmax())]
    assert best.probability == wins.max().item() / 1000
    top = verdict(model, "top", 2, num_samples=1000, seed=5)
    sets = [set(draw.topk(2).indices.tolist()) for draw in draws]
    assert top.probability == sum(s == set(top.items.tolist()) for s in sets) / 1000
    order = verdict(model, "order", num_samples=1000, seed=5)
    same = (draws.argsort(-1, descending=True) == order.items).all(-1)
    assert order.items.tolist() == draws.mean(0).argsort(descending=True).tolist()
    assert order.probability == same.double().mean().item()


def test_asking_ends(generator):
    utility = torch.tensor([2.0, 0.5, 0.0, -1.0]).double()
    model = item_model(4, Preference([[0, 1], [2, 3]]), approximation="ep")
    asked = 0
    while verdict(model).probability < 0.95:
        pairs, _ = next_votes(model, 4)
        gap = utility[pairs[:, 0]] - utility[pairs[:, 1]]
        said = gap + math.sqrt(2) * torch.randn(4, generator=generator, dtype=torch.float64)
        model = add_votes(model, Preference(torch.where((said > 0).unsqueeze(-1), pairs, pairs.flip(-1))))
        asked += 4
        assert asked < 200
    assert verdict(model).items.tolist() == [0]


def test_judges():
    model = item_model(3, Preference([[0, 1], [1, 2], [2, 0]], judge=[0, 1, 1]))
    pairs, _ = next_votes(model, judge=1)
    assert pairs.shape == (1, 2)
    assert verdict(model, judge=0).items.tolist() == [0]


def test_bad_input(model):
    with pytest.raises(InputDataError, match="goal must be"):
        next_votes(model, goal="worst")
    with pytest.raises(InputDataError, match="k is for goal='top'"):
        next_votes(model, goal="best", k=2)
    with pytest.raises(InputDataError, match="k is for goal='top'"):
        verdict(model, "top")
    with pytest.raises(InputDataError, match="k must be an integer from 1 to 5"):
        verdict(model, "top", 6)
    with pytest.raises(InputDataError, match="num_votes must be at most 15, the number of pairs; got 16"):
        next_votes(model, 16)
    with pytest.raises(InputDataError, match="num_votes must be an integer of at least 1"):
        next_votes(model, 0)
    with pytest.raises(InputDataError, match=r"num_votes .* got 1\.5"):
        next_votes(model, 1.5)
    with pytest.raises(InputDataError, match=r"k must be an integer from 1 to 5; got 1\.5"):
        next_votes(model, goal="top", k=1.5)
    with pytest.raises(InputDataError, match="numbered from 0"):
        next_votes(model, pairs=[[0, 6]])
    with pytest.raises(InputDataError, match="itself"):
        next_votes(model, pairs=[[1, 1]])
    X = torch.rand(3, 1).double()
    with pytest.raises(UnsupportedError, match="needs a SkewGP"):
        next_votes(SingleTaskGP(X, X))
    with pytest.raises(UnsupportedError, match="has no judges"):
        next_votes(SingleTaskGP(X, X), judge=0)


def test_an_item_that_stands_twice_counts_once():
    draws = torch.randn(2048, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    reading = PreferenceLikelihood().reading(Preference, draws)
    pairs = torch.tensor([[0, 1], [0, 2], [1, 2]])
    once, twice = (_Contenders.of(told, [reading]).values(pairs) for told in (draws, draws[:, [0, 1, 2, 2]]))
    assert twice.tolist() == pytest.approx(once.tolist(), rel=1e-3)


def test_members_of_an_ensemble_that_allow_different_answers_are_refused():
    votes = Preference([[0, 1], [1, 2]])
    ties = PreferenceLikelihood(ties_allowed=True)
    ensemble = FullyBayesianSkewGP([item_model(3, votes), item_model(3, votes, likelihood=ties)])
    with pytest.raises(InputDataError, match="Members of an ensemble must allow the same answers"):
        next_votes(ensemble)


@pytest.mark.parametrize(("goal", "k"), [("best", None), ("top", 2), ("order", None)])
def test_the_default_dtype_changes_nothing(goal, k):
    """In double precision throughout, as many users of BoTorch set it."""
    model = item_model(6, Preference([[0, 1], [2, 3]]), approximation="ep")
    expected = next_votes(model, 2, goal, k)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    try:
        found = next_votes(item_model(6, Preference([[0, 1], [2, 3]]), approximation="ep"), 2, goal, k)
    finally:
        torch.set_default_dtype(default)
    assert found.values.dtype == torch.double
    torch.testing.assert_close(found.values, expected.values, atol=1e-4, rtol=0)
