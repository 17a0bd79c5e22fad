"""Checks of what a model is given: scaling."""

import warnings

import botorch
import pytest
import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Binary, Numeric, Preference

X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
WIDE = X * torch.tensor([1e-3, 64.0], dtype=torch.float64)  # a learning rate and a batch size
Y = torch.tensor([-1.2, 0.3, 1.4, 0.2, -0.5, 0.7], dtype=torch.float64)
DUELS = Preference([[0, 1], [2, 3]])


def messages(make) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(entry.category is InputDataWarning for entry in caught)
    assert all(entry.filename == __file__ for entry in caught)  # it is the user's line that is wrong
    return [str(entry.message) for entry in caught]


@pytest.mark.parametrize(
    "inputs",
    [WIDE, X - 0.1, X + 0.1, WIDE.float().double()],
    ids=["wide", "below", "above", "rounded"],
)
def test_inputs_outside_the_unit_cube_are_warned_of_once(inputs):
    (message,) = messages(lambda: SkewGP(inputs, DUELS))
    assert f"columns [{inputs.shape[-1] - 1}]" in message
    assert "Normalize" in message


@pytest.mark.parametrize("values", [1e3 * Y, Y + 50, 1e-3 * Y, Y.clone().fill_(7.0)])
def test_numbers_far_from_standard_ones_are_warned_of_once(values):
    (message,) = messages(lambda: SkewGP(X, [Numeric(values), Numeric(values[:2]), DUELS]))
    assert "Standardize" in message


def test_both_are_said():
    assert len(messages(lambda: SkewGP(WIDE, Numeric(1e3 * Y)))) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: SkewGP(X, [Numeric(Y), DUELS]),
        lambda: SkewGP(X * 1.005, Numeric(2 * Y + 1)),
        lambda: SkewGP(X, Numeric([0.3, 0.31])),  # two numbers may be close by chance
        lambda: SkewGP(X, Numeric([0.3])),
        lambda: SkewGP(WIDE, DUELS, input_transform=Normalize(2)),
        lambda: SkewGP(X, Numeric(1e3 * Y), outcome_transform=Standardize(1)),
        lambda: SkewGP(WIDE, Numeric(1e3 * Y), covar_module=ScaleKernel(RBFKernel())),  # as in BoTorch's models
        lambda: SkewGP(X, Binary([1, 1, 1])),
        lambda: SkewGP(X),
    ],
)
def test_scaled_data_and_transforms_are_silent(make):
    assert messages(make) == []


def test_warnings_can_be_turned_off_as_in_botorch():
    with botorch.settings.validate_input_scaling(False):
        assert messages(lambda: SkewGP(WIDE, Numeric(1e3 * Y))) == []


def test_nothing_is_said_again_when_the_model_is_used():
    with pytest.warns(InputDataWarning):
        model = SkewGP(WIDE, DUELS)
    assert messages(lambda: model.condition_on_observations(WIDE[:2] + 1, Preference([[0, 1]])).posterior(WIDE)) == []
