"""Prices, the same for all hosts."""

import math
from decimal import Decimal

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.hosts.questions import as_price


@pytest.mark.parametrize("given", [3, 3.0, np.int64(3), np.float32(3), np.array(3), torch.tensor(3), True + 2])
def test_numbers_of_all_kinds_are_prices(given):
    price = as_price(given, "a number")
    assert (type(price), price) == (float, 3.0)


@pytest.mark.parametrize(
    "given", [0, -1.0, math.nan, math.inf, 10**400, "3", None, True, np.bool_(True), np.array([3, 4]), Decimal(3), 3j]
)
def test_others_are_refused(given):
    with pytest.raises(InputDataError, match=r"The price of a number must be a .*finite number; got"):
        as_price(given, "a number")
