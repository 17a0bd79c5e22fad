"""Equal points, against comparing each with all before it; and rows that are selected."""

import pytest
import torch

from botorch_skewgp.rows import DenseRows, Rows
from botorch_skewgp.rows.columns import first_of_equal
from botorch_skewgp.truncated.step_factor import Heights


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


@pytest.mark.parametrize("which", [torch.tensor([True, False, True]), torch.tensor([2, 0])])
@pytest.mark.parametrize("kind", [Rows, DenseRows])
def test_rows_are_selected_with_all_that_they_have(kind, which):
    values = torch.arange(18, dtype=torch.float64).view(6, 3)
    pairs, index = torch.stack([values[0], values[1]], -1), torch.tensor([[0, 1]]).expand(3, 2)
    parts = {"noise_root": pairs + 1, "count": values[3], "block": torch.tensor([4, 5, 6])}
    heights = Heights(values[4], values[5], values[0])
    rows = kind(index, pairs, *values[:4], **parts, heights=heights)
    some = rows.select(which)
    for name in ("index", "coefficient", "bias", "lower", "upper", "noise", "noise_root", "count", "block"):
        assert torch.equal(getattr(some, name), getattr(rows, name)[which]), name
    assert some.reads is None
    for name in ("outside", "gain", "answer"):
        assert torch.equal(getattr(some.heights, name), getattr(heights, name)[which])
