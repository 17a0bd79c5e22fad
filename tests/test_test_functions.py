"""Test functions of the papers: values worked out by hand, and optima that nothing in the domain exceeds."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.test_functions.synthetic import SyntheticTestFunction

from benchmarks._test_functions import Colville, CosineExponential, Forrester, GoldsteinPrice, Langermann

# Function, a point, and its value there worked out by hand from the published formula.
VALUES: list[tuple[SyntheticTestFunction, list[float], float]] = [
    (CosineExponential(), [1.0], math.cos(5.0) + math.exp(-0.5)),
    (CosineExponential(), [-2.0], math.cos(10.0) + math.exp(-2.0)),
    (Forrester(), [0.0], 4 * math.sin(-4.0)),
    (Forrester(), [1.0], 16 * math.sin(8.0)),
    (GoldsteinPrice(), [0.0, 0.0], (1 + 19) * 30),
    (GoldsteinPrice(), [1.0, 1.0], (1 + 9 * 3) * (30 + 1 * 37)),
    # the local minima that the literature lists
    (GoldsteinPrice(), [1.2, 0.8], 840.0),
    (GoldsteinPrice(), [1.8, 0.2], 84.0),
    (GoldsteinPrice(), [-0.6, -0.4], 30.0),
    # squared distances from (7, 9) to the five centres: 32, 53, 89, 61, 0; all cosines are +-1
    (
        Langermann(),
        [7.0, 9.0],
        sum(c * (-1) ** r * math.exp(-r / math.pi) for c, r in zip((1, 2, 5, 2, 3), (32, 53, 89, 61, 0), strict=True)),
    ),
    (Colville(), [0.0, 0.0, 0.0, 0.0], 1 + 1 + 20.2 + 19.8),
    (Colville(), [2.0, 1.0, -1.0, 3.0], 100 * 9 + 1 + 4 + 90 * 4 + 10.1 * 4),
]

FUNCTIONS = [CosineExponential(), Forrester(), GoldsteinPrice(), Langermann(), Colville()]


@pytest.mark.parametrize(("function", "x", "value"), VALUES)
def test_values_worked_out_by_hand(function: SyntheticTestFunction, x: list[float], value: float) -> None:
    assert function(torch.tensor(x, dtype=torch.double)).item() == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_optimum_is_attained_where_it_is_said_and_exceeded_nowhere(function: SyntheticTestFunction) -> None:
    sign = 1 if function.is_minimization_problem else -1
    values = function(function.optimizers)
    torch.testing.assert_close(values, torch.full_like(values, function.optimal_value), rtol=1e-12, atol=1e-12)
    for x in function.optimizers:  # Newton's step from there is below its rounding
        hessian = sign * torch.autograd.functional.hessian(function, x)
        gradient = torch.autograd.functional.jacobian(function, x)
        assert torch.linalg.solve(hessian, gradient).abs().max() < 1e-9
        assert torch.linalg.eigvalsh(hessian).min() > 0
    lower, upper = function.bounds
    sobol = torch.quasirandom.SobolEngine(function.dim, scramble=True, seed=0)
    points = lower + (upper - lower) * sobol.draw(2**14, dtype=torch.double)
    assert (sign * function(points)).min() >= sign * function.optimal_value
    assert function.is_minimization_problem != isinstance(function, CosineExponential)
