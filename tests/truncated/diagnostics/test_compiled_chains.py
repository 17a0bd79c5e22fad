"""Compiled R-hat and effective sizes against those in torch, whose autocorrelations come from a Fourier transform."""

import math

import pytest
import torch

pytest.importorskip("numba")
from botorch_skewgp.truncated.diagnostics import mixing as diagnostics
from botorch_skewgp.truncated.diagnostics.compiled_chains import effective_sizes, r_hats


def autoregressive(num_chains, num_steps, correlation):
    """Twelve functionals of chains, some of them odd."""
    noise = torch.randn(12, num_chains, num_steps, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    values = noise.clone()
    for i in range(1, num_steps):
        values[..., i] = correlation * values[..., i - 1] + math.sqrt(1 - correlation**2) * noise[..., i]
    values[3] = 1.0  # constant
    values[4, 0] += 5  # one chain elsewhere
    values[5] = values[5].sign()
    values[6] = torch.arange(num_chains).unsqueeze(-1)  # chains that stand still
    values[7, 1, 0] = math.nan
    return values


@pytest.fixture
def without_numba(monkeypatch):
    """What torch computes by itself."""

    def compute(function, values):
        with monkeypatch.context() as patch:
            patch.setattr(diagnostics, "uses_numba", lambda device: False)
            return function(values)

    return compute


SHAPES = [(8, 256), (2, 2), (8, 3), (2, 5), (128, 8), (8, 1000)]


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.99, -0.7])
@pytest.mark.parametrize("shape", SHAPES)
def test_r_hats(shape, correlation, without_numba):
    values = autoregressive(*shape, correlation)
    torch.testing.assert_close(r_hats(values), without_numba(diagnostics._r_hat, values), equal_nan=True)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.99, -0.7])
@pytest.mark.parametrize("shape", SHAPES)
def test_effective_sizes(shape, correlation, without_numba):
    values = autoregressive(*shape, correlation)
    values[7, 1, 0] = 0.0  # NaN is left to the transform
    expected = without_numba(diagnostics._effective_size, values)
    found = effective_sizes(values)
    ended = ~found.isnan()
    assert bool(ended[[3, 6]].all()) or shape[1] > 32  # a still chain's correlation never dies out
    torch.testing.assert_close(found[ended], expected[ended], rtol=1e-8, atol=0)
    # and the rest by the transform
    torch.testing.assert_close(diagnostics._effective_size(values), expected, rtol=1e-8, atol=0)


def test_batches_and_nothing():
    values = autoregressive(4, 20, 0.3).view(3, 4, 4, 20)
    torch.testing.assert_close(r_hats(values).view(-1), r_hats(values.view(12, 4, 20)), equal_nan=True)
    assert effective_sizes(values[:0]).shape == (0, 4)


def test_slow_chains_are_left_to_the_transform():
    values = autoregressive(8, 1000, 0.99)
    assert bool(effective_sizes(values)[:3].isnan().all())
