"""The one door for what names inputs."""

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.inputs.columns import as_column, as_columns

NAMES = ["length", "width", "-1"]


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        ([0, -1], [0, 2]),
        ((2, 1), [2, 1]),
        (-3, [0]),
        ("width", [1]),
        (["-1", 0], [2, 0]),
        (torch.tensor([1, -3]), [1, 0]),
        (torch.tensor(2), [2]),
        (np.array([-1, 0]), [2, 0]),
        (range(2), [0, 1]),
        ({-2: 0.5, "length": 1.0}, [1, 0]),
        ([np.int64(-1), torch.tensor(0)], [2, 0]),
        ([], []),
    ],
)
def test_numbers_and_names_become_columns(values, columns):
    assert as_columns(values, 3, "dims", NAMES) == columns


@pytest.mark.parametrize("value", [3, -4, 0.0, 1.5, True, None, "depth", torch.tensor(1.0), [0]])
def test_what_names_no_input_is_refused(value):
    with pytest.raises(InputDataError, match="dims is about inputs 0 to 2, length, width, -1; got"):
        as_column(value, 3, "dims", NAMES)


@pytest.mark.parametrize("values", [[0, -3], [1, "width"], torch.tensor([2, 2])])
def test_an_input_named_twice_is_refused(values):
    with pytest.raises(InputDataError, match=r"dims names input \d more than once"):
        as_columns(values, 3, "dims", NAMES)
