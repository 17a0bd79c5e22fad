"""Comparisons: rows with the noise that each kind implies, and predictions against simulation."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from tensors import tensor

from botorch_skewgp.likelihoods import OutcomeScale, PreferenceLikelihood
from botorch_skewgp.observations import Choice, Preference, Ranking, Tie

INF = math.inf
LIKE = torch.zeros(0, dtype=torch.float64)
NOISE = 0.4


def make(**kwargs):
    return PreferenceLikelihood(noise=NOISE, **kwargs).double()


def noise_covariance(rows):
    full = torch.diag(rows.noise)
    return full if rows.noise_root is None else full + rows.noise_covariance


def difference(n, pairs):
    D = torch.zeros(len(pairs), n, dtype=torch.float64)
    for i, (a, b) in enumerate(pairs):
        D[i, a], D[i, b] = 1.0, -1.0
    return D


@pytest.mark.parametrize(
    ("observation", "blocks"),
    [
        (Choice([[1, 0, 2, 3]]), [[(1, 0), (1, 2), (1, 3)]]),
        (Choice([[4, 3, -1]]), [[(4, 3)]]),
        (Ranking([[2, 0, 4, 1]]), [[(2, 0), (0, 4), (4, 1)]]),
        (Ranking([[4, 1, 0, 3]], ranks=[[0, 0, 1, 1]]), [[(4, 0), (4, 3), (1, 0), (1, 3)]]),
        (Ranking([[4, 1, 0, 3]], ranks=[[0, 2, 2, 5]]), [[(4, 1), (4, 0), (1, 3), (0, 3)]]),
        # the same items in two events have noise of their own in each
        (Choice([[0, 1, 2], [0, 2, 3]]), [[(0, 1), (0, 2)], [(0, 2), (0, 3)]]),
        (Ranking([[0, 1, 2], [2, 1, -1]]), [[(0, 1), (1, 2)], [(2, 1)]]),
    ],
)
def test_noise_of_an_item_is_drawn_once_in_an_event(observation, blocks):
    """With `D` the differences of an event their noise has covariance `noise D D^T`."""
    rows = make().rows(observation, LIKE)
    D = [difference(5, block) for block in blocks]
    assert torch.allclose(rows.weight(5), torch.cat(D))
    assert torch.allclose(noise_covariance(rows), NOISE * torch.block_diag(*(d @ d.T for d in D)))
    assert (rows.noise >= 0).all()
    assert (rows.lower == 0).all()
    assert (rows.upper == INF).all()


def test_outcome_scale_leaves_comparisons_alone():
    scale = OutcomeScale(location=10.0, scale=3.0)
    rows, plain = make().rows(Tie([[0, 1]]), LIKE, scale), make().rows(Tie([[0, 1]]), LIKE)
    assert torch.equal(rows.upper, plain.upper)
    assert torch.equal(rows.noise, plain.noise)


def test_comparison_needs_two_items():
    with pytest.raises(InputDataError, match=r"function_samples must be .* k of at least 2.*got \(3, 1\)"):
        make()(torch.zeros(3, 1, dtype=torch.float64))


def test_fantasy_is_that_the_best_point_beats_all_others():
    rows = make().fantasy_rows(tensor(0.1, 0.9, -0.4).expand(2, 3), OutcomeScale())
    assert rows.weight.shape == (2, 2, 3)
    assert rows.noise_covariance.shape == (2, 2, 2)
    D = difference(3, [(1, 0), (1, 2)])
    assert torch.equal(rows.weight[0], D)
    assert torch.allclose(rows.noise_covariance[0], NOISE * D @ D.T)
    assert (rows.lower == 0).all()
    assert (rows.upper == INF).all()


@pytest.mark.parametrize("ties_allowed", [False, True])
def test_the_highest_outcome_of_a_duel_is_a_win(ties_allowed):
    likelihood = PreferenceLikelihood(ties_allowed=ties_allowed)
    _, won = likelihood.answers(Preference([[0, 1]]))
    assert likelihood.reading(Preference, torch.zeros(1)).highest == int(won)
