"""Comparisons that fall apart, and recommendations that hang on it."""

import warnings

import pytest
import torch

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.acquisition.comparison_groups import comparison_groups
from botorch_skewgp.exceptions import UndecidedRecommendationWarning
from botorch_skewgp.observations import Binary, Choice, Preference, Ranking, Tie
from botorch_skewgp.truncated.draws import DrawSettings

DOUBLE = torch.float64
APART = Preference([[0, 1], [1, 2], [3, 4], [4, 5]])  # 0 is the best of three, 3 of three others
BOUNDS = torch.tensor([[0.0], [1.0]], dtype=DOUBLE)


def make_model(observations, lengthscale=0.01, outputscale=100.0) -> SkewGP:
    X = torch.tensor([[0.1], [0.2], [0.3], [0.7], [0.8], [0.9]], dtype=DOUBLE)
    model = SkewGP(X, observations, draw_settings=DrawSettings(num_draws=256))
    model.covar_module.outputscale = outputscale
    model.covar_module.base_kernel.lengthscale = lengthscale
    return model.eval()


def silent(act):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return act()


def test_groups_by_following_every_chain():
    observations = [
        Preference([[0, 1], [2, 1]]),
        Tie([[7, 8]]),
        Choice([[3, 4, 5], [9, 2, -1]]),
        Ranking([[10, 11, -1]]),
        Binary([1.0], index=[6]),
    ]
    linked = [{0, 1, 2, 9}, {3, 4, 5}, {6}, {7, 8}, {10, 11}]
    X = torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
    groups = comparison_groups(observations, X)
    for i in range(12):
        for j in range(12):
            assert (groups[i] == groups[j]) == any({i, j} <= group for group in linked)


def test_nothing_compared_is_every_point_alone():
    assert comparison_groups([], torch.arange(3.0).unsqueeze(-1)).unique().numel() == 3


def test_equal_points_are_one():
    """As where both points of every duel are appended, the recommended one again and again."""
    X = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.3, 0.4], [0.5, 0.6], [0.3, 0.6]])
    first, second, again, third, alone = comparison_groups([Preference([[1, 0], [2, 3]])], X)
    assert first == second == again == third != alone


def test_a_toss_up_between_groups_is_told():
    """Lengthscales far below the distances: nothing says which of the two winners is better."""
    with pytest.warns(UndecidedRecommendationWarning, match="row (0, to row 3|3, to row 0)") as caught:
        recommend(make_model(APART))
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_model([APART, Preference([[0, 3]])]),  # linked by a comparison
        lambda: make_model([Preference([[0, 1], [1, 2], [2, 0]])]),  # the others were compared with nothing
        lambda: make_model([Preference([[0, 1], [2, 3], [4, 5]])]),  # first duels
        lambda: make_model([APART, Binary([1.0, 0.0], index=[0, 3])]),  # labels say on their own how good a point is
        lambda: make_model(APART, outputscale=1e-3),  # a judge could hardly tell the two apart
    ],
    ids=["linked", "alone", "first", "labels", "noise"],
)
def test_nothing_is_told_where_nothing_hangs_on_it(make):
    silent(lambda: recommend(make()))


def test_nothing_is_told_where_the_kernel_decides():
    """The winner of the other group lies beside a point that lost to the best."""
    model = make_model(Preference([[0, 1], [0, 2], [0, 3], [4, 5]]), lengthscale=0.12)
    assert comparison_groups(model.observations, model.datapoints).unique().numel() == 2
    silent(lambda: recommend(model))


def test_next_pair_goes_on_without_a_word():
    model = make_model(APART)
    best = model.datapoints[model.posterior(model.datapoints).mean.argmax()]
    pair, _ = silent(lambda: next_pair(model, BOUNDS, "expected_improvement", num_restarts=2, raw_samples=16))
    assert torch.equal(pair[1], best)
