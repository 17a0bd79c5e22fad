"""What cannot be a truncated normal is refused."""

import math

import pytest
import torch

from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF = math.inf


def arguments(m=3, **changes):
    values = {
        "mean": torch.zeros(m, dtype=torch.float64),
        "prior": torch.eye(m, dtype=torch.float64) + 0.5,
        "lower": torch.zeros(m, dtype=torch.float64),
        "upper": torch.full((m,), INF, dtype=torch.float64),
        "noise": torch.full((m,), 0.1, dtype=torch.float64),
    }
    return values | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prior": torch.eye(4)}, "prior must be that of 3 rows to match mean; got 4"),
        ({"prior": torch.ones(3)}, r"prior must be m x m if it is a covariance; got \(3,\)"),
        ({"mean": torch.zeros(2, 3, dtype=torch.float64)}, r"of a single distribution; got shape \(2, 3\)"),
        ({"lower": torch.zeros(2, dtype=torch.float64)}, r"lower must have mean's shape \(3,\); got \(2,\)"),
        ({"upper": torch.ones(1, 3, dtype=torch.float64)}, r"upper must have mean's shape \(3,\); got \(1, 3\)"),
        ({"noise": torch.ones(3, dtype=torch.float32)}, "noise must have mean's dtype and device"),
        ({"mean": torch.zeros(3)}, "in double precision; got a mean of torch.float32"),
        ({"lower": torch.tensor([0.0, math.nan, 0.0], dtype=torch.float64)}, "lower contains NaN"),
        ({"noise": torch.tensor([0.0, math.nan, 0.0], dtype=torch.float64)}, "noise contains NaN"),
        ({"mean": torch.tensor([0.0, INF, 0.0], dtype=torch.float64)}, "mean contains NaN or infinite"),
        ({"mean": torch.tensor([0.0, math.nan, 0.0], dtype=torch.float64)}, "mean contains NaN or infinite"),
        ({"upper": torch.zeros(3, dtype=torch.float64)}, "strictly below its entry of upper"),
        ({"noise": torch.tensor([0.1, -0.1, 0.1], dtype=torch.float64)}, "must not be negative"),
    ],
)
def test_invalid(changes, message):
    with pytest.raises(ValueError, match=message):
        TruncatedNormal(**arguments(**changes))
