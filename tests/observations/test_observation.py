"""What all kinds of observations share; counts of answers; choices, rankings and class labels as comparisons."""

import math
from dataclasses import fields, replace

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    ChoiceOrNone,
    GradedPreference,
    LabelPreference,
    Numeric,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
    Vote,
)

INF = math.inf
EYE = torch.eye(2, dtype=torch.float64)

VALID: dict[str, Observation] = {
    "numeric": Numeric([0.5, 1.5], noise=[0.1, 0.2], index=torch.tensor([3, 1])),
    "binary": Binary([1, 0], index=torch.tensor([3, 1])),
    "ordinal": Ordinal([2, 0], 3, index=torch.tensor([3, 1])),
    "censored": Censored([-INF, 0.0], [1.0, INF], index=torch.tensor([3, 1])),
    "preference": Preference(torch.tensor([[3, 1], [0, 1]])),
    "graded duels": Preference(torch.tensor([[3, 1], [0, 1]]), strength=[1, 0]),
    "graded duel of its name": GradedPreference(torch.tensor([[3, 1], [0, 1]]), strength=[1, 0], num_strengths=3),
    "vote": Vote(torch.tensor([[3, 1], [0, 1], [2, 0]]), ["second", "both bad", "tie"]),
    "tie": Tie(torch.tensor([[3, 1]])),
    "choice": Choice(torch.tensor([[3, 1, 0], [1, 2, -1]])),
    "choice or none": ChoiceOrNone(torch.tensor([[3, 1, 0], [1, -1, -1]]), [False, True]),
    "ranking": Ranking(torch.tensor([[3, 1, 0], [1, 2, -1]])),
    "label preference": LabelPreference(torch.tensor([[0, 2], [1, 0]]), 3, index=torch.tensor([3, 1])),
    "validity": Validity([True, False], index=torch.tensor([3, 1])),
    "slope": Slope([0, 0], [1, -1], index=torch.tensor([3, 1])),
    "affine": AffineProbit(EYE, 0.0, EYE, index=torch.tensor([3, 1])),
}


def test_fields_cannot_be_set():
    assert all(type(entry).__dataclass_params__.frozen for entry in VALID.values())


@pytest.mark.parametrize("name", VALID)
def test_points_needed_and_shift(name):
    observation = VALID[name]
    assert observation.num_points_needed == 4
    moved = observation.shift(10)
    assert moved.num_points_needed == 14
    assert observation.num_points_needed == 4
    assert type(moved) is type(observation)
    index = observation.index_field
    before, after = getattr(observation, index), getattr(moved, index)
    assert torch.equal(after[before >= 0], before[before >= 0] + 10)
    assert (after[before < 0] == -1).all()


def test_slopes_in_inputs_beyond_the_points_are_refused():
    X = torch.rand(4, 2, dtype=torch.float64)
    model = SkewGP(X, Slope([0, 1], 1))
    before = model.posterior(X).mean
    for bad in (
        lambda: SkewGP(X, Slope(2, 1)),
        lambda: model.set_train_data(targets=Slope([0, 2], 1)),
        lambda: model.condition_on_observations(X[:1], Slope(2, 1)),
    ):
        with pytest.raises(InputDataError, match="refers to input 2, but train_X has 2 columns"):
            bad()
    assert torch.equal(model.posterior(X).mean, before)


@pytest.mark.parametrize("name", VALID)
def test_bad_observations_leave_a_model_as_it_was(name):
    X = torch.rand(4, 1, dtype=torch.float64)
    model = SkewGP(X, VALID[name], approximation="ep")
    before = model.posterior(X).mean
    for change in (lambda bad: model.set_train_data(targets=bad), lambda bad: SkewGP(X, bad)):
        with pytest.raises(InputDataError, match="refers to row 4 of train_X, which has 4 rows"):
            change(VALID[name].shift(1))
    assert model.observations[0] is not None
    assert model.observations[0].num_points_needed == 4
    assert torch.equal(model.posterior(X).mean, before)


def test_numbers_given_as_lists_keep_double_precision():
    assert Numeric([0.1]).values.item() == 0.1
    assert Numeric(torch.tensor([0.1], dtype=torch.float64), noise=0.3).noise.item() == 0.3
    assert Censored([0.1], [0.3]).upper.item() == 0.3
    assert AffineProbit(EYE, 0.1, EYE).bias[0].item() == 0.1


def test_outcomes_of_one_column_are_taken():
    assert Numeric(torch.zeros(3, 1)).values.shape == (3,)
    assert Binary(torch.zeros(3, 1) > 0).labels.shape == (3,)


def test_a_single_variance_is_that_of_all_numbers():
    assert torch.equal(Numeric(torch.zeros(3), noise=0.5).noise, torch.full((3,), 0.5))


def test_change_of_dtype_keeps_indices_and_flags():
    single = VALID["affine"].apply(lambda t: t.float() if t.is_floating_point() else t)
    assert single.weight.dtype == torch.float32
    assert single.index.dtype == torch.long
    assert VALID["affine"].weight.dtype == torch.float64
    assert VALID["binary"].apply(lambda t: t) is VALID["binary"]


