r"""Feasible rows to start the chains from."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from botorch_skewgp.truncated.factorization import RELATIVE_JITTER, cholesky_of_precision
from botorch_skewgp.truncated.feasibility import feasible_point
from botorch_skewgp.truncated.linear_ess import free_angle
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import sample_interval

# Least squared pivot of the Cholesky factor, relative to its row's variance, at which a covariance counts as of
# full rank. Rows that others determine more closely are started from a point of the latent space.
FULL_RANK_PIVOT = 1e-6


class LatentApproximation(Protocol):
    """A Gaussian approximation of the latent coordinates; the result of expectation propagation is one."""

    @property
    def latent_mean(self) -> Tensor:
        """The mean, `batch_shape x r`."""

    @property
    def latent_root(self) -> Tensor:
        """A root of the covariance, `batch_shape x r x r`."""


def feasible_start(
    distribution: TruncatedNormal,
    num_chains: int,
    generator: torch.Generator | None = None,
    expectation_propagation: LatentApproximation | None = None,
    previous: tuple[Tensor, Tensor | None] | None = None,
) -> tuple[Tensor, Tensor | None]:
    r"""Find rows inside their bounds, without a linear program.

    *Every row has noise.* `h` is drawn from the Gaussian of expectation propagation, or from the prior, and `u`
    given `h` from univariate truncated normals.

    *Some rows have none, and `Gamma` is dense and has full rank.* Any `u` inside the bounds has a density, so every
    row is drawn on its own around the mean of `h`.

    *Some rows have none, and few latent coordinates determine them.* With `h = mean + F z`, a `z` is needed for
    which those rows are inside their bounds: the mean of expectation propagation, or what `feasible_point` finds. All
    chains leave this point along ellipses in random directions, as far as the bounds allow.

    *With previous draws* (a warm start), rows keep their values where these are still inside the bounds; rows
    whose values are not, and new ones, are drawn given the others. Without noise and with latent
    coordinates, a chain keeps its old coordinates, the new ones drawn from the prior, if they are feasible, and
    starts afresh if they are not.

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
        _check_previous(distribution, previous)
        old_rows, old_latent = previous
        turn = torch.arange(num_chains, device=old_rows.device) % old_rows.shape[-2]
        old_rows = old_rows[..., turn, :].to(distribution.mean)
        old_latent = None if old_latent is None else old_latent[..., turn, :].to(distribution.mean)

    if bool((distribution.noise > 0).all()):
        if previous is not None:
            return _continue_noisy(distribution, old_rows, generator)
        latent = _draw_latent(distribution, num_chains, expectation_propagation, generator)
        rows = _draw_rows(distribution, distribution.noiseless(latent), distribution.noise.sqrt(), generator)
        return rows, None if distribution.row_root is None else latent

    if distribution.row_root is None and _has_full_rank(distribution):
        if previous is not None:
            return _continue_dense(distribution, old_rows, generator), None
        return _start_dense(distribution, num_chains, expectation_propagation, generator), None

    root = _latent_root(distribution)
    if previous is not None:
        kept = _continue_latent(distribution, root, old_rows, old_latent, generator)
        feasible = _is_inside(distribution, kept @ root.mT + distribution.mean.unsqueeze(-2)).all(-1)
        if bool(feasible.all()):
            return _finish_latent(distribution, root, kept, generator)
    z = _start_latent(distribution, root, num_chains, expectation_propagation, generator)
    if previous is not None:
        z = torch.where(feasible.unsqueeze(-1), kept, z)
    return _finish_latent(distribution, root, z, generator)


