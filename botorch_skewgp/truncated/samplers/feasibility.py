"""Feasible rows to start chains from, or rows that contradict each other; without a linear program.

With `h = mean + F z`, damped Newton steps maximise the concave `-|z|^2 / 2 + sum_i log P(lower_i < h_i + s_i e_i <=
upper_i)`, `e_i ~ N(0, 1)`, where `s_i` is the deviation of a row's noise, or a softness that shrinks geometrically
where there is none. If some `z` has all rows strictly inside, so has the maximiser for a small softness: at the closest
feasible point bounds push with finite forces, and the terms with forces that grow without limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.truncated.factorization import cholesky_of_precision
from botorch_skewgp.truncated.priors import SiteProduct
from botorch_skewgp.truncated.row_factor import RowFactor, open_uniform, standard_normal
from botorch_skewgp.truncated.step_factor import StepFactor
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


def feasible_start(
    distribution: TruncatedNormal,
    num_chains: int,
    generator: torch.Generator | None = None,
    approximation: SiteProduct | None = None,
) -> Tensor:
    """Find rows inside their bounds, `num_chains x m`: draws of `h` where there are no walls, else all chains' `h` is
    that at `feasible_point`; and draws of `u` given `h`. Raises `ContradictionError`.
    """
    like = distribution.mean
    if bool(_walls(distribution.factor).any()):
        h = _between_walls(distribution, approximation).expand(num_chains, -1)
    else:
        z = standard_normal((num_chains, distribution.prior.rank), like, generator)
        if approximation is not None:
            z = approximation.latent_mean + z @ approximation.latent_root.mT
        h = distribution.noiseless(z)
    return distribution.factor.draw_given(h, open_uniform(h, generator))


def require_feasible(distribution: TruncatedNormal, approximation: SiteProduct) -> None:
    """Raise a `ContradictionError` that names them if rows without noise contradict each other."""
    if bool(_walls(distribution.factor).any()):
        _between_walls(distribution, approximation)


def _walls(factor: RowFactor) -> Tensor:
    """The rows that must be inside their bounds: those without noise whose answers cannot be slips, `m`."""
    without_noise = factor.noise == 0
    return without_noise & (factor.heights.outside == 0) if isinstance(factor, StepFactor) else without_noise


def _between_walls(distribution: TruncatedNormal, approximation: SiteProduct | None) -> Tensor:
    """Noiseless rows between the walls, from an approximation's mean if there is one."""
    root = distribution.prior.minimal_root()
    z = root.new_zeros(root.shape[-1])
    if approximation is not None and bool(approximation.latent_mean.isfinite().all()):
        z = approximation.latent_mean[len(approximation.latent_mean) - root.shape[-1] :]
    return distribution.mean + root @ feasible_point(distribution, root, z)


def feasible_point(distribution: TruncatedNormal, root: Tensor, point: Tensor) -> Tensor:
    """Coordinates by a root `m x r`, `r`, at which all rows without noise are inside their bounds, from a first point;
    else raises a `ContradictionError` that names a minimal set of rows that cannot hold together.
    """
    rows = _Rows(root, distribution.mean, distribution.factor)
    z, force = _search(rows, point)
    inside = rows.inside(z)
    if not bool(inside.all()):
        suspects = _walls(rows.factor) & ((force > 0) | ~inside)
        names = _irreducible(rows, suspects.nonzero().squeeze(-1)[force[suspects].argsort()])
        raise ContradictionError(
            f"No feasible point was found: the rows without noise with indices {names} cannot hold together. "
            "Give them noise, or remove the contradiction."
        )
    return z


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows `mean + F z + v` and their bounds."""

    root: Tensor
    mean: Tensor
    factor: RowFactor

    def inside(self, z: Tensor) -> Tensor:
        """Where walls are kept, by a margin for rounding; true for all other rows."""
        h = self.mean + self.root @ z
        margin = 8 * torch.finfo(z.dtype).eps * (self.mean.abs() + self.root.abs() @ z.abs())
        factor = self.factor
        return ((h - margin > factor.lower) & (h + margin < factor.upper)) | ~_walls(factor)


def _search(rows: _Rows, z: Tensor) -> tuple[Tensor, Tensor]:
    """Maximise with ever harder bounds until a point is inside all of them; also returns the rows' last forces."""
    scale = rows.root.square().sum(-1).sqrt()
    # A row that no coordinate moves: it is inside its bounds or never will be.
    scale = torch.where(scale > 0, scale, 1.0)
    force = torch.zeros_like(scale)
    for softness in (4.0**-k for k in range(17)):  # of the bounds, in standard deviations of the rows
        if bool(rows.inside(z).all()):
            break
        noise = rows.factor.noise
        factor = rows.factor.with_noise(torch.where(noise > 0, noise, (softness * scale).square()))
        z, signed = _maximise(rows.root, rows.mean, factor, z)
        force = signed.abs() * scale
    return z, force


def _irreducible(rows: _Rows, suspects: Tensor) -> list[int]:
    """Leave suspects out, weakest first, many and then one at a time, as long as the rest has no feasible point."""

    def contradict(index: Tensor) -> bool:
        part = _Rows(rows.root[index], rows.mean[index], rows.factor.map(lambda values: values[index]))
        z, _ = _search(part, part.root.new_zeros(part.root.shape[-1]))
        return not bool(part.inside(z).all())

    size = max(suspects.numel() // 2, 1)
    while True:
        start = 0
        while start < suspects.numel():
            rest = torch.cat([suspects[:start], suspects[start + size :]])
            if rest.numel() > 0 and contradict(rest):
                suspects = rest
            else:
                start += size
        if size == 1:
            return sorted(suspects.tolist())
        size //= 2


def _maximise(F: Tensor, mean: Tensor, factor: RowFactor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Maximise `-|z|^2 / 2 + sum_i log P(lower_i < h_i + v_i <= upper_i)`, with noise; also returns rows' forces."""

    def objective(z: Tensor) -> Tensor:
        return factor.log_probability(mean + F @ z, zero).sum() - 0.5 * z.square().sum()

    zero = torch.zeros_like(mean)
    eye = torch.eye(F.shape[-1], dtype=F.dtype, device=F.device)
    value = objective(z)
    for _ in range(50):
        deviation, moment, variance = factor.moments(mean + F @ z, zero)
        force = moment / deviation
        gradient = F.mT @ force - z
        curvature = (1 - variance).clamp(min=0) / deviation.square()  # log-concave; rounding only
        cholesky, info = torch.linalg.cholesky_ex(eye + F.mT @ (curvature.unsqueeze(-1) * F))
        if bool(info):
            # With hard bounds the identity is lost in rounding; the factor from a root keeps it.
            cholesky = cholesky_of_precision(F, curvature)
        direction = torch.cholesky_solve(gradient.unsqueeze(-1), cholesky).squeeze(-1)
        decrement = gradient @ direction
        if not bool(decrement > 1e-9 * (1 + value.abs())):
            break
        step = 1.0
        for _ in range(30):
            trial = z + step * direction
            trial_value = objective(trial)
            if bool(trial_value >= value + 1e-4 * step * decrement):
                break
            step *= 0.5
        else:  # only rounding is left
            break
        z, value = trial, trial_value
    return z, force
