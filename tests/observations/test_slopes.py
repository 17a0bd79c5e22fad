"""Slopes: what may be given as a single value."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.observations import Slope

BAD = {
    "lengths that disagree": (lambda: Slope([0, 1], [1]), "dims, signs and index must have one entry"),
    "index too long": (lambda: Slope([0, 1], 1, index=[0, 1, 2]), "dims, signs and index must have one entry"),
    "a sign of zero": (lambda: Slope(0, [1, 0]), "signs must be 1"),
    "a sign of two": (lambda: Slope(0, [2]), "signs must be 1"),
    "boolean signs": (lambda: Slope(0, [True]), "signs must be 1"),
    "signs of two dimensions": (lambda: Slope(0, [[1]]), "signs must be 1"),
    "a negative dimension": (lambda: Slope([-1], [1]), "dims must not hold negative"),
    "a broken dimension": (lambda: Slope(0.5, 1), "dims must hold integer"),
    "dims of two dimensions": (lambda: Slope([[0]], [1]), "dims must be a m-dim"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_the_argument(name):
    build, message = BAD[name]
    with pytest.raises(InputDataError, match=message):
        build()


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
