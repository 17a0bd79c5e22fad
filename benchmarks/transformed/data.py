"""Data whose scale is to be learned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from botorch.test_functions import SixHumpCamel
from torch import Tensor
from torch.quasirandom import SobolEngine

DOUBLE = torch.float64


class Data(NamedTuple):
    """Training and test points; test outcomes are compared with predictions of new outcomes."""

    X: Tensor
    Y: Tensor
    test_X: Tensor
    test_y: Tensor


def int_sine(seed: int) -> Data:
    """A sine rounded to integers: two steps, with a noise of 0.05; test outcomes are free of noise."""
    X = torch.linspace(-math.pi, math.pi, 51, dtype=DOUBLE).unsqueeze(-1)
    generator = torch.Generator().manual_seed(seed)
    noise = 0.05 * torch.randn(X.shape, generator=generator, dtype=DOUBLE)
    test_X = torch.linspace(-math.pi, math.pi, 400, dtype=DOUBLE).unsqueeze(-1)
    scaled = (X + math.pi) / (2 * math.pi), (test_X + math.pi) / (2 * math.pi)
    return Data(scaled[0], torch.sin(X).round() + 2 + noise, scaled[1], (torch.sin(test_X).round() + 2).squeeze(-1))


def synthetic(inverse: Callable[[Tensor], Tensor], seed: int, n: int = 40) -> Data:
    """A draw from a Gaussian process of two inputs through a known inverse warping, with noise inside of it."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n + 200, 2, generator=generator, dtype=DOUBLE)
    K = torch.exp(-0.5 * torch.cdist(X / 0.4, X / 0.4).square()) + 0.01 * torch.eye(len(X), dtype=DOUBLE)
    y = inverse(torch.linalg.cholesky(K) @ torch.randn(len(X), generator=generator, dtype=DOUBLE))
    return Data(X[:n], y[:n].unsqueeze(-1), X[n:], y[n:])


def diabetes(seed: int, n: int = 80) -> Data:
    """Disease progression after a year, from ten measurements; scikit-learn's data, another split for each seed."""
    from sklearn.datasets import load_diabetes

    inputs, outcomes = load_diabetes(return_X_y=True)
    X, y = torch.tensor(inputs, dtype=DOUBLE), torch.tensor(outcomes, dtype=DOUBLE)
    X = (X - X.amin(0)) / (X.amax(0) - X.amin(0))
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    train, test = order[:n], order[n : n + 200]
    return Data(X[train], y[train].unsqueeze(-1), X[test], y[test])


def levy(n: int, seed: int, num_test: int = 100) -> Data:
    """The Levy function of one input on (-10, 10), plus 1, with noise of 0.1."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n + num_test, 1, generator=generator, dtype=DOUBLE)
    w = 1 + (20 * X - 11) / 4
    y = torch.sin(math.pi * w).square() + (w - 1).square() * (1 + torch.sin(2 * math.pi * w).square()) + 1
    y = y + 0.1 * torch.randn(X.shape, generator=generator, dtype=DOUBLE)
    return Data(X[:n], y[:n], X[n:], y[n:].squeeze(-1))


def camel(n: int, num_test: int, seed: int = 0) -> Data:
    """The six-hump camel on [-1, 1] x [-2, 2] at Sobol points, and without noise at random ones."""
    X = SobolEngine(2, scramble=True, seed=seed).draw(n, dtype=DOUBLE)
    X = torch.cat([X, torch.rand(num_test, 2, generator=torch.Generator().manual_seed(seed + 1), dtype=DOUBLE)])
    y = SixHumpCamel(bounds=[(-1.0, 1.0), (-2.0, 2.0)], dtype=DOUBLE)(X.new_tensor([2.0, 4.0]) * (X - 0.5))
    return Data(X[:n], y[:n].unsqueeze(-1), X[n:], y[n:])


SETS: dict[str, Callable[[int], Data]] = {
    "exponential": lambda seed: synthetic(torch.exp, seed),
    "sinh": lambda seed: synthetic(lambda z: torch.sinh(1.5 * z), seed),
    "square root": lambda seed: synthetic(lambda z: (z + 5).sqrt(), seed),
    "identity": lambda seed: synthetic(lambda z: z + 5, seed),
    "Levy": lambda seed: levy(30, seed, num_test=200),
    "diabetes": diabetes,
}
