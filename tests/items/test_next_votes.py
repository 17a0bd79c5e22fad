"""What to ask next, of draws that are given; and when to stop."""

import importlib
import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.items import add_votes, item_model, next_votes, verdict
from botorch_skewgp.items.leaderboard import utility_draws
from botorch_skewgp.observations import Preference, Tie


@pytest.fixture(scope="module")
def model():
    votes = [Preference([[0, 1], [0, 2], [3, 1], [0, 3], [2, 1], [0, 4]]), Tie([[2, 3]])]
    return item_model(6, votes)


def votes_of(monkeypatch, draws, *arguments, **options):
    """The votes of given draws of the utilities."""
    told = torch.tensor(draws, dtype=torch.double)
    monkeypatch.setattr(importlib.import_module("botorch_skewgp.items.next_votes"), "utility_draws", lambda *_: told)
    return [tuple(sorted(pair)) for pair in next_votes(None, *arguments, **options).tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_items_about_which_draws_disagree(monkeypatch, seed):
    def votes(draws, *arguments):
        return votes_of(monkeypatch, draws, 1, *arguments, seed=seed)

    assert votes([[3, 1, 0], [1, 3, 0]]) == [(0, 1)]  # the best of each
    assert votes([[4, 3, 2, 1], [4, 1, 3, 2]], "top", 2) == [(1, 2)]  # in the best two of one draw alone
    assert votes([[9, 8, 1, 0], [1, 0, 8, 9]], "top", 2) == [(0, 3)]  # the highest of these
    assert votes([[3, 2, 1, 0], [3, 1, 2, 0]], "order") == [(1, 2)]  # in another order


def test_pairs_are_as_frequent_as_the_probabilities_of_being_the_best(monkeypatch):
    """Of the pairs of two draws with different best items."""
    best = [0] * 5 + [1] * 3 + [2] * 2
    draws = torch.nn.functional.one_hot(torch.tensor(best), 4).double()
    pairs = votes_of(monkeypatch, draws.tolist(), 1000, distinct=False)
    p = torch.tensor([0.5, 0.3, 0.2])
    chances = {pair: float(p[pair[0]] * p[pair[1]]) for pair in ((0, 1), (0, 2), (1, 2))}
    for pair, chance in chances.items():
        share = chance / sum(chances.values())
        assert abs(pairs.count(pair) / 1000 - share) < 4.5 * math.sqrt(share * (1 - share) / 1000)


def test_votes_for_an_order_are_as_frequent_as_they_are_doubtful(monkeypatch):
    """An item above another in half of the draws, and one in a tenth of them."""
    draws = [[1, 0, 6, 5] if i < 10 else [0, 1, 6, 5] for i in range(20)]
    for i in (0, 19):
        draws[i][2:] = [5, 6]
    pairs = votes_of(monkeypatch, draws, 1000, "order", distinct=False)
    both = 0.25 * 0.09 * 2 * 2  # probability that two draws disagree in both, over that of any
    any_ = 2 * 0.25 + 2 * 0.09 - both
    share = (2 * 0.25 - both / 2) / any_
    assert set(pairs) == {(0, 1), (2, 3)}
    assert abs(pairs.count((0, 1)) / 1000 - share) < 4.5 * math.sqrt(share * (1 - share) / 1000)


def test_given_pairs_and_draws_that_agree(monkeypatch):
    draws = [[3, 2, 1, 0], [2, 3, 1, 0]]
    assert votes_of(monkeypatch, draws, 1, pairs=[[2, 3], [1, 3]]) == [(1, 3)]  # the highest two that may be asked
    assert votes_of(monkeypatch, draws, 2, pairs=[[2, 3], [1, 3]]) == [(1, 3), (2, 3)]
    assert votes_of(monkeypatch, [[3, 2, 1, 0]] * 2, 1) == [(0, 1)]
    assert len(set(votes_of(monkeypatch, [[3, 2, 1, 0]] * 2, 6, "order"))) == 6


def test_pending_votes_are_left_out(model):
    pairs, asked = [[0, 1], [1, 2], [2, 0]], []
    for _ in range(3):
        asked += next_votes(model, pairs=pairs, pending=[pair[::-1] for pair in asked]).tolist()
    assert {frozenset(pair) for pair in asked} == {frozenset(pair) for pair in pairs}
    with pytest.raises(InputDataError, match="All pairs are pending"):
        next_votes(model, pairs=pairs, pending=asked)


def test_items_that_may_be_the_best_are_asked_about():
    """Two items that beat all others and never met."""
    sure = [[0, i] for i in range(2, 8)] * 40 + [[1, i] for i in range(2, 8)] * 40
    model = item_model(8, Preference(sure), approximation="ep")
    model.covar_module.outputscale = 4.0
    pairs = next_votes(model, 3)
    assert sorted(pairs[0].tolist()) == [0, 1]  # only they can be the best
    assert len({tuple(sorted(pair)) for pair in pairs.tolist()}) == 3
    assert [sorted(pair) for pair in next_votes(model, 3, distinct=False).tolist()] == [[0, 1]] * 3
    large = item_model(42, Preference([[i % 2, 2 + i % 40] for i in range(400)]), approximation="ep")
    assert sorted(next_votes(large)[0].tolist()) == [0, 1]


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
        pairs = next_votes(model, 4)
        gap = utility[pairs[:, 0]] - utility[pairs[:, 1]]
        said = gap + math.sqrt(2) * torch.randn(4, generator=generator, dtype=torch.float64)
        model = add_votes(model, Preference(torch.where((said > 0).unsqueeze(-1), pairs, pairs.flip(-1))))
        asked += 4
        assert asked < 200
    assert verdict(model).items.tolist() == [0]


@pytest.mark.parametrize(("goal", "k"), [("best", None), ("top", 2), ("order", None)])
def test_the_default_dtype_changes_nothing(goal, k):
    """In double precision throughout, as many users of BoTorch set it."""
    duels = Preference([[0, 1], [2, 3]])
    expected = next_votes(item_model(6, duels, approximation="ep"), 2, goal, k)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    try:
        assert torch.equal(next_votes(item_model(6, duels, approximation="ep"), 2, goal, k), expected)
    finally:
        torch.set_default_dtype(default)
