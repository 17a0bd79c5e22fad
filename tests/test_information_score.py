"""The information score in bits."""

import math

import pytest
import torch
from tensors import tensor

from benchmarks.experiments._models import information_score


def test_information_score_in_bits():
    labels = torch.tensor([1, 0, 1, 1])
    assert information_score(tensor(1.0, 0.0, 1.0, 1.0), labels) == 1
    assert information_score(tensor(0.5, 0.5, 0.5, 0.5), labels) == 0
    p = tensor(0.8, 0.3, 0.6, 0.9)
    wanted = 1 + sum(math.log2(q) for q in (0.8, 0.7, 0.6, 0.9)) / 4
    assert information_score(p, labels).item() == pytest.approx(wanted)
    assert information_score(torch.stack([p, p]), labels).shape == (2,)
