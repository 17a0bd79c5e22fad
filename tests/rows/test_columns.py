"""Equal points, against comparing each with all before it."""

import pytest
import torch

from botorch_skewgp.rows.columns import first_of_equal


@pytest.mark.parametrize(
    "items",
    [
        [[0.1, 2.0], [0.2, 2.0], [0.3, 2.0]],
        [[0.1, 2.0], [0.1, 3.0], [0.1, 2.0], [0.2, 3.0]],
        [[0.1], [0.1], [-0.1], [0.1]],
        [],
    ],
)
def test_first_of_equal(items):
    points = torch.tensor(items, dtype=torch.float64).reshape(len(items), -1 if items else 2)
    assert first_of_equal(points).tolist() == [items.index(item) for item in items]
