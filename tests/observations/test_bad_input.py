"""Observations are checked when built: a clear error that names the argument."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import tensor

from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    GradedPreference,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Tie,
    Validity,
    Vote,
)

INF, NAN = math.inf, math.nan
EYE = torch.eye(2, dtype=torch.float64)

# what is built, and what the message must say
BAD = [
    (lambda: Numeric([0.0, NAN]), r"values contains NaN at positions \[1\]"),
    (lambda: Numeric([0.0, INF]), "values must be finite"),
    (lambda: Numeric(torch.zeros(2, 3)), "values must be an m-dim or m x 1"),
    (lambda: Numeric([0.0, 1.0], noise=[0.1, -0.1]), "noise must hold one finite non-negative"),
    (lambda: Numeric([0.0], noise=[NAN]), "noise contains NaN"),
    (lambda: Numeric([0.0, 1.0], noise=[0.1]), "noise must hold one finite"),
    (lambda: Numeric([0.0, 1.0], index=tensor([0])), "index must have one entry"),
    (lambda: Numeric([0.0], index=tensor([-1])), "index must not hold negative"),
    (lambda: Numeric([0.0], index=tensor([True])), "index must hold integer"),
    (lambda: Numeric([0.0], index=tensor([[0]])), "index must be a m-dim"),
    (lambda: Binary([0, 2]), r"labels must be 0 or 1; got \[2.0\] at positions \[1\]"),
    (lambda: Binary([NAN, 1.0]), "labels contains NaN"),
    (lambda: Ordinal([0, 3], 3), r"grades must be integers from 0 to 2; got \[3.0\]"),
    (lambda: Ordinal([0, -1], 3), "grades must be integers from 0 to 2"),
    (lambda: Ordinal([0.5], 3), "grades must be integers"),
    (lambda: Ordinal([0], 1), "num_grades must be an integer from 2 to 10000"),
    (lambda: Ordinal([0], 2.5), "num_grades must be an integer"),
    (lambda: Censored([1.0, 0.0], [0.0, 1.0]), r"lower must be below upper.*\[0\]"),
    (lambda: Censored([1.0], [1.0]), "Give exact readings as Numeric"),
    (lambda: Censored([1.0], [2.0, 3.0]), "lower and upper must have equal shapes"),
    (lambda: Censored([0.0], [NAN]), "upper contains NaN"),
    (lambda: Preference(torch.zeros(1, 3, dtype=torch.long)), "pairs must be m x 2"),
    (lambda: Preference(tensor([0, 1])), "pairs must be a m x 2 tensor"),
    (lambda: Preference(tensor([[0, 1], [2, 2]])), r"pairs compares a point with itself in rows \[1\]"),
    (lambda: Preference([[0, 1], [1, 2]], strength=[0]), "strength must have one entry for each of the 2 pairs; got 1"),
    (lambda: Preference([[0, 1]], strength=[2], num_strengths=2), r"from 0 to 1, .*; got \[2.0\] at positions \[0\]"),
    (lambda: Preference([[0, 1]], strength=[-1]), "strength must be integers from 0 to 1"),
    (lambda: Preference([[0, 1]], strength=["much"]), "strength must be a tensor or a list"),
    (lambda: Preference([[0, 1]], strength=[0], num_strengths=1), "num_strengths must be an integer"),
    (lambda: Preference([[0, 1]], num_strengths=2), "num_strengths counts the steps of strength"),
    (lambda: GradedPreference([[0, 1]]), "GradedPreference needs a strength"),
    (lambda: Vote([[0, 1]], ["left"]), r"answers must be a list of 'first', .*; got \['left'\]"),
    (lambda: Vote([[0, 1]], None), "answers must be a list of 'first', .*; got None"),
    (lambda: Vote([[0, 1], [1, 2]], ["tie", NAN]), r"answers contains NaN at positions \[1\]"),
    (lambda: Vote([], [], buttons=3), r"buttons must be some of 'first', .*; got \[3\]"),
    (lambda: Vote([[0, 1]], "first"), "also for a single pair; got 'first'"),
    (lambda: Vote([[0, 1]], [5]), "answers must be integers from 0 to 4, the numbers of 'first'"),
    (lambda: Vote([[0, 1], [1, 2]], ["tie"]), "answers must have one entry for each of the 2 pairs"),
    (lambda: Vote([[0, 1]], ["both bad"], buttons=["first", "second", "tie"]), r"among the buttons .*; got \['both"),
    (lambda: Vote([], [], buttons=["first", "skip"]), "buttons must be some of"),
    (lambda: Vote([], [], buttons=["first", "tie"]), "must hold 'first' and 'second'"),
    (lambda: Vote([], [], buttons=["first", "second", "both bad"]), "leave no answer where neither item is better"),
    (lambda: Choice(tensor([0, 1])), "options must be a m x k"),
    (lambda: Ranking(tensor([[0, 1, 2]]), ranks=tensor([[0, 1]])), "ranks must have the shape of items"),
    (lambda: Ranking(tensor([[0, 1, 2]]), ranks=tensor([[0, 2, 1]])), "ranks must not decrease"),
    (lambda: LabelPreference(tensor([[0, 3]]), 3), "labels must be from 0 to 2; got 3"),
    (lambda: LabelPreference(tensor([[1, 1]]), 3), "labels compares a label with itself"),
    (lambda: LabelPreference(tensor([[0, 1], [1, 2]]), 3, event=tensor([0])), "event must have one entry"),
    (lambda: LabelPreference.from_classes(tensor([0, 3]), 3), "classes must be integers from 0 to 2; got"),
    (lambda: Validity([0, 2]), "valid must be 0 or 1"),
    (lambda: AffineProbit(torch.ones(2), 0.0, EYE), "weight must be an m x n"),
    (lambda: AffineProbit(torch.ones(2, 2) > 0, 0.0, EYE), "weight must be an m x n tensor"),
    (lambda: AffineProbit([[1.0, 0.0], [0.0, 0.0]], 0.0, EYE), r"weight is zero in all of rows \[1\]"),
    (lambda: AffineProbit(EYE, 0.0, [0.1, 0.2]), r"torch\.diag\(variances\)"),
    (lambda: Ordinal([1, 5, 3], 5), "They count from 0: subtract 1"),
    (lambda: Numeric(1.5), r"Write values=\[1.5\] for a single one"),
    (lambda: Binary(1), r"Write labels=\[1\] for a single one"),
    (lambda: Numeric([1.0], index=3), r"Write index=\[3\] for a single one"),
    (lambda: Preference((0, 1)), r"Write pairs=\[\[0, 1\]\] for a single one"),
    (lambda: Choice([2, 0, 1]), r"Write options=\[\[2, 0, 1\]\] for a single one"),
    (lambda: Numeric([1.0], index=[True, False]), r"mask\.nonzero"),
    (lambda: Numeric({0: 1.0}), r"values must be a tensor or a list of numbers.*got dict"),
    (lambda: Numeric([1.0], index={0}), r"index must be a tensor or a list.*got set"),
    (lambda: Binary(["yes", "no"]), "labels must be a tensor or a list of numbers"),
    (lambda: Numeric([1.0, None]), r"values must be .* none missing"),
    (lambda: Numeric(np.array(["2020-01-01"], dtype="datetime64[ns]")), "are not numbers"),
    (lambda: Preference([[0, 1], [0, 1, 2]]), r"pairs must be .* all rows of one length"),
    (lambda: Ranking([[0, 1]], ranks=[[0.0, 1.0]]), "ranks must hold integer ranks; .* Round them"),
    (lambda: Ranking([[0, 1, 2]], ranks=[[0, 1, -1]]), "must not be negative, except -1 for padding"),
    (lambda: AffineProbit(EYE, torch.zeros(3), EYE), "bias must have one entry"),
    (lambda: AffineProbit(EYE, INF, EYE), "bias must be finite"),
    (lambda: AffineProbit(EYE, 0.0, EYE, 1.0, 0.0), "lower must be below"),
    (lambda: AffineProbit(EYE, 0.0, torch.eye(3)), "covariance must be 2 x 2"),
    (lambda: AffineProbit(EYE, 0.0, NAN * EYE), "covariance must be 2 x 2 and finite"),
    (lambda: AffineProbit(EYE, 0.0, tensor([[1.0, 0.5], [0.0, 1.0]])), "covariance must be symmetric"),
    (lambda: AffineProbit(EYE, 0.0, tensor([[1.0, 2.0], [2.0, 1.0]])), "covariance must be positive semi-definite"),
    (lambda: Choice([[0, 1, 2], [-1, 1, 2]]), r"padded with -1 at the end of a row only; see rows \[1\]"),
    (lambda: Ranking([[0, 1, 2], [0, 1, 0]]), r"items names a point twice in rows \[1\]"),
    (lambda: Choice([[0, 1], [-1, -1]]), r"at least two points in every row; see rows \[1\]"),
    (lambda: Preference([[0, 1], [1, 2]], count=[2, 0]), r"positive and finite; it is 0 for answers \[1\]"),
    (lambda: Choice([[0, 1]], count=[1.5]), "count must hold whole numbers for Choice"),
    (lambda: Ordinal([0, 1], 2, count=[3]), "count must have one entry for each of the 2 answers; got 1"),
    (lambda: Preference([[0, 1]], count=10**9), "count adds up to 1e.09 answers"),
    (lambda: Binary([1, 0], count=[10**7, 1]), "count adds up to"),
    (lambda: Binary([1], count=True), "count must hold real numbers; got dtype torch.bool"),
    (lambda: Numeric([1.0], noise=True), "noise must hold real numbers"),
    (lambda: AffineProbit(EYE, 1j, EYE), "bias must hold real numbers"),
    (lambda: AffineProbit(EYE, 0.0, EYE + 0j), "covariance must be 2 x 2"),
    (lambda: Choice([[]]), "options must name at least two points"),
    (lambda: Preference([[0, 1]], [10**9]), "strength must be integers from 0 to 9999"),
    (lambda: Vote([[0, 1]], ["tie", ["x"]]), "answers must be a tensor or a list"),
    (lambda: Vote([[0, 1]], ["tie"], buttons=[["x"]]), "buttons must be some of"),
    (lambda: Slope([0, 1], [1]), "dims, signs and index must have one entry"),
    (lambda: Slope([0, 1], 1, index=[0, 1, 2]), "dims, signs and index must have one entry"),
    (lambda: Slope(0, [1, 0]), "signs must be 1"),
    (lambda: Slope(0, [2]), "signs must be 1"),
    (lambda: Slope(0, [True]), "signs must be 1"),
    (lambda: Slope([-1], [1]), "dims must not hold negative"),
    (lambda: Slope(0.5, 1), "dims must hold integer"),
    (lambda: Numeric(None), "values"),
    (lambda: Ordinal([0, 1], NAN), "num_grades"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_bad_input_names_the_argument(build, message):
    with pytest.raises(InputDataError, match=message):
        build()


@pytest.mark.parametrize(("grades", "num_grades"), [([1, 2, 3, 4], 5), ([4, 1, 4, 3, 3], 5), ([3, 2, 1], 4)])
def test_grades_that_may_have_been_counted_from_one_are_warned_of(grades, num_grades):
    with pytest.warns(InputDataWarning, match="counted from 1"):
        Ordinal(grades, num_grades)


@pytest.mark.parametrize(("grades", "num_grades"), [([0, 4, 4, 4, 3], 5), ([4, 3], 5), ([1, 2, 2, 1, 2], 3), ([], 5)])
def test_other_grades_are_not(grades, num_grades):
    Ordinal(grades, num_grades)  # a warning would be an error


COLUMN = pd.Series([1.5, 0.5], index=[7, 3])


@pytest.mark.parametrize(
    "values",
    [
        COLUMN,
        COLUMN.to_frame(),
        COLUMN.astype(object),
        COLUMN.to_numpy(),
        COLUMN.to_numpy()[::-1].copy()[::-1],
        COLUMN.to_numpy().astype(">f8"),
        COLUMN.to_numpy().astype(np.float32),
        list(COLUMN),
        tuple(COLUMN),
        dict(COLUMN).values(),
        [tensor(1.5), tensor(0.5)],
        tensor([1.5, 0.5], dtype=torch.float64, requires_grad=True),
    ],
    ids=lambda values: type(values).__name__,
)
def test_arrays_and_columns_are_taken(values):
    given = Numeric(values).values
    assert given.tolist() == [1.5, 0.5]
    assert given.dtype == torch.float64
    assert not given.requires_grad


def test_arrays_of_indices_are_taken_and_not_shared():
    pairs = np.array([[0, 1], [2, 1]])
    observation = Preference(pairs)
    pairs[:] = 5
    assert observation.pairs.tolist() == [[0, 1], [2, 1]]
    assert Preference(pd.DataFrame({"winner": [0], "loser": [1]})).pairs.tolist() == [[0, 1]]
    assert Numeric([], index=[]).index.tolist() == []
    assert Numeric([1.0, 2.0], index=(i for i in (4, 2))).index.tolist() == [4, 2]
    assert Binary(pd.Series([True, False])).labels.tolist() == [True, False]
    assert Ordinal([0, 1], np.int64(3)).num_grades == 3


def test_short_rows_of_lists_are_padded():
    assert Choice([[0, 1], [2, 0, 1]]).options.tolist() == [[0, 1, -1], [2, 0, 1]]
    ranking = Ranking([tensor([0, 1]), tensor([2, 0, 1])], ranks=[[0, 1], [0, 0, 1]])
    assert ranking.items.tolist() == [[0, 1, -1], [2, 0, 1]]
    assert sorted(ranking.duels.tolist()) == [[0, 1], [0, 1], [2, 1]]
    padded = Ranking([[0, 1, -1], [2, 0, 1]], ranks=[[0, 1, -1], [0, 0, 1]])
    assert torch.equal(padded.duels, ranking.duels)


def test_integers_and_single_bounds_are_taken():
    assert AffineProbit([[1, 0]], 0, [[1]]).weight.dtype == torch.float64
    assert Censored(0, [1, 2]).lower.tolist() == [0.0, 0.0]
    assert Censored([1, 2], INF).upper.tolist() == [INF, INF]


def test_nothing_seen_yet_has_the_shape_of_no_rows():
    assert Preference([]).pairs.shape == Tie([]).pairs.shape == (0, 2)
    assert Binary([]).labels.shape == (0,)


def test_strengths_counted_from_one_are_told():
    with pytest.warns(InputDataWarning, match="subtract 1 if they count from 1"):
        counted = Preference([[0, 1], [2, 1], [0, 2]], strength=[1, 2, 1])
    assert Preference([[0, 1], [2, 1]], strength=[1, 2]).num_strengths == 3  # too few to tell
    assert counted.num_strengths == 3
    assert Preference([[0, 1], [2, 1]], strength=[1, 2], num_strengths=3).strength.tolist() == [1, 2]
    assert Preference([[0, 1], [2, 1]], strength=[1, 0]).num_strengths == 2
