"""The expected entropy of an answer against quadrature and differences."""

import math

import pytest
import torch
from acquisition_checks import finite_gradient
from torch.autograd import gradcheck

from botorch_skewgp.acquisition import information
from botorch_skewgp.acquisition.information import _interpolated, _log_entropy, expected_entropy
from botorch_skewgp.acquisition.look_ahead import AnswerModel
from botorch_skewgp.rows import Reading


def number(value):
    return torch.tensor(value, dtype=torch.float64)


def points(generator, *shape, scale=3.0):
    return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_derivatives_in_arguments_and_parameters(generator):
    x, a = points(generator, 2, 200, scale=0.5), number([[0.7], [1.3]])
    x.requires_grad_(), a.requires_grad_()
    calls = []

    def function(at):
        calls.append(at.shape[-1])
        return torch.exp(-a * at.square())

    assert gradcheck(lambda x, a: _interpolated(function, x, number(1.0), 6.0)[..., ::50], (x, a))
    assert max(calls) < 100
    found = torch.autograd.grad(_interpolated(function, x, number(1.0), 8.0).sum(), (x, a))
    expected = torch.autograd.grad(torch.exp(-a * x.square()).sum(), (x, a))
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("x", [torch.full((1, 500), 2.5, dtype=torch.float64), torch.zeros(500, dtype=torch.float64)])
def test_equal_points(x):
    x = x.clone().requires_grad_()
    found = _interpolated(torch.sin, x, number(0.1), 4.0)
    torch.testing.assert_close(found, x.sin(), rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], x.cos(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("cutpoints", [[0.0], [-0.4, 0.4], [-8.0, 0.0, 1.0, 12.0]])
@pytest.mark.parametrize("variance", [1e-6, 1.0, 1e2])
@pytest.mark.parametrize("spread", [0.1, 50.0])
def test_entropies(cutpoints, variance, spread, generator, monkeypatch):
    """The same with interpolation and without, also where an outcome is all but certain."""
    reading = Reading.at_point(number(cutpoints), number([1.0]))
    means = spread * math.sqrt(1 + variance) * points(generator, 2, 2048, scale=0.3)
    which, weights = slice(0, None, 32), torch.zeros(2048, dtype=torch.float64)
    weights[which] = 1 / 64
    found = expected_entropy(means, number([variance] * 2), weights, AnswerModel([reading]))
    monkeypatch.setattr(information, "MIN_SAVING", 1e9)
    expected = expected_entropy(means[:, which], number([variance] * 2), weights[which], AnswerModel([reading]))
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("cutpoints", [[0.0], [-1.0, 0.0, 0.3], [-8.0, 0.0, 1.0, 12.0]])
@pytest.mark.parametrize("variance", [1e-8, 1e-2, 1.0, 1e2, 1e4])
def test_expected_entropy_by_numerical_integration(cutpoints, variance):
    """Noise much smaller and much larger than the uncertainty, and far from all cut-points."""
    reading = Reading.at_point(number(cutpoints), number([1.0]))
    for m in (0.0, 0.5, -3.0, 10.0):
        sd = variance**0.5
        f = torch.linspace(max(-40, m - 12 * sd), min(40, m + 12 * sd), 20_001, dtype=torch.float64)
        density = torch.exp(-0.5 * (f - m).square() / variance) / math.sqrt(2 * math.pi * variance)
        expected = torch.trapezoid(_log_entropy(f, reading).exp() * density, f)
        found = expected_entropy(number([[m]]), number([variance]), number([1.0]), AnswerModel([reading])).squeeze()
        torch.testing.assert_close(found, expected, rtol=3e-5, atol=0)


def test_log_entropy_by_its_definition():
    reading = Reading.at_point(number([-1.0, 0.5]), number([0.25]))
    f = torch.linspace(-3, 3, 13, dtype=torch.float64)
    edges = torch.special.ndtr((reading.cutpoints[0] - f.unsqueeze(-1)) / 0.5)
    p = torch.stack([edges[:, 0], edges[:, 1] - edges[:, 0], 1 - edges[:, 1]], dim=-1)
    torch.testing.assert_close(_log_entropy(f, reading).exp(), torch.special.entr(p).sum(-1))
    finite_gradient(lambda f: _log_entropy(f, reading), number([-1e6, -60.0, 60.0, 1e6]))
