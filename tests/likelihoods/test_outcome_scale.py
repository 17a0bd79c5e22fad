"""The scale of outcomes: positive and finite."""

import math

import pytest
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.likelihoods import OutcomeScale


@pytest.mark.parametrize(("location", "scale"), [(0, -1.0), (0, 0.0), (0, math.nan), (0, math.inf), (math.nan, 1)])
def test_outcome_scales_are_positive_and_finite(location, scale):
    with pytest.raises(InputDataError, match="positive finite scale"):
        OutcomeScale(location, scale)
