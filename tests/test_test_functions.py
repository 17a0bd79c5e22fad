from __future__ import annotations

import math

import pytest
import torch
from botorch.test_functions.synthetic import SyntheticTestFunction
from torch import Tensor

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
    (GoldsteinPrice(log=True), [-0.6, -0.4], (math.log(30.0) - 8.693) / 2.427),
    # squared distances from (7, 9) to the five centres: 32, 53, 89, 61, 0; all cosines are +-1
    (
        Langermann(),
        [7.0, 9.0],
        sum(c * (-1) ** r * math.exp(-r / math.pi) for c, r in zip((1, 2, 5, 2, 3), (32, 53, 89, 61, 0), strict=True)),
    ),
    (Colville(), [0.0, 0.0, 0.0, 0.0], 1 + 1 + 20.2 + 19.8),
    (Colville(), [2.0, 1.0, -1.0, 3.0], 100 * 9 + 1 + 4 + 90 * 4 + 10.1 * 4),
]

FUNCTIONS = [
    CosineExponential,
    Forrester,
    GoldsteinPrice,
    lambda **kw: GoldsteinPrice(log=True, **kw),
    Langermann,
    Colville,
]
NAMES = ["CosineExponential", "Forrester", "GoldsteinPrice", "GoldsteinPrice-log", "Langermann", "Colville"]


@pytest.fixture(params=FUNCTIONS, ids=NAMES)
def make(request: pytest.FixtureRequest) -> type[SyntheticTestFunction]:
    return request.param


@pytest.mark.parametrize(("function", "x", "value"), VALUES)
def test_values_worked_out_by_hand(function: SyntheticTestFunction, x: list[float], value: float) -> None:
    assert function(torch.tensor(x, dtype=torch.double)).item() == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("negate", [False, True])
def test_optimal_value_is_attained_at_the_optimizers(make: type[SyntheticTestFunction], negate: bool) -> None:
    function = make(negate=negate)
    values = function(function.optimizers)
    torch.testing.assert_close(values, torch.full_like(values, function.optimal_value), rtol=1e-12, atol=1e-12)


def test_gradient_vanishes_and_curvature_has_the_right_sign_at_the_optimizers(
    make: type[SyntheticTestFunction],
) -> None:
    function = make()
    sign = 1 if function.is_minimization_problem else -1
    for x in function.optimizers:
        hessian = sign * torch.autograd.functional.hessian(function, x)
        gradient = torch.autograd.functional.jacobian(function, x)
        # Newton's step from the stated optimiser is below its rounding
        step = torch.linalg.solve(hessian, gradient)
        assert step.abs().max() < 1e-9
        assert torch.linalg.eigvalsh(hessian).min() > 0


@pytest.mark.parametrize("negate", [False, True])
def test_nothing_in_the_domain_is_better(make: type[SyntheticTestFunction], negate: bool) -> None:
    function = make(negate=negate)
    lower, upper = function.bounds
    points = lower + (upper - lower) * torch.quasirandom.SobolEngine(function.dim, scramble=True, seed=0).draw(
        2**14, dtype=torch.double
    )
    values = function(points)
    if function.is_minimization_problem:
        assert values.min() >= function.optimal_value
    else:
        assert values.max() <= function.optimal_value


def test_which_are_minimised() -> None:
    assert not CosineExponential().is_minimization_problem
    assert CosineExponential(negate=True).is_minimization_problem
    for function in (Forrester, GoldsteinPrice, Langermann, Colville):
        assert function().is_minimization_problem
        assert not function(negate=True).is_minimization_problem


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batches_and_dtypes(make: type[SyntheticTestFunction], dtype: torch.dtype, generator: torch.Generator) -> None:
    function = make(dtype=dtype)
    lower, upper = function.bounds
    X = lower + (upper - lower) * torch.rand(3, 4, function.dim, generator=generator, dtype=dtype)
    values: Tensor = function(X)
    assert values.shape == (3, 4)
    assert values.dtype == dtype
    torch.testing.assert_close(values[1, 2], function(X[1, 2]))


def test_log_keeps_the_order(generator: torch.Generator) -> None:
    X = 4 * torch.rand(100, 2, generator=generator, dtype=torch.double) - 2
    plain, log = GoldsteinPrice()(X), GoldsteinPrice(log=True)(X)
    assert torch.equal(plain.argsort(), log.argsort())
    assert GoldsteinPrice().optimal_value == 3.0
    assert GoldsteinPrice(log=True).optimal_value == pytest.approx(-3.129126, abs=1e-6)


def test_points_outside_the_bounds_are_refused(make: type[SyntheticTestFunction]) -> None:
    function = make()
    with pytest.raises(ValueError, match="within the bounds"):
        function(function.bounds[1:] + 1)
