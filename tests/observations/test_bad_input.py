"""Observations are checked when built: a clear error that names the argument."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from observation_cases import EYE, INF

from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    Choice,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
    Tie,
    Validity,
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
    "one grade": (lambda: Ordinal([0], 1), "num_grades must be an integer of at least 2"),
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
    "a choice of one": (lambda: Choice(torch.tensor([[0, -1]])), "options must name at least two points"),
    "a choice with a repeat": (lambda: Choice(torch.tensor([[0, 1, 0]])), "options names a point twice"),
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
        "labels compares a point with itself",
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
    "weight of integers": (lambda: AffineProbit(torch.ones(2, 2).long(), 0.0, EYE), "weight must be an m x n floating"),
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
    "affine index": (lambda: AffineProbit(EYE, 0.0, EYE, index=torch.tensor([0])), "index must have one entry"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_the_argument(name):
    build, message = BAD[name]
    with pytest.raises(InputDataError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Numeric(None), "values"),
        (lambda: Preference(None), "pairs"),
        (lambda: Choice([[0, 1], [0, 1, 2]]), "options"),
        (lambda: Ordinal([0, 1], NAN), "num_grades"),
        (lambda: LabelPreference(torch.tensor([[0, 1]]), 2.5), "num_labels"),
    ],
)
def test_what_is_no_tensor_at_all_names_the_argument(build, message):
    with pytest.raises(InputDataError, match=message):
        build()
