"""In which units the transformed family sees outcomes."""

import math

import pytest
import torch

from botorch_skewgp.transformed.outcomes import outcome_units
from botorch_skewgp.warpings import Affine, BoxCox


def units(*values, warping=None):
    return outcome_units(torch.tensor(values, dtype=torch.double), Affine() if warping is None else warping)


def test_an_outlier_does_not_change_the_units():
    assert units(0.0, 1.0, 2.0, 3.0, 1e6) == pytest.approx((2.0, 2 / 1.349))


def test_quartiles_that_coincide_leave_the_standard_deviation():
    assert units(0.0, 0.0, 0.0, 0.0, 5.0) == pytest.approx((0.0, math.sqrt(5)))


def test_positive_outcomes_are_measured_by_their_geometric_mean():
    assert units(1.0, 10.0, 100.0, warping=BoxCox()) == pytest.approx((0.0, 10.0))


def test_squares_of_outcomes_may_overflow():
    assert units(0.0, 1e200, 2e200, 3e200, 4e200).scale == pytest.approx(2e200 / 1.349)