def _check_previous(distribution: TruncatedNormal, previous: tuple[Tensor, Tensor | None]) -> None:
    rows, latent = previous
    if rows.shape[:-2] != distribution.batch_shape or rows.shape[-1] > distribution.num_rows:
        raise ValueError(
            f"Previous rows must be batch_shape x k x m_old with batch_shape {tuple(distribution.batch_shape)} and "
            f"m_old at most {distribution.num_rows}; got {tuple(rows.shape)}."
        )
    if latent is not None and distribution.row_root is not None:
        size = distribution.row_root.rank
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
    lower, upper = distribution.lower.unsqueeze(-2), distribution.upper.unsqueeze(-2)
    scale = scale.unsqueeze(-2)
    uniform = torch.rand(centre.shape, dtype=centre.dtype, device=centre.device, generator=generator)
    uniform = uniform + 0.25 * torch.finfo(centre.dtype).eps  # in the open interval (0, 1)
    rows = centre + scale * sample_interval((lower - centre) / scale, (upper - centre) / scale, uniform)
    # Rounding only: the draw is inside the standardised interval.
    return torch.maximum(torch.minimum(rows, upper), lower)


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
    """Where rows of `h`, `batch_shape x k x m`, are strictly inside their bounds, or have noise to bring them there."""
    lower, upper = distribution.lower.unsqueeze(-2), distribution.upper.unsqueeze(-2)
    return ((h > lower) & (h < upper)) | (distribution.noise > 0).unsqueeze(-2)


# Every row has noise.


def _draw_latent(
    distribution: TruncatedNormal,
    num_chains: int,
    approximation: LatentApproximation | None,
    generator: torch.Generator | None,
) -> Tensor:
    like = distribution.mean
    batch = distribution.batch_shape
    if approximation is not None:
        mean, root = approximation.latent_mean.to(like), approximation.latent_root.to(like)
        normal = _randn(like, *batch, num_chains, root.shape[-1], generator=generator)
        return mean.unsqueeze(-2) + normal @ root.mT
    if distribution.row_root is not None:
        return _randn(like, *batch, num_chains, distribution.row_root.rank, generator=generator)
    # E[h | u] at a draw of u from its prior: less spread than a draw of h, and no factor of its covariance is needed.
    normal = _randn(like, *batch, num_chains, distribution.num_rows, generator=generator)
    solved = torch.linalg.solve_triangular(distribution.gamma_cholesky.mT, normal.mT, upper=True)
    return (distribution.dense_covariance @ solved).mT


def _continue_noisy(
    distribution: TruncatedNormal, old_rows: Tensor, generator: torch.Generator | None
) -> tuple[Tensor, Tensor | None]:
    """Keep old rows inside the bounds; draw the others given all old rows, if possible through latent coordinates."""
    if distribution.root is None:
        return _continue_dense(distribution, old_rows, generator), None
    root, m_old = distribution.root, old_rows.shape[-1]
    z = latent_given_rows(root[..., :m_old, :], distribution.noise[..., :m_old],
                           old_rows - distribution.mean[..., :m_old].unsqueeze(-2), generator)  # fmt: skip
    rows = _draw_rows(distribution, distribution.noiseless(z), distribution.noise.sqrt(), generator)
    return _keep(distribution, old_rows, rows), z


