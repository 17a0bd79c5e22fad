"""What all kinds of observations share."""

import dataclasses

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from observation_cases import EYE, VALID

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import AffineProbit, Binary, Censored, Numeric, Ordinal, Preference, Slope


@pytest.mark.parametrize("name", VALID)
def test_fields_cannot_be_set(name):
    observation = VALID[name]
    field = dataclasses.fields(observation)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(observation, field, None)


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
    model = SkewGP(X, VALID[name])
    before = model.posterior(X).mean
    for change in (lambda bad: model.set_train_data(targets=bad), lambda bad: SkewGP(X, bad)):
        with pytest.raises(InputDataError, match="refers to row 4 of train_X, which has 4 rows"):
            change(VALID[name].shift(1))
    assert model.observations[0] is not None
    assert model.observations[0].num_points_needed == 4
    assert torch.equal(model.posterior(X).mean, before)


def test_observations_may_be_given_as_lists():
    assert torch.equal(Binary([1, 0, True]).labels, torch.tensor([True, False, True]))
    assert torch.equal(Preference([[0, 1]]).pairs, torch.tensor([[0, 1]]))
    assert torch.equal(Ordinal([0, 1], 2).grades, torch.tensor([0, 1]))


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
    assert VALID["validity"].reversed().valid.tolist() == [False, True]
    for name in ("numeric", "censored", "binary", "ordinal", "slope", "affine"):
        assert VALID[name].reversed() is VALID[name]
    assert VALID["graded duels"].reversed().pairs.tolist() == [[1, 3], [1, 0]]
    assert VALID["graded duels"].reversed().strength.tolist() == [1, 0]
    turned = VALID["vote"].reversed()
    assert (turned.answers.tolist(), turned.buttons) == ([0, 4, 2], ("first", "second", "tie", "both good"))
    assert (turned.duels.tolist(), turned.ties.tolist()) == ([[3, 1]], [[0, 1], [2, 0]])
    turning = {"preference", "graded duels", "graded duel of its name", "choice", "choice or none", "ranking"}
    turning |= {"validity", "vote"}
    assert {name for name in VALID if VALID[name].turns_round} == turning


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
