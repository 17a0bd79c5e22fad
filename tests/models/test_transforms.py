"""What a model learns from its transforms."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.transforms.outcome import Standardize

from botorch_skewgp.models.transforms import learn_outcome_scale
from botorch_skewgp.observations import Censored, Numeric, Preference


def test_numbers_alone_are_learned_from():
    values = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    kinds = [Numeric(values[:3]), Censored([0.0], [100.0]), Preference([[0, 1]]), Numeric(values[3:])]
    scale = learn_outcome_scale(kinds, Standardize(m=1))
    assert scale.location == pytest.approx(4.0)
    assert scale.scale == pytest.approx(values.std().item())


def test_overflow_is_said():
    values = torch.tensor([3e38, -3e38, 3e38])
    with pytest.raises(InputDataError, match=r"too large to be standardised in torch\.float32"):
        learn_outcome_scale([Numeric(values)], Standardize(m=1))