def test_judgements_turn_round_where_low_values_are_good_and_readings_do_not():
    assert VALID["preference"].reversed().pairs.tolist() == [[1, 3], [1, 0]]
    assert VALID["tie"].reversed().pairs.tolist() == [[1, 3]]
    for name in ("numeric", "censored", "binary", "ordinal", "slope", "affine", "validity"):
        assert VALID[name].reversed() is VALID[name]
    assert VALID["graded duels"].reversed().pairs.tolist() == [[1, 3], [1, 0]]
    assert VALID["graded duels"].reversed().strength.tolist() == [1, 0]
    turned = VALID["vote"].reversed()
    assert (turned.answers.tolist(), turned.buttons) == ([0, 4, 2], ("first", "second", "tie", "both good"))
    assert (turned.duels.tolist(), turned.ties.tolist()) == ([[3, 1]], [[0, 1], [2, 0]])


def test_pairs_of_comparisons():
    duels = {name: entry.duels.tolist() for name, entry in VALID.items() if len(entry.duels)}
    assert duels == {
        "preference": [[3, 1], [0, 1]],
        "graded duels": [[3, 1], [0, 1]],
        "graded duel of its name": [[3, 1], [0, 1]],
        "vote": [[1, 3]],
        "choice": [[3, 1], [3, 0], [1, 2]],
        "choice or none": [[3, 1], [3, 0]],
        "ranking": [[3, 1], [1, 0], [1, 2]],
    }
    assert {name: entry.ties.tolist() for name, entry in VALID.items() if len(entry.ties)} == {
        "tie": [[3, 1]],
        "vote": [[0, 1], [2, 0]],
    }


def test_marks_show_every_observation_at_a_single_point():
    shown = {name: [(mark.symbol, mark.points.tolist()) for mark in VALID[name].marks()] for name in VALID}
    assert {name: marks for name, marks in shown.items() if marks} == {
        "numeric": [("value", [3, 1])],
        "censored": [("at most", [3]), ("at least", [1])],
        "binary": [("yes", [3]), ("no", [1])],
        "validity": [("yes", [3]), ("no", [1])],
        "ordinal": [("0", [1]), ("1", []), ("2", [3])],
    }
    at_most, at_least = VALID["censored"].marks()
    assert (at_most.values.tolist(), at_least.values.tolist()) == ([1.0], [0.0])


@pytest.mark.parametrize(
    "slope",
    [
        Slope([0] * 5, [1] * 5, index=range(5)),
        Slope(0, 1, index=range(5)),
        Slope(0, [1.0] * 5),
        Slope(torch.zeros(5, dtype=torch.int32), 1),
    ],
)
def test_single_values_stand_for_all(slope):
    assert slope.dims.tolist() == [0] * 5
    assert slope.signs.tolist() == [1] * 5
    assert slope.index.tolist() == [0, 1, 2, 3, 4]
    assert slope.num_points_needed == 5


def test_one_slope_may_be_given_by_numbers_alone():
    slope = Slope(1, -1, index=[7])
    assert (slope.dims.tolist(), slope.signs.tolist(), slope.index.tolist()) == ([1], [-1], [7])


COUNTED = ("binary", "ordinal", "censored", "preference", "tie", "choice", "ranking", "validity")
X = torch.rand(4, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", COUNTED)
def test_every_field_is_that_of_repeated_answers(name):
    once = replace(VALID[name], judge=torch.arange(VALID[name].num_answers))
    repeats = torch.arange(2, 2 + once.num_answers)
    merged = replace(once, count=repeats)
    which = [i for i, number in enumerate(repeats.tolist()) for _ in range(number)]
    assert merged.num_answers == len(which)
    for entry in fields(once):
        value = getattr(once, entry.name)
        if isinstance(value, torch.Tensor):
            assert torch.equal(getattr(merged, entry.name), value[which]), entry.name
    assert replace(merged, judge=merged.judge + 1).num_answers == len(which)


def test_one_number_stands_for_all():
    assert torch.equal(Preference([[0, 1], [2, 3]], count=2).pairs, torch.tensor([[0, 1], [0, 1], [2, 3], [2, 3]]))


def test_replicates_of_a_choice_have_noises_of_their_own():
    model = SkewGP(X, Choice([[0, 1, 2]], count=4))
    model.covar_module.outputscale = 1e-4  # nearly no utility: each of three is the best one time in three
    assert float(model.log_marginal_likelihood("ep").value) == pytest.approx(4 * math.log(1 / 3), abs=0.02)


@pytest.mark.parametrize(
    ("merged", "rows"),
    [(Preference([[0, 1], [1, 2]], count=[5000, 3000]), 2), (Binary([1, 0], index=[0, 1], count=[5000, 3000]), 2)],
)
def test_many_equal_rows_are_merged_again(merged, rows):
    model = SkewGP(X, merged, approximation="ep")
    evidence = model.evidence(model.forward(model.train_inputs[0]), merge_equal=True)
    assert evidence.rows.num_rows == rows
    assert sorted(evidence.rows.count.tolist()) == [3000.0, 5000.0]


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
