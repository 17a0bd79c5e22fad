"""Choices, rankings and class labels as comparisons."""

import pytest
import torch
from observation_cases import VALID

from botorch_skewgp.observations import LabelPreference, Ranking


def pairs_of(ranking: Ranking) -> list[tuple[int, int, int]]:
    places, event = ranking.comparisons()
    pairs = ranking.items[event.unsqueeze(-1), places]
    return sorted((e, a, b) for (a, b), e in zip(pairs.tolist(), event.tolist(), strict=True))


def test_comparisons_of_a_full_ranking_are_between_neighbours():
    assert pairs_of(Ranking(torch.tensor([[3, 1, 0], [1, 2, -1]]))) == [(0, 1, 0), (0, 3, 1), (1, 1, 2)]


def test_comparisons_of_a_partial_order_are_between_neighbouring_ranks():
    ranking = Ranking(torch.tensor([[3, 1, 0, 2, 4]]), ranks=torch.tensor([[0, 0, 2, 2, 5]]))
    assert pairs_of(ranking) == [(0, 0, 4), (0, 1, 0), (0, 1, 2), (0, 2, 4), (0, 3, 0), (0, 3, 2)]


def test_items_of_one_rank_are_not_compared():
    assert pairs_of(Ranking(torch.tensor([[3, 1]]), ranks=torch.tensor([[0, 0]]))) == []


def test_choice_as_ranking():
    assert pairs_of(VALID["choice"].as_ranking()) == [(0, 3, 0), (0, 3, 1), (1, 1, 2)]


@pytest.mark.parametrize(
    "observation",
    [
        VALID["choice"],
        VALID["ranking"],
        Ranking([[3, 1, 0, 2, -1], [4, 0, 1, 2, 3]], ranks=[[0, 0, 2, 2, 0], [0, 1, 1, 1, 4]]),
    ],
)
def test_reversed_rankings_have_every_comparison_the_other_way_round(observation):
    ranking = observation if isinstance(observation, Ranking) else observation.as_ranking()
    wanted = sorted((event, loser, winner) for event, winner, loser in pairs_of(ranking))
    assert pairs_of(observation.reversed()) == wanted
    assert pairs_of(observation.reversed().reversed()) == pairs_of(ranking)


def test_classes_beat_every_other_label_in_one_event():
    observation = LabelPreference.from_classes(torch.tensor([2, 0]), 3, index=torch.tensor([5, 6]))
    assert observation.labels.tolist() == [[2, 0], [2, 1], [0, 1], [0, 2]]
    assert observation.index.tolist() == [5, 5, 6, 6]
    assert observation.event.tolist() == [0, 0, 1, 1]
