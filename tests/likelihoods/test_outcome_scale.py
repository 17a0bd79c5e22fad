"""The scale of outcomes: positive and finite."""

import math

import pytest
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.likelihoods import OutcomeScale


@pytest.mark.parametrize("scale", [-1.0, 0.0, math.nan, math.inf, "1", True])
def test_scales_are_positive_and_finite(scale):
    with pytest.raises(InputDataError, match="scale must be"):
        OutcomeScale(0.0, scale)


@pytest.mark.parametrize("location", [math.nan, math.inf, "0", None])
def test_locations_are_finite(location):
    with pytest.raises(InputDataError, match="location must be a finite number"):
        OutcomeScale(location, 1.0)
