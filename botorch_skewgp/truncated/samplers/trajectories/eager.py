r"""Reflective trajectories of a truncated normal, in torch: the common interface of all of them.

A trajectory takes positions `b x num_chains x m` and velocities `b x num_steps x num_chains x m`, and returns the
positions after each step, the numbers of reflections, and the largest excess over a bound, in standard deviations.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def half_angle_tangent(x: Tensor, v: Tensor, bound: Tensor) -> Tensor:
    r"""`tan(t/2)` of the first time `t` in `[0, pi)` at which `x cos t + v sin t` falls to a bound.

    Args:
        x: Positions; those below their bounds, by rounding, count as at the bound.
        v: Velocities.
        bound: Lower bounds; `-inf` where there is none.

    Returns:
        The elementwise `tan(t/2)`, `inf` where the bound is not reached.
    """
    radicand = v.square() + (x - bound) * (x + bound)
    real = radicand >= 0
    at_bound = x <= bound
    root = torch.where(at_bound, v.abs(), torch.where(real, radicand, 0).sqrt())
    rising = v > 0
    numerator = torch.where(rising, v + root, x - bound)
    denominator = torch.where(rising, x + bound, root - v)
    reached = (real | at_bound) & (denominator > 0)
    time = torch.where(reached, numerator / denominator, math.inf)
    return torch.where(at_bound & ~rising, 0, time)


def advance(x: Tensor, v: Tensor, time: Tensor, left: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Move chains to their next event, or to the end of their trajectory if that is earlier.

    Args:
        x: Positions, `b x num_chains x m`.
        v: Velocities.
        time: `tan(t/2)` of the time to the next event, `b x num_chains`.
        left: `tan(t/2)` of the remaining time, in double precision.

    Returns:
        Positions, velocities, `tan(t/2)` of the remaining time, and whether a chain has an event.
    """
    time = time.to(left)
    hit = time < left
    time = torch.where(hit, time, left)
    left = (left - time) / (1 + left * time)
    c, s = (1 - time.square()) / (1 + time.square()), 2 * time / (1 + time.square())
    c, s = c.to(x).unsqueeze(-1), s.to(x).unsqueeze(-1)
    return x * c + v * s, v * c - x * s, left, hit


def _follow(
    x: Tensor,
    v: Tensor,
    gamma: DenseGamma | LowRankGamma,
    lower: Tensor,
    upper: Tensor,
    horizon: float,
    max_reflections: int,
) -> tuple[Tensor, Tensor]:
    """Follow `b x num_chains x m` positions and velocities, every chain to its own next event; ends and reflections."""
    two_sided = bool(upper.isfinite().any())
    lower, upper, diagonal = (values.unsqueeze(-2).expand_as(x) for values in (lower, upper, gamma.diagonal))
    left = torch.full(x.shape[:-1], math.tan(0.5 * horizon), dtype=torch.float64, device=x.device)
    reflections = torch.zeros(left.shape, dtype=torch.long, device=x.device)
    while True:
        times, walls = half_angle_tangent(x, v, lower), lower
        if two_sided:
            to_upper = half_angle_tangent(-x, -v, -upper)
            walls = torch.where(to_upper < times, upper, lower)
            times = torch.minimum(times, to_upper)
        found, row = times.min(dim=-1, keepdim=True)
        x, v, left, hit = advance(x, v, found.squeeze(-1), left)
        if not bool(hit.any()):
            return x, reflections
        reflections = reflections + hit
        if int(reflections.max()) > max_reflections:
            return x, reflections.masked_fill(reflections > max_reflections, -1)
        hit = hit.unsqueeze(-1)
        x = x.scatter(-1, row, torch.where(hit, walls.gather(-1, row), x.gather(-1, row)))
        change = torch.where(hit, 2 * v.gather(-1, row) / diagonal.gather(-1, row), 0)
        v = v - change * gamma.rows(row.squeeze(-1))


class DenseGamma:
    """The covariance of the rows, `b x m x m`, read by rows."""

    def __init__(self, gamma: Tensor) -> None:
        self.gamma, self.diagonal = gamma, gamma.diagonal(dim1=-2, dim2=-1)
        self._batch = torch.arange(gamma.shape[0], device=gamma.device).unsqueeze(-1)

    def rows(self, row: Tensor) -> Tensor:
        """Rows of the matrix, `b x k x m` for indices `b x k`."""
        return self.gamma[self._batch, row]


class LowRankGamma:
    """The covariance `F F^T + diag(noise)` of the rows, `F` of shape `b x m x r`, built row by row as needed."""

    def __init__(self, root: Tensor, noise: Tensor) -> None:
        self.root, self.noise = root, noise
        self.diagonal = root.square().sum(-1) + noise
        self._batch = torch.arange(root.shape[0], device=root.device).unsqueeze(-1)

    def rows(self, row: Tensor) -> Tensor:
        """Rows of the matrix, `b x k x m` for indices `b x k`."""
        rows = self.root[self._batch, row] @ self.root.mT
        return rows.scatter_add(-1, row.unsqueeze(-1), self.noise[self._batch, row].unsqueeze(-1))


class EagerTrajectories:
    """Trajectories of rows less their mean, in torch."""

    def __init__(
        self, gamma: DenseGamma | LowRankGamma, lower: Tensor, upper: Tensor, horizon: float, max_reflections: int
    ) -> None:
        self.gamma, self.lower, self.upper = gamma, lower, upper
        self.horizon, self.max_reflections = horizon, max_reflections

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        positions, counts, excess = [], torch.zeros((), dtype=torch.long, device=position.device), 0.0
        lower, upper, scale = (values.unsqueeze(-2) for values in (self.lower, self.upper, self.gamma.diagonal.sqrt()))
        for velocity in velocities.unbind(1):
            end, reflections = _follow(
                position, velocity, self.gamma, self.lower, self.upper, self.horizon, self.max_reflections
            )
            counts = torch.where((counts < 0) | (reflections < 0), -1, counts + reflections)
            if bool((counts < 0).any()):
                return velocities, counts, excess
            excess = max(excess, float((torch.maximum(lower - end, end - upper) / scale).max()))
            position = torch.minimum(torch.maximum(end, lower), upper)  # rounding only, as the excess says
            positions.append(position)
        return torch.stack(positions, dim=1), counts, excess
