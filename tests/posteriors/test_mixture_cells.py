"""Cells of mixtures against the sums over all components that they stand for."""

import math

import pytest
import torch

from botorch_skewgp.posteriors import NormalMixtureMarginals
from botorch_skewgp.posteriors import mixture_cells as module
from botorch_skewgp.posteriors.mixture_cells import CELL_WIDTH, NUM_MOMENTS, TRUNCATION, MixtureCells


def mixtures(weighted=False):
    """Nine mixtures with ranges of three to fifty standard deviations."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(9, 300, generator=generator, dtype=torch.float64).exp()
    deviation = means.amax(-1) / torch.linspace(3, 50, 9, dtype=torch.float64)
    probabilities = torch.full((300,), 1 / 300, dtype=torch.float64)
    if weighted:
        probabilities = torch.randn(9, 300, generator=generator, dtype=torch.float64).softmax(-1)
    return NormalMixtureMarginals(means, deviation.unsqueeze(-1), probabilities)


def cells_of(some, points):
    means, deviation = some.parameters
    least, largest = means[points].aminmax(dim=-1)
    return MixtureCells(means, some.probabilities, points, least, largest, deviation[points, 0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("backend", ["eager", "numba"])
def test_cdf_and_density(monkeypatch, backend, weighted):
    if backend == "numba":
        pytest.importorskip("numba")
    monkeypatch.setattr(module, "choose_backend", lambda *args: backend)
    monkeypatch.setattr(module, "EAGER_CHUNK", 1000)
    some, points = mixtures(weighted), torch.tensor([8, 1, 2, 5, 0, 7])
    cells, part = cells_of(some, points), some.at(points)
    for place in (-0.2, 0.0, 0.1, 0.5, 1.0, 1.2):  # in the range of the means
        value = cells.least + place * (cells.largest - cells.least)
        for upper in (False, True):
            tail, density = cells.tail_and_density(value, torch.full((6,), upper))
            wanted = part.survival(value) if upper else part.cdf(value)
            torch.testing.assert_close(tail, wanted, rtol=1e-14, atol=TRUNCATION)
            torch.testing.assert_close(density, part.density(value), rtol=1e-4, atol=1e-12)
    level = torch.full((6,), 0.1, dtype=torch.float64)
    torch.testing.assert_close(cells.first_guess(level), part.first_guess(level))
    few = cells.at(points > 4)
    value = 0.5 * (few.least + few.largest)
    upper = torch.zeros_like(value, dtype=torch.bool)
    torch.testing.assert_close(few.tail_and_density(value, upper)[0], part.at(points > 4).cdf(value))


def test_what_is_left_out_is_as_small_as_said():
    """All components at the end of a cell, where the term left out is largest, at any value."""
    deviation = torch.ones(1, dtype=torch.float64)
    means = torch.tensor([[0.0, 2 * CELL_WIDTH * (1 - 1e-15)]], dtype=torch.float64)
    probabilities = torch.tensor([0.0, 1.0], dtype=torch.float64)
    cells = MixtureCells(means, probabilities, torch.tensor([0]), means[:, 0], means[:, 1], deviation)
    order = NUM_MOMENTS
    bound = 0.43344 * (CELL_WIDTH / 2) ** order * math.sqrt(math.factorial(order - 1)) / math.factorial(order)
    assert bound <= TRUNCATION < 1.01 * bound
    exact = NormalMixtureMarginals(means, deviation, probabilities)
    for value in torch.linspace(-9, 9, 181, dtype=torch.float64):
        tail, _ = cells.tail_and_density(value.expand(1), value.expand(1) > 0)
        wanted = exact.survival(value) if value > 0 else exact.cdf(value)
        assert float((tail - wanted).abs()) <= TRUNCATION + 1e-15
