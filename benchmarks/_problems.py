"""The problems that benchmarks are about: truncated normals of probit classification and of duels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


@dataclass(frozen=True)
class Problem:
    """A truncated normal with so many rows and the name that tables have."""

    name: str
    kind: str  # "classification" or "duels"
    size: int
    distribution: TruncatedNormal


def positive_rows(covariance: Tensor, noise: float) -> TruncatedNormal:
    zeros = covariance.new_zeros(covariance.shape[-1])
    return TruncatedNormal(
        mean=zeros,
        prior=covariance,
        lower=zeros,
        upper=torch.full_like(zeros, math.inf),
        noise=torch.full_like(zeros, noise),
    )


def squared_exponential(X: Tensor, lengthscale: Tensor | float) -> Tensor:
    scaled = X / lengthscale
    return torch.exp(-0.5 * torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist").square())


def classification(n: int, seed: int = 0, d: int = 3) -> Problem:
    """Probit classification with the generator of the unified paper, section 4.

    Inputs are standard normal; the variance is uniform on (1, 10), each lengthscale on (0.1, 1.1); the noise is one.
    """
    generator = torch.Generator().manual_seed(seed)
    double = torch.float64
    X = torch.randn(n, d, generator=generator, dtype=double)
    variance = 1 + 9 * torch.rand(1, generator=generator, dtype=double)
    lengthscale = 0.1 + torch.rand(d, generator=generator, dtype=double)
    K = variance * (squared_exponential(X, lengthscale) + 1e-6 * torch.eye(n, dtype=double))
    latent = torch.linalg.cholesky(K) @ torch.randn(n, generator=generator, dtype=double)
    positive = latent + torch.randn(n, generator=generator, dtype=double) > 0
    sign = torch.where(positive, 1.0, -1.0).to(K)
    return Problem(f"classification {n}", "classification", n, positive_rows(sign.unsqueeze(-1) * K * sign, 1.0))


@dataclass(frozen=True)
class Duels:
    """Points and the duels between them."""

    X: Tensor  # n x d
    pairs: Tensor  # winner and loser, m x 2
    difference: Tensor  # the duels as rows over the points, winner less loser, m x n
    covariance: Tensor  # the kernel matrix of the points


def duel_data(m: int, noise: float, d: int, items: int | None = None, lengthscale: float = 0.5, seed: int = 3) -> Duels:
    """Duels of a draw from a Gaussian process of unit variance on the unit cube; noise is that of each of two values.

    They are between so many random points (`items`), or each between two new ones.
    """
    generator = torch.Generator().manual_seed(seed)
    double = torch.float64
    n = 2 * m if items is None else items
    X = torch.rand(n, d, generator=generator, dtype=double)
    K = squared_exponential(X, lengthscale)
    latent = torch.linalg.cholesky(K + 1e-8 * torch.eye(n, dtype=double)) @ torch.randn(
        n, generator=generator, dtype=double
    )
    first = torch.arange(m)
    second = first + m
    if items is not None:
        first = torch.randint(n, (m,), generator=generator)
        second = (first + torch.randint(1, n, (m,), generator=generator)) % n
    gap = latent[first] - latent[second] + math.sqrt(2) * noise * torch.randn(m, generator=generator, dtype=double)
    pairs = torch.where((gap > 0).unsqueeze(-1), torch.stack([first, second], -1), torch.stack([second, first], -1))
    difference = torch.nn.functional.one_hot(pairs[:, 0], n) - torch.nn.functional.one_hot(pairs[:, 1], n)
    return Duels(X=X, pairs=pairs, difference=difference.to(K), covariance=K)


def duels(m: int, noise: float, d: int = 4, seed: int = 3) -> Problem:
    """The rows of `m` duels between `2 m` points, in units in which their noise is one."""
    data = duel_data(m, noise, d, seed=seed)
    covariance = data.difference @ data.covariance @ data.difference.mT / (2 * noise**2)
    covariance = covariance + 1e-8 * covariance.diagonal().mean() * torch.eye(m, dtype=covariance.dtype)
    return Problem(f"{m} duels, noise {noise:g}, {d}-d", "duels", m, positive_rows(covariance, 1.0))


def to_device(distribution: TruncatedNormal, device: torch.device) -> TruncatedNormal:
    """The same distribution on another device."""
    return distribution.map(lambda values: values.to(device))
