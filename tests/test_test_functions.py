"""Functions that BoTorch does not have: values worked out by hand, and optima that nothing in the domain exceeds."""

from __future__ import annotations

import math

import pytest
import torch

from benchmarks._functions import OURS, find_utility
from benchmarks._observations import best_first, duel, noisy, random_items, random_pairs

# Function, a point, and minus its value there worked out by hand from the published formula.
VALUES: list[tuple[str, list[float], float]] = [
    ("cosine", [1.0], -math.cos(5.0) - math.exp(-0.5)),
    ("cosine", [-2.0], -math.cos(10.0) - math.exp(-2.0)),
    ("forrester", [0.0], 4 * math.sin(-4.0)),
    ("forrester", [1.0], 16 * math.sin(8.0)),
    ("goldstein", [0.0, 0.0], (1 + 19) * 30),
    ("goldstein", [1.0, 1.0], (1 + 9 * 3) * (30 + 1 * 37)),
    # the local minima that the literature lists
    ("goldstein", [1.2, 0.8], 840.0),
    ("goldstein", [1.8, 0.2], 84.0),
    ("goldstein", [-0.6, -0.4], 30.0),
    # squared distances from (7, 9) to the five centres: 32, 53, 89, 61, 0; all cosines are +-1
    (
        "langermann",
        [7.0, 9.0],
        sum(c * (-1) ** r * math.exp(-r / math.pi) for c, r in zip((1, 2, 5, 2, 3), (32, 53, 89, 61, 0), strict=True)),
    ),
    ("colville", [0.0, 0.0, 0.0, 0.0], 1 + 1 + 20.2 + 19.8),
    ("colville", [2.0, 1.0, -1.0, 3.0], 100 * 9 + 1 + 4 + 90 * 4 + 10.1 * 4),
]


@pytest.mark.parametrize(("name", "x", "value"), VALUES)
def test_values_worked_out_by_hand(name: str, x: list[float], value: float) -> None:
    function = OURS[name][0]
    assert -function(torch.tensor(x, dtype=torch.double)).item() == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", OURS)
def test_the_optimum_is_attained_where_it_is_said_and_exceeded_nowhere(name: str) -> None:
    function, bounds, at, best = OURS[name]
    x = torch.tensor(at, dtype=torch.double)
    assert function(x).item() == pytest.approx(best, rel=1e-12, abs=1e-12)
    if name != "alpine4":  # which has an edge there; Newton's step from there is below its rounding
        hessian = torch.autograd.functional.hessian(function, x)
        gradient = torch.autograd.functional.jacobian(function, x)
        assert torch.linalg.solve(hessian, gradient).abs().max() < 1e-9
        assert torch.linalg.eigvalsh(hessian).max() < 0
    sobol = torch.quasirandom.SobolEngine(len(bounds), scramble=True, seed=0)
    utility = find_utility(name)
    assert utility.evaluate(sobol.draw(2**14, dtype=torch.double)).max() <= best
    low, high = torch.tensor(bounds, dtype=torch.double).mT
    assert utility.evaluate((x - low) / (high - low)).item() == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_the_domain_may_be_another() -> None:
    middle = torch.full((5,), 0.5, dtype=torch.double)
    assert find_utility("rosenbrock5", 3.0).evaluate(middle).item() == pytest.approx(-4.0)  # at zero
    assert find_utility("rosenbrock5", 3.0).evaluate(2 / 3 * torch.ones(5).double()).item() == pytest.approx(0.0)
    assert find_utility("rosenbrock5").evaluate(0.4 * torch.ones(5).double()).item() == pytest.approx(0.0)


def test_answers_have_the_noise_that_is_asked_for(generator: torch.Generator) -> None:
    values = noisy(torch.full((4000,), 3.0, dtype=torch.double), 0.25, generator)
    assert values.mean().item() == pytest.approx(3.0, abs=4 * 0.5 / 4000**0.5)
    assert values.std().item() == pytest.approx(0.5, abs=4 * 0.5 / 8000**0.5)
    utility = torch.tensor([0.0, 1.0, 2.0], dtype=torch.double)
    pairs = random_pairs(3, 4000, generator)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert (duel(utility, pairs, 0.0, generator).diff(dim=-1) < 0).all()  # the larger number is better
    first = duel(utility[:2], torch.tensor([[0, 1]]).expand(4000, 2), 0.8, generator)[:, 0]
    truth = torch.special.ndtr(torch.tensor(1 / (0.8 * 2**0.5))).item()
    assert first.double().mean().item() == pytest.approx(truth, abs=4 * 0.5 / 4000**0.5)
    items, seen = best_first(utility, random_items(3, 20, 3, generator), 1e-12, generator)
    assert (items == torch.tensor([2, 1, 0])).all()
    assert (seen.diff(dim=-1) < 0).all()
