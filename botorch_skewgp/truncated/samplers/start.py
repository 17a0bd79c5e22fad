r"""Feasible rows to start the chains from."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_skewgp.truncated.propagation.sites import SiteApproximation
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.samplers.feasibility import feasible_point
from botorch_skewgp.truncated.samplers.linear_ess import free_angle
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


def feasible_start(
    distribution: TruncatedNormal,
    num_chains: int,
    generator: torch.Generator | None = None,
    approximation: SiteApproximation | None = None,
) -> Tensor:
    r"""Find rows inside their bounds, without a linear program.

    *Every row has noise.* `h` is drawn from the Gaussian of expectation propagation, or from the prior, and `u`
    given `h` from univariate truncated normals.

    *Some rows have none, and `Gamma` is dense and has full rank.* Any `u` inside the bounds has a density, so every
    row is drawn on its own around the mean of `h`.

    *Some rows have none, and few latent coordinates determine them.* With `h = mean + F z`, some `z` must put those
    rows inside their bounds, see `feasible_latent`.

    Args:
        distribution: The truncated normal.
        num_chains: The number of chains.
        generator: The source of randomness.
        approximation: A Gaussian approximation of the latent coordinates.

    Returns:
        Rows, `batch_shape x num_chains x m`.

    Raises:
        ContradictionError: If no feasible point is found, naming the rows that cannot hold together.
    """
    noisy_prior = distribution.noisy_prior
    if bool((distribution.noise > 0).all()):
        latent = _draw_latent(distribution, num_chains, approximation, generator)
        return rows_given_noiseless(distribution, distribution.noiseless(latent), generator)
    if noisy_prior.has_full_rank:
        return _start_apart(distribution, num_chains, approximation, generator)
    root = distribution.prior.minimal_root()
    z = feasible_latent(distribution, root, num_chains, approximation, generator)
    return rows_given_noiseless(distribution, distribution.mean.unsqueeze(-2) + z @ root.mT, generator)


def _randn(like: Tensor, *shape: int, generator: torch.Generator | None) -> Tensor:
    return torch.randn(*shape, dtype=like.dtype, device=like.device, generator=generator)


def _draw_rows(
    distribution: TruncatedNormal, centre: Tensor, scale: Tensor, generator: torch.Generator | None
) -> Tensor:
    """Independent truncated normals around `centre`, `batch_shape x k x m`, of deviation `scale`, `batch_shape x m`."""
    return distribution.factor_of_draws.draw(centre, scale.unsqueeze(-2), open_uniform(centre, generator))


def rows_given_noiseless(distribution: TruncatedNormal, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
    r"""Draw rows given their noiseless parts: independent truncated normals, or `h` itself where there is no noise.

    Args:
        distribution: The truncated normal.
        h: Noiseless parts, `batch_shape x k x m`.
        generator: The source of randomness.
    """
    noisy = distribution.noise > 0
    scale = torch.where(noisy, distribution.noise.sqrt(), torch.ones_like(distribution.noise))
    return torch.where(noisy.unsqueeze(-2), _draw_rows(distribution, h, scale, generator), h)


def _is_inside(distribution: TruncatedNormal, h: Tensor) -> Tensor:
    """Where rows of `h`, `batch_shape x k x m`, are strictly inside their bounds or have noise."""
    lower, upper = distribution.lower.unsqueeze(-2), distribution.upper.unsqueeze(-2)
    return ((h > lower) & (h < upper)) | (distribution.noise > 0).unsqueeze(-2)


# Every row has noise.


def _draw_latent(
    distribution: TruncatedNormal,
    num_chains: int,
    approximation: SiteApproximation | None,
    generator: torch.Generator | None,
) -> Tensor:
    like = distribution.mean
    batch = distribution.batch_shape
    if approximation is not None:
        mean, root = approximation.latent_mean.to(like), approximation.latent_root.to(like)
        normal = _randn(like, *batch, num_chains, root.shape[-1], generator=generator)
        return mean.unsqueeze(-2) + normal @ root.mT
    return distribution.noisy_prior.sample_latent(num_chains, generator)


# No row is determined by the others.


def _start_apart(
    distribution: TruncatedNormal,
    num_chains: int,
    approximation: SiteApproximation | None,
    generator: torch.Generator | None,
) -> Tensor:
    batch = distribution.batch_shape
    if approximation is None:
        centre, variance = distribution.mean, distribution.gamma_diagonal
    else:
        centre = distribution.noiseless(approximation.latent_mean.to(distribution.mean).unsqueeze(-2)).squeeze(-2)
        root = distribution.prior.times(approximation.latent_root.to(distribution.mean).mT)
        variance = root.square().sum(-2) + distribution.noise
    # a row without spread in the approximation still needs a scale
    least = torch.finfo(variance.dtype).eps * distribution.gamma_diagonal
    centre = centre.unsqueeze(-2).expand(*batch, num_chains, -1)
    return _draw_rows(distribution, centre, torch.maximum(variance, least).sqrt(), generator)


# Rows without noise that latent coordinates determine.


def require_feasible(distribution: TruncatedNormal, approximation: SiteApproximation | None = None) -> None:
    r"""Raise an error if rows without noise contradict each other.

    Args:
        distribution: The truncated normal.
        approximation: A Gaussian approximation of the latent coordinates, whose mean is tried first.

    Raises:
        ContradictionError: If no feasible point is found, naming the rows that cannot hold together.
    """
    if bool((distribution.noise > 0).all()) or distribution.noisy_prior.has_full_rank:
        return
    root = distribution.prior.minimal_root()
    feasible_point(distribution, root, _approximate_latent(distribution, root, approximation))


def _approximate_latent(distribution: TruncatedNormal, root: Tensor, approximation: SiteApproximation | None) -> Tensor:
    """The mean of an approximation in the coordinates of a root; zero where there is none."""
    zero = torch.zeros(*distribution.batch_shape, root.shape[-1], dtype=root.dtype, device=root.device)
    if approximation is None or not bool(approximation.latent_mean.isfinite().all()):
        return zero
    return distribution.prior.by_minimal_root(approximation.latent_mean.to(root), root)


def feasible_latent(
    distribution: TruncatedNormal,
    root: Tensor,
    num_chains: int,
    approximation: SiteApproximation | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Latent coordinates at which rows without noise are inside their bounds, `batch_shape x num_chains x r`.

    All chains leave one point, the mean of an approximation or the result of `feasible_point`, along ellipses in random
    directions, as far as the bounds allow.

    Args:
        distribution: The truncated normal.
        root: A root of the covariance of its `h`, `batch_shape x m x r`.
        num_chains: The number of chains.
        approximation: A Gaussian approximation of the latent coordinates of the prior.
        generator: The source of randomness.

    Raises:
        ContradictionError: If no feasible point is found, naming the rows that cannot hold together.
    """
    batch, r = distribution.batch_shape, root.shape[-1]
    point = feasible_point(distribution, root, _approximate_latent(distribution, root, approximation))
    z = point.unsqueeze(-2).expand(*batch, num_chains, r)
    direction = _randn(root, *batch, num_chains, r, generator=generator)
    noisy = distribution.noise > 0
    infinite = torch.full_like(distribution.lower, math.inf)
    mean = distribution.mean
    theta = free_angle(
        z @ root.mT,
        direction @ root.mT,
        (torch.where(noisy, -infinite, distribution.lower) - mean).unsqueeze(-2),
        (torch.where(noisy, infinite, distribution.upper) - mean).unsqueeze(-2),
        generator=generator,
    ).unsqueeze(-1)
    moved = z * theta.cos() + direction * theta.sin()
    # Rounding only: an angle so close to a wall that the last digit crosses it; such a chain stays at the point.
    feasible = _is_inside(distribution, mean.unsqueeze(-2) + moved @ root.mT).all(-1, keepdim=True)
    return torch.where(feasible, moved, z)
