"""Interpolation of smooth functions, and of the entropies that information averages."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from botorch_skewgp.acquisition import active_learning
from botorch_skewgp.acquisition.interpolation import interpolated
from botorch_skewgp.rows import Reading


def number(value):
    return torch.tensor(value, dtype=torch.float64)


def points(generator, *shape, scale=3.0):
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_values_in_batches(generator):
    x = points(generator, 2, 3, 1000) * number([1.0, 10.0]).reshape(2, 1, 1) + 5
    found = interpolated(lambda at: torch.sin(at) + at.square(), x, number(1.0), 4.0)
    torch.testing.assert_close(found, torch.sin(x) + x.square(), rtol=0, atol=1e-9)


def test_more_nodes_make_the_error_smaller(generator):
    x = points(generator, 4000)
    truth = torch.log1p(x.square())
    errors = []
    for nodes_per_width in (1, 3, 6):
        found = interpolated(lambda at: torch.log1p(at.square()), x, number(1.0), nodes_per_width)
        errors.append((found - truth).abs().max())
    assert errors[0] > 10 * errors[1] > 1000 * errors[2]


def test_derivatives_in_arguments_and_parameters(generator):
    x, a = points(generator, 2, 200, scale=0.5), number([[0.7], [1.3]])
    x.requires_grad_(), a.requires_grad_()
    calls = []

    def function(at):
        calls.append(at.shape[-1])
        return torch.exp(-a * at.square())

    assert gradcheck(lambda x, a: interpolated(function, x, number(1.0), 6.0)[..., ::50], (x, a))
    assert max(calls) < 100
    found = torch.autograd.grad(interpolated(function, x, number(1.0), 8.0).sum(), (x, a))
    expected = torch.autograd.grad(torch.exp(-a * x.square()).sum(), (x, a))
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("x", [torch.full((1, 500), 2.5, dtype=torch.float64), torch.zeros(500, dtype=torch.float64)])
def test_equal_points(x):
    x = x.clone().requires_grad_()
    found = interpolated(torch.sin, x, number(0.1), 4.0)
    torch.testing.assert_close(found, x.sin(), rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], x.cos(), rtol=0, atol=1e-6)


def test_few_points_are_not_interpolated(generator):
    seen = []
    x = points(generator, 40)
    found = interpolated(lambda at: seen.append(at) or at.exp(), x, number(1.0), 4.0)
    assert len(seen) == 1
    assert seen[0] is x
    assert torch.equal(found, x.exp())


def test_single_precision(generator):
    x = points(generator, 1000).float()
    found = interpolated(torch.sin, x, number(1.0).float(), 4.0)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, x.sin(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("cutpoints", [[0.0], [-0.4, 0.4], [-1.0, 0.0, 0.3], [-8.0, 0.0, 1.0, 12.0]])
@pytest.mark.parametrize("variance", [1e-6, 1e-2, 1.0, 1e2])
@pytest.mark.parametrize("spread", [0.1, 3.0, 50.0])
def test_entropies(cutpoints, variance, spread, generator, monkeypatch):
    """The same with interpolation and without, also where an outcome is all but certain."""
    reading = Reading.at_point(number(cutpoints), number([1.0]))
    wide = math.sqrt(1 + variance)

    class Read:
        component_means = spread * wide * points(generator, 2, 1, 2048, scale=0.3)
        gaussian_variance = torch.full((2, 1), variance, dtype=torch.float64)
        log_probabilities = torch.full((2048,), -math.log(2048.0), dtype=torch.float64)

    found = active_learning._expected_entropy(Read, reading)
    monkeypatch.setattr(active_learning, "interpolated", lambda function, x, *args: function(x))
    torch.testing.assert_close(found, active_learning._expected_entropy(Read, reading), rtol=1e-9, atol=0)
