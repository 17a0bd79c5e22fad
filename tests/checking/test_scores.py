"""The information score in bits."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from tensors import tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import information_score
from botorch_skewgp.observations import Binary

X = tensor(0.0, 0.15, 0.3, 0.45, 0.65, 0.8, 1.0).unsqueeze(-1)


def test_information_score_in_bits():
    labels = torch.tensor([1, 0, 1, 1])
    assert information_score(tensor(1.0, 0.0, 1.0, 1.0), labels) == 1
    assert information_score(tensor(0.5, 0.5, 0.5, 0.5), labels) == 0
    p = tensor(0.8, 0.3, 0.6, 0.9)
    wanted = 1 + sum(math.log2(q) for q in (0.8, 0.7, 0.6, 0.9)) / 4
    assert information_score(p, labels).item() == pytest.approx(wanted)
    assert information_score(torch.stack([p, p]), labels).shape == (2,)


def test_information_score_of_a_model():
    model = SkewGP(X, Binary([0, 0, 0, 1, 1, 1, 1]))
    score = information_score(model.predictive(X).probs.squeeze(-1).detach(), torch.tensor([0, 0, 0, 1, 1, 1, 1]))
    assert 0 < score < 1


@pytest.mark.parametrize(("p", "y"), [([0.5, 1.2], [0, 1]), ([0.5, math.nan], [0, 1]), ([0.5, 0.5], [0, 2])])
def test_information_score_refuses(p, y):
    with pytest.raises(InputDataError):
        information_score(tensor(*p), torch.tensor(y))
