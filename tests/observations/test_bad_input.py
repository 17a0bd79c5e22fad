"""Observations are checked when built: a clear error that names the argument."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from observation_cases import EYE, INF

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

NAN = math.nan

# what is wrong, how it is built, and what the message must say
BAD = {
    "values with NaN": (lambda: Numeric([0.0, NAN]), r"values contains NaN at positions \[1\]"),
    "infinite values": (lambda: Numeric([0.0, INF]), "values must be finite"),
    "values of two dimensions": (lambda: Numeric(torch.zeros(2, 3)), "values must be an m-dim or m x 1"),
    "complex values": (lambda: Numeric(torch.zeros(2, dtype=torch.complex64)), "values must hold real numbers"),
    "boolean values": (lambda: Numeric(torch.tensor([True])), "values must hold real numbers"),
    "negative noise": (lambda: Numeric([0.0, 1.0], noise=[0.1, -0.1]), "noise must hold one finite non-negative"),
    "infinite noise": (lambda: Numeric([0.0], noise=INF), "noise must hold one finite"),
    "noise with NaN": (lambda: Numeric([0.0], noise=[NAN]), "noise contains NaN"),
    "noise too short": (lambda: Numeric([0.0, 1.0], noise=[0.1]), "noise must hold one finite"),
    "index too short": (lambda: Numeric([0.0, 1.0], index=torch.tensor([0])), "index must have one entry"),
    "negative index": (lambda: Numeric([0.0], index=torch.tensor([-1])), "index must not hold negative"),
    "index of floats": (lambda: Numeric([0.0], index=torch.tensor([0.0])), "index must hold integer"),
    "index of booleans": (lambda: Numeric([0.0], index=torch.tensor([True])), "index must hold integer"),
    "index of two dimensions": (lambda: Numeric([0.0], index=torch.tensor([[0]])), "index must be a m-dim"),
    "labels of two": (lambda: Binary([0, 2]), r"labels must be 0 or 1; got \[2.0\] at positions \[1\]"),
    "labels of minus one": (lambda: Binary([-1, 1]), "labels must be 0 or 1"),
    "labels with NaN": (lambda: Binary([NAN, 1.0]), "labels contains NaN"),
    "labels of two dimensions": (lambda: Binary(torch.ones(2, 2) > 0), "labels must be an m-dim"),
    "label index": (lambda: Binary([1], index=torch.tensor([0, 1])), "index must have one entry"),
    "grades too large": (lambda: Ordinal([0, 3], 3), r"grades must be integers from 0 to 2; got \[3.0\]"),
    "negative grades": (lambda: Ordinal([0, -1], 3), "grades must be integers from 0 to 2"),
    "broken grades": (lambda: Ordinal([0.5], 3), "grades must be integers"),
    "one grade": (lambda: Ordinal([0], 1), "num_grades must be an integer from 2 to 10000"),
    "broken number of grades": (lambda: Ordinal([0], 2.5), "num_grades must be an integer"),
    "bounds crossed": (lambda: Censored([1.0, 0.0], [0.0, 1.0]), r"lower must be below upper.*\[0\]"),
    "bounds equal": (lambda: Censored([1.0], [1.0]), "Give exact readings as Numeric"),
    "bounds of two lengths": (lambda: Censored([1.0], [2.0, 3.0]), "lower and upper must have equal shapes"),
    "lower bound NaN": (lambda: Censored([NAN], [1.0]), "lower contains NaN"),
    "upper bound NaN": (lambda: Censored([0.0], [NAN]), "upper contains NaN"),
    "pairs of three": (lambda: Preference(torch.zeros(1, 3, dtype=torch.long)), "pairs must be m x 2"),
    "pairs of one dimension": (lambda: Preference(torch.tensor([0, 1])), "pairs must be a m x 2 tensor"),
    "pairs of floats": (lambda: Preference(torch.rand(1, 2)), "pairs must hold integer indices"),
    "negative pairs": (lambda: Preference(torch.tensor([[0, -1]])), "pairs must not hold negative"),
    "a point against itself": (
        lambda: Preference(torch.tensor([[0, 1], [2, 2]])),
        r"pairs compares a point with itself in rows \[1\]",
    ),
    "a tie with itself": (lambda: Tie(torch.tensor([[2, 2]])), "pairs compares a point with itself"),
    "a strength too few": (
        lambda: Preference([[0, 1], [1, 2]], strength=[0]),
        "strength must have one entry for each of the 2 pairs; got 1",
    ),
    "a strength too large": (
        lambda: Preference([[0, 1]], strength=[2], num_strengths=2),
        r"strength must be integers from 0 to 1, .*; got \[2.0\] at positions \[0\]",
    ),
    "a negative strength": (lambda: Preference([[0, 1]], strength=[-1]), "strength must be integers from 0 to 1"),
    "half a strength": (lambda: Preference([[0, 1]], strength=[0.5]), "strength must be integers from 0 to 1"),
    "strengths in words": (lambda: Preference([[0, 1]], strength=["much"]), "strength must be a tensor or a list"),
    "one step": (lambda: Preference([[0, 1]], strength=[0], num_strengths=1), "num_strengths must be an integer"),
    "steps of nothing": (lambda: Preference([[0, 1]], num_strengths=2), "num_strengths counts the steps of strength"),
    "a graded duel without a grade": (lambda: GradedPreference([[0, 1]]), "GradedPreference needs a strength"),
    "an unknown vote": (lambda: Vote([[0, 1]], ["left"]), r"answers must be a sequence of 'first', .*; got \['left'\]"),
    "no votes at all": (lambda: Vote([[0, 1]], None), "answers must be a sequence of 'first', .*; got None"),
    "a vote that is missing": (
        lambda: Vote([[0, 1], [1, 2]], ["tie", float("nan")]),
        r"answers must be .*; got \[nan\]",
    ),
    "buttons by number": (lambda: Vote([], [], buttons=3), "buttons must be some of 'first', .*; got 3"),
    "one vote": (lambda: Vote([[0, 1]], "first"), r"Write answers=\['first'\] for a single one"),
    "a vote of number five": (lambda: Vote([[0, 1]], [5]), "or their numbers from 0 to 4"),
    "votes too few": (lambda: Vote([[0, 1], [1, 2]], ["tie"]), "answers must have one entry for each of the 2 pairs"),
    "a vote that is no button": (
        lambda: Vote([[0, 1]], ["both bad"], buttons=["first", "second", "tie"]),
        r"answers must be among the buttons .*; got \['both bad'\]",
    ),
    "an unknown button": (lambda: Vote([], [], buttons=["first", "skip"]), "buttons must be some of"),
    "a page without a button": (lambda: Vote([], [], buttons=["first", "tie"]), "must hold 'first' and 'second'"),
    "a page that leaves a gap": (
        lambda: Vote([], [], buttons=["first", "second", "both bad"]),
        "leave no answer where neither item is better",
    ),
    "a choice of one": (lambda: Choice(torch.tensor([[0, -1]])), "options must name at least two points"),
    "padding first": (lambda: Choice(torch.tensor([[0, -1, 2]])), "options must be padded with -1 at the end"),
    "options of one dimension": (lambda: Choice(torch.tensor([0, 1])), "options must be a m x k"),
    "options below -1": (lambda: Choice(torch.tensor([[0, 1, -2]])), "options must not hold negative"),
    "a ranking of one": (lambda: Ranking(torch.tensor([[0]])), "items must name at least two points"),
    "a ranking with a repeat": (lambda: Ranking(torch.tensor([[0, 1, 1]])), "items names a point twice"),
    "ranks of another shape": (
        lambda: Ranking(torch.tensor([[0, 1, 2]]), ranks=torch.tensor([[0, 1]])),
        "ranks must have the shape of items",
    ),
    "ranks that decrease": (
        lambda: Ranking(torch.tensor([[0, 1, 2]]), ranks=torch.tensor([[0, 2, 1]])),
        "ranks must not decrease",
    ),
    "a label out of range": (lambda: LabelPreference(torch.tensor([[0, 3]]), 3), "labels must be from 0 to 2; got 3"),
    "a label against itself": (
        lambda: LabelPreference(torch.tensor([[1, 1]]), 3),
        "labels compares a label with itself",
    ),
    "events too few": (
        lambda: LabelPreference(torch.tensor([[0, 1], [1, 2]]), 3, event=torch.tensor([0])),
        "event must have one entry",
    ),
    "a class out of range": (
        lambda: LabelPreference.from_classes(torch.tensor([0, 3]), 3),
        "classes must be from 0 to 2; got 3",
    ),
    "classes of floats": (lambda: LabelPreference.from_classes(torch.tensor([0.0]), 3), "classes must hold integer"),
    "class index": (
        lambda: LabelPreference.from_classes(torch.tensor([0, 1]), 3, index=torch.tensor([0])),
        "index must have one entry",
    ),
    "validity of two": (lambda: Validity([0, 2]), "valid must be 0 or 1"),
    "weight of one dimension": (lambda: AffineProbit(torch.ones(2), 0.0, EYE), "weight must be an m x n"),
    "weight of booleans": (lambda: AffineProbit(torch.ones(2, 2) > 0, 0.0, EYE), "weight must be an m x n tensor"),
    "a row of zeros": (
        lambda: AffineProbit([[1.0, 0.0], [0.0, 0.0]], 0.0, EYE),
        r"weight is zero in all of rows \[1\], which then do not depend",
    ),
    "a covariance of variances": (lambda: AffineProbit(EYE, 0.0, [0.1, 0.2]), r"torch\.diag\(variances\)"),
    "stars": (lambda: Ordinal([1, 5, 3], 5), "Grades count from 0: subtract 1"),
    "one number": (lambda: Numeric(1.5), r"Write values=\[1.5\] for a single one"),
    "one label": (lambda: Binary(1), r"Write labels=\[1\] for a single one"),
    "one index": (lambda: Numeric([1.0], index=3), r"Write index=\[3\] for a single one"),
    "one duel": (lambda: Preference((0, 1)), r"Write pairs=\[\[0, 1\]\] for a single one"),
    "one choice": (lambda: Choice([2, 0, 1]), r"Write options=\[\[2, 0, 1\]\] for a single one"),
    "a mask for an index": (lambda: Numeric([1.0], index=[True, False]), r"mask\.nonzero"),
    "values in a dictionary": (lambda: Numeric({0: 1.0}), r"values must be a tensor or a list of numbers.*got dict"),
    "an index without order": (lambda: Numeric([1.0], index={0}), r"index must be a tensor or a list.*got set"),
    "labels in words": (lambda: Binary(["yes", "no"]), "labels must be a tensor or a list of numbers"),
    "a missing value": (lambda: Numeric([1.0, None]), r"values must be .* none missing"),
    "dates": (lambda: Numeric(np.array(["2020-01-01"], dtype="datetime64[ns]")), "are not numbers"),
    "pairs and triples": (lambda: Preference([[0, 1], [0, 1, 2]]), r"pairs must be .* all rows of one length"),
    "ranks of floats": (lambda: Ranking([[0, 1]], ranks=[[0.0, 1.0]]), "ranks must hold integer ranks; .* Round them"),
    "ranks missing": (lambda: Ranking([[0, 1, 2]], ranks=[[0, 1, -1]]), "must not be negative, except -1 for padding"),
    "number of labels of classes": (lambda: LabelPreference.from_classes([0, 1], 2.5), "num_labels must be an integer"),
    "weight with NaN": (lambda: AffineProbit(NAN * EYE, 0.0, EYE), "weight must be .* of finite numbers"),
    "bias too long": (lambda: AffineProbit(EYE, torch.zeros(3), EYE), "bias must have one entry"),
    "infinite bias": (lambda: AffineProbit(EYE, INF, EYE), "bias must be finite"),
    "bias with NaN": (lambda: AffineProbit(EYE, torch.tensor([NAN, 0.0]), EYE), "bias contains NaN"),
    "affine bounds crossed": (lambda: AffineProbit(EYE, 0.0, EYE, 1.0, 0.0), "lower must be below"),
    "covariance of another shape": (lambda: AffineProbit(EYE, 0.0, torch.eye(3)), "covariance must be 2 x 2"),
    "covariance with NaN": (lambda: AffineProbit(EYE, 0.0, NAN * EYE), "covariance must be 2 x 2 and finite"),
    "covariance not symmetric": (
        lambda: AffineProbit(EYE, 0.0, torch.tensor([[1.0, 0.5], [0.0, 1.0]])),
        "covariance must be symmetric",
    ),
    "covariance not positive": (
        lambda: AffineProbit(EYE, 0.0, torch.tensor([[1.0, 2.0], [2.0, 1.0]])),
        "covariance must be positive semi-definite",
    ),
    "padding before an option": (
        lambda: Choice([[0, 1, 2], [-1, 1, 2]]),
        r"options must be padded with -1 at the end of a row only; see rows \[1\]",
    ),
    "an option in a ranking twice": (
        lambda: Ranking([[0, 1, 2], [0, 1, 0]]),
        r"items names a point twice in rows \[1\]",
    ),
    "nothing but padding": (lambda: Choice([[0, 1], [-1, -1]]), r"at least two points in every row; see rows \[1\]"),
    "a count of none": (
        lambda: Preference([[0, 1], [1, 2]], count=[2, 0]),
        r"count must be positive and finite; it is 0 for answers \[1\]",
    ),
    "a negative count": (
        lambda: Choice([[0, 1]], count=[-1]),
        "count must be positive and finite; it is -1",
    ),
    "a broken count": (lambda: Choice([[0, 1]], count=[1.5]), "count must hold whole numbers for Choice"),
    "counts too few": (
        lambda: Ordinal([0, 1], 2, count=[3]),
        "count must have one entry for each of the 2 answers; got 1",
    ),
    "a count of nothing": (lambda: Ranking([[0, 1]], count=0), "count must be positive and finite"),
    "a count of a thousand million": (lambda: Preference([[0, 1]], count=10**9), "count adds up to 1e.09 answers"),
    "counts in sum too many": (lambda: Binary([1, 0], count=[10**7, 1]), "count adds up to"),
    "a true count": (lambda: Binary([1], count=True), "count must hold real numbers; got dtype torch.bool"),
    "a true variance": (lambda: Numeric([1.0], noise=True), "noise must hold real numbers"),
    "a complex variance": (lambda: Numeric([1.0], noise=1j), "noise must hold real numbers"),
    "a complex bias": (lambda: AffineProbit(EYE, 1j, EYE), "bias must hold real numbers"),
    "a complex covariance": (lambda: AffineProbit(EYE, 0.0, EYE + 0j), "covariance must be 2 x 2"),
    "a choice of nothing": (lambda: Choice([[]]), "options must name at least two points"),
    "a thousand million grades": (lambda: Ordinal([0], 10**9), "num_grades must be an integer from 2 to 10000"),
    "a strength of a thousand million": (lambda: Preference([[0, 1]], [10**9]), "strength must be an integer from 0"),
    "a list as an answer": (lambda: Vote([[0, 1]], ["tie", ["x"]]), "answers must be a sequence"),
    "a list as a button": (lambda: Vote([[0, 1]], ["tie"], buttons=[["x"]]), "buttons must be some of"),
    "slopes of lengths that disagree": (lambda: Slope([0, 1], [1]), "dims, signs and index must have one entry"),
    "slopes of an index too long": (
        lambda: Slope([0, 1], 1, index=[0, 1, 2]),
        "dims, signs and index must have one entry",
    ),
    "a sign of zero": (lambda: Slope(0, [1, 0]), "signs must be 1"),
    "a sign of two": (lambda: Slope(0, [2]), "signs must be 1"),
    "boolean signs": (lambda: Slope(0, [True]), "signs must be 1"),
    "signs of two dimensions": (lambda: Slope(0, [[1]]), "signs must be 1"),
    "a negative dimension": (lambda: Slope([-1], [1]), "dims must not hold negative"),
    "a broken dimension": (lambda: Slope(0.5, 1), "dims must hold integer"),
    "dims of two dimensions": (lambda: Slope([[0]], [1]), "dims must be a m-dim"),
    "affine index": (lambda: AffineProbit(EYE, 0.0, EYE, index=torch.tensor([0])), "index must have one entry"),
    "no values": (lambda: Numeric(None), "values"),
    "no pairs": (lambda: Preference(None), "pairs"),
    "grades of no number": (lambda: Ordinal([0, 1], NAN), "num_grades"),
    "half a label": (lambda: LabelPreference(torch.tensor([[0, 1]]), 2.5), "num_labels"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_the_argument(name):
    build, message = BAD[name]
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
        [torch.tensor(1.5), torch.tensor(0.5)],
        torch.tensor([1.5, 0.5], dtype=torch.float64, requires_grad=True),
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
    ranking = Ranking([torch.tensor([0, 1]), torch.tensor([2, 0, 1])], ranks=[[0, 1], [0, 0, 1]])
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