def latent_given_rows(root: Tensor, noise: Tensor, residual: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw `z` given `F z + v = residual`, a Gaussian, for residuals `batch_shape x k x m`."""
    weighted = root / noise.unsqueeze(-1)
    cholesky = cholesky_of_precision(root, 1 / noise)
    mean = torch.cholesky_solve((residual @ weighted).mT, cholesky)
    normal = torch.randn(mean.shape, dtype=root.dtype, device=root.device, generator=generator)
    return (mean + torch.linalg.solve_triangular(cholesky.mT, normal, upper=True)).mT


def _keep(distribution: TruncatedNormal, old_rows: Tensor, rows: Tensor) -> Tensor:
    m_old = old_rows.shape[-1]
    lower, upper = (bound[..., :m_old].unsqueeze(-2) for bound in (distribution.lower, distribution.upper))
    inside = (old_rows > lower) & (old_rows < upper)
    return torch.cat([torch.where(inside, old_rows, rows[..., :m_old]), rows[..., m_old:]], dim=-1)


# Dense and of full rank.


def _has_full_rank(distribution: TruncatedNormal) -> bool:
    factor, info = torch.linalg.cholesky_ex(distribution.gamma)
    pivots = factor.diagonal(dim1=-2, dim2=-1).square()
    return not bool(info.any()) and bool((pivots > FULL_RANK_PIVOT * distribution.gamma_diagonal).all())


def _start_dense(
    distribution: TruncatedNormal,
    num_chains: int,
    approximation: LatentApproximation | None,
    generator: torch.Generator | None,
) -> Tensor:
    batch = distribution.batch_shape
    if approximation is None:
        centre, variance = distribution.mean, distribution.gamma_diagonal
    else:
        centre = distribution.mean + approximation.latent_mean.to(distribution.mean)
        variance = approximation.latent_root.to(distribution.mean).square().sum(-1) + distribution.noise
    # A row that the approximation leaves no spread still needs a scale to be drawn on.
    least = torch.finfo(variance.dtype).eps * distribution.gamma_diagonal
    centre = centre.unsqueeze(-2).expand(*batch, num_chains, -1)
    return _draw_rows(distribution, centre, torch.maximum(variance, least).sqrt(), generator)


def _continue_dense(distribution: TruncatedNormal, old_rows: Tensor, generator: torch.Generator | None) -> Tensor:
    m_old = old_rows.shape[-1]
    cholesky = distribution.gamma_cholesky[..., :m_old, :m_old]  # of the leading block
    residual = (old_rows - distribution.mean[..., :m_old].unsqueeze(-2)).mT
    # The kept rows' noise says nothing of the new ones: h of all rows given the old u.
    cross = distribution.dense_covariance[..., :m_old, :]
    whitened = torch.linalg.solve_triangular(cholesky, cross, upper=False)
    centre = whitened.mT @ torch.linalg.solve_triangular(cholesky, residual, upper=False)
    variance = distribution.gamma_diagonal - whitened.square().sum(-2)
    least = torch.finfo(variance.dtype).eps * distribution.gamma_diagonal
    rows = _draw_rows(
        distribution, distribution.mean.unsqueeze(-2) + centre.mT, torch.maximum(variance, least).sqrt(), generator
    )
    return _keep(distribution, old_rows, rows)


# Rows without noise that latent coordinates determine.


def _latent_root(distribution: TruncatedNormal) -> Tensor:
    """A root of the covariance of `h`: the low-rank one, or one from the eigenvectors of a dense covariance.

    What a jitter may have added is not room that rows have.
    """
    if distribution.root is not None:
        return distribution.root
    values, vectors = torch.linalg.eigh(distribution.dense_covariance)
    rounding = max(distribution.num_rows * torch.finfo(values.dtype).eps, 4 * RELATIVE_JITTER[values.dtype])
    least = rounding * values[..., -1:]
    positive = values > least
    size = int(positive.sum(-1).max())
    root = vectors * torch.where(positive, values, torch.zeros_like(values)).sqrt().unsqueeze(-2)
    return root[..., distribution.num_rows - size :]


def require_feasible(distribution: TruncatedNormal, approximation: LatentApproximation | None = None) -> None:
    r"""Raise an error if rows without noise contradict each other.

    Args:
        distribution: The truncated normal.
        approximation: A Gaussian approximation of the latent coordinates, whose mean is looked at first.

    Raises:
        ContradictionError: If no feasible point is found, naming the rows that cannot hold together.
    """
    if bool((distribution.noise > 0).all()) or (distribution.row_root is None and _has_full_rank(distribution)):
        return
    root = _latent_root(distribution)
    feasible_point(distribution, root, _approximate_latent(distribution, root, approximation))


def _approximate_latent(
    distribution: TruncatedNormal, root: Tensor, approximation: LatentApproximation | None
) -> Tensor:
    """The mean of an approximation in the coordinates of a root; zero where there is none."""
    zero = torch.zeros(*distribution.batch_shape, root.shape[-1], dtype=root.dtype, device=root.device)
    if approximation is None or not bool(approximation.latent_mean.isfinite().all()):
        return zero
    if distribution.row_root is not None:
        return approximation.latent_mean.to(root)
    # The columns of the root are orthogonal.
    offset = approximation.latent_mean.to(root).unsqueeze(-1)
    norms = root.square().sum(-2).unsqueeze(-1)
    return (root.mT @ offset / torch.where(norms > 0, norms, torch.ones_like(norms))).squeeze(-1)


def _start_latent(
    distribution: TruncatedNormal,
    root: Tensor,
    num_chains: int,
    approximation: LatentApproximation | None,
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
    if old_latent is not None and distribution.row_root is not None:
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
    return rows, None if distribution.row_root is None else z
