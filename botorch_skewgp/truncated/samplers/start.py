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
    expectation_propagation: SiteApproximation | None = None,
    previous: tuple[Tensor, Tensor | None] | None = None,
) -> tuple[Tensor, Tensor | None]:
    r"""Find rows inside their bounds, without a linear program.

    *Every row has noise.* `h` is drawn from the Gaussian of expectation propagation, or from the prior, and `u`
    given `h` from univariate truncated normals.

    *Some rows have none, and `Gamma` is dense and has full rank.* Any `u` inside the bounds has a density, so every
    row is drawn on its own around the mean of `h`.

    *Some rows have none, and few latent coordinates determine them.* With `h = mean + F z`, some `z` must put those
    rows inside their bounds: the mean of expectation propagation, or the result of `feasible_point`. All chains leave
    this point along ellipses in random directions, as far as the bounds allow.

    *With previous draws* (a warm start), rows keep values that are still inside the bounds; other rows and new ones are
    drawn given these. Without noise and with latent coordinates, a chain keeps its old coordinates, with new ones from
    the prior, if they are feasible, and else starts afresh.

    Args:
        distribution: The truncated normal.
        num_chains: The number of chains.
        generator: The source of randomness.
        expectation_propagation: A Gaussian approximation of the latent coordinates.
        previous: Rows `batch_shape x k x m_old` of an earlier distribution, whose rows were the first `m_old` of
            this one, and its latent coordinates `batch_shape x k x r_old`, the first ones of this one, or `None`.
            Chains take turns in using the `k` draws if there are more chains than draws.

    Returns:
        Rows, `batch_shape x num_chains x m`, and the latent coordinates of `h`, `batch_shape x num_chains x r`, if
        the covariance is a low-rank root, else `None`.

    Raises:
        ContradictionError: If no feasible point is found, naming the rows that cannot hold together.
        ValueError: If previous draws have more rows, or another batch shape, than the distribution.
    """
    if previous is not None:
        old_rows, old_latent = previous[0], distribution.prior.kept(previous[1])
        _check_previous(distribution, old_rows, old_latent)
        turn = torch.arange(num_chains, device=old_rows.device) % old_rows.shape[-2]
        old_rows = old_rows[..., turn, :].to(distribution.mean)
        old_latent = None if old_latent is None else old_latent[..., turn, :].to(distribution.mean)

    noisy_prior, mean = distribution.noisy_prior, distribution.mean.unsqueeze(-2)
    has_noise = bool((distribution.noise > 0).all())
    if has_noise or noisy_prior.has_full_rank:
        if previous is not None:
            residual = old_rows - distribution.mean[..., : old_rows.shape[-1]].unsqueeze(-2)
            centre, scale, latent = noisy_prior.predict(residual, generator)
            return _keep(distribution, old_rows, _draw_rows(distribution, mean + centre, scale, generator)), latent
        if not has_noise:
            return _start_apart(distribution, num_chains, expectation_propagation, generator), None
        latent = _draw_latent(distribution, num_chains, expectation_propagation, generator)
        return rows_given_latent(distribution, latent, generator), distribution.prior.kept(latent)

    root = distribution.prior.minimal_root()
    if previous is not None:
        kept = _continue_latent(distribution, root, old_rows, old_latent, generator)
        feasible = _is_inside(distribution, kept @ root.mT + mean).all(-1)
        if bool(feasible.all()):
            return _finish_latent(distribution, root, kept, generator)
    z = _start_latent(distribution, root, num_chains, expectation_propagation, generator)
    if previous is not None:
        z = torch.where(feasible.unsqueeze(-1), kept, z)
    return _finish_latent(distribution, root, z, generator)


def _check_previous(distribution: TruncatedNormal, rows: Tensor, latent: Tensor | None) -> None:
    if rows.shape[:-2] != distribution.batch_shape or rows.shape[-1] > distribution.num_rows:
        raise ValueError(
            f"Previous rows must be batch_shape x k x m_old with batch_shape {tuple(distribution.batch_shape)} and "
            f"m_old at most {distribution.num_rows}; got {tuple(rows.shape)}."
        )
    if latent is not None:
        size = distribution.prior.rank
        if latent.shape[:-1] != rows.shape[:-1] or latent.shape[-1] > size:
            raise ValueError(
                f"Previous latent coordinates must be batch_shape x k x r_old with r_old at most {size}; got "
                f"{tuple(latent.shape)}."
            )


def _randn(like: Tensor, *shape: int, generator: torch.Generator | None) -> Tensor:
    return torch.randn(*shape, dtype=like.dtype, device=like.device, generator=generator)


def _draw_rows(
    distribution: TruncatedNormal, centre: Tensor, scale: Tensor, generator: torch.Generator | None
) -> Tensor:
    """Independent truncated normals around `centre`, `batch_shape x k x m`, of deviation `scale`, `batch_shape x m`."""
    return distribution.factor_of_draws.draw(centre, scale.unsqueeze(-2), open_uniform(centre, generator))


def rows_given_latent(
    distribution: TruncatedNormal, latent: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    r"""Draw rows given latent coordinates of `h`: independent truncated normals; every row must have noise.

    Args:
        distribution: The truncated normal.
        latent: Latent coordinates, `batch_shape x k x r`.
        generator: The source of randomness.
    """
    return _draw_rows(distribution, distribution.noiseless(latent), distribution.noise.sqrt(), generator)


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


def _keep(distribution: TruncatedNormal, old_rows: Tensor, rows: Tensor) -> Tensor:
    m_old = old_rows.shape[-1]
    lower, upper = (bound[..., :m_old].unsqueeze(-2) for bound in (distribution.lower, distribution.upper))
    inside = (old_rows > lower) & (old_rows < upper)
    return torch.cat([torch.where(inside, old_rows, rows[..., :m_old]), rows[..., m_old:]], dim=-1)


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


def _start_latent(
    distribution: TruncatedNormal,
    root: Tensor,
    num_chains: int,
    approximation: SiteApproximation | None,
    generator: torch.Generator | None,
) -> Tensor:
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


def _continue_latent(
    distribution: TruncatedNormal,
    root: Tensor,
    old_rows: Tensor,
    old_latent: Tensor | None,
    generator: torch.Generator | None,
) -> Tensor:
    """Old coordinates with the new ones drawn from the prior; or those closest to the old rows."""
    batch, r = distribution.batch_shape, root.shape[-1]
    if old_latent is not None:
        new = _randn(root, *batch, old_latent.shape[-2], r - old_latent.shape[-1], generator=generator)
        return torch.cat([old_latent, new], dim=-1)
    m_old = old_rows.shape[-1]
    residual = (old_rows - distribution.mean[..., :m_old].unsqueeze(-2)).mT
    return (torch.linalg.pinv(root[..., :m_old, :]) @ residual).mT


def _finish_latent(
    distribution: TruncatedNormal, root: Tensor, z: Tensor, generator: torch.Generator | None
) -> tuple[Tensor, Tensor | None]:
    """Rows at feasible coordinates: `h` itself where there is no noise, drawn given `h` where there is."""
    h = distribution.mean.unsqueeze(-2) + z @ root.mT
    noisy = (distribution.noise > 0).unsqueeze(-2)
    scale = torch.where(distribution.noise > 0, distribution.noise.sqrt(), torch.ones_like(distribution.noise))
    rows = torch.where(noisy, _draw_rows(distribution, h, scale, generator), h)
    return rows, distribution.prior.kept(z)
