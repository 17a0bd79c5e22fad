r"""Reflective trajectories of a truncated normal, in torch: the common interface of all of them.

A trajectory takes positions `b x num_chains x p` and velocities `b x num_steps x num_chains x p`, and returns the
positions after each step, the numbers of reflections, and the largest excess over a bound, in standard deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


def half_angle_tangent(x: Tensor, v: Tensor, bound: Tensor) -> Tensor:
    r"""`tan(t/2)` of the first time `t` in `[0, pi)` at which `x cos t + v sin t` falls to a bound.

    Args:
        x: Positions, not below their bounds except by rounding; those that are count as being at the bound.
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


class _Trajectory(NamedTuple):
    """End of a trajectory; the reflections add `alpha` and `beta` times rows of `Gamma` to start and velocity."""

    position: Tensor
    alpha: Tensor
    beta: Tensor
    reflections: Tensor


def _follow(
    x: Tensor,
    v: Tensor,
    gamma_rows: Callable[[Tensor], Tensor],
    diagonal: Tensor,
    lower: Tensor,
    upper: Tensor,
    horizon: float,
    max_reflections: int,
) -> _Trajectory:
    """Follow `b x num_chains x m` positions and velocities; every chain advances to its own next event."""
    two_sided = bool(upper.isfinite().any())
    lower, upper, diagonal = (values.unsqueeze(-2).expand_as(x) for values in (lower, upper, diagonal))
    left = torch.full(x.shape[:-1], math.tan(0.5 * horizon), dtype=torch.float64, device=x.device)
    cosine, sine = torch.ones_like(left), torch.zeros_like(left)
    alpha, beta = torch.zeros_like(x), torch.zeros_like(x)
    reflections = torch.zeros(left.shape, dtype=torch.long, device=x.device)
    while True:
        times, walls = half_angle_tangent(x, v, lower), lower
        if two_sided:
            to_upper = half_angle_tangent(-x, -v, -upper)
            walls = torch.where(to_upper < times, upper, lower)
            times = torch.minimum(times, to_upper)
        found, row = times.min(dim=-1, keepdim=True)
        time = found.squeeze(-1).to(left)
        hit = time < left
        time = torch.where(hit, time, left)
        left = (left - time) / (1 + left * time)
        c, s = (1 - time.square()) / (1 + time.square()), 2 * time / (1 + time.square())
        cosine, sine = cosine * c - sine * s, sine * c + cosine * s
        c, s = c.to(x).unsqueeze(-1), s.to(x).unsqueeze(-1)
        x, v = x * c + v * s, v * c - x * s
        if not bool(hit.any()):
            return _Trajectory(x, alpha, beta, reflections)
        reflections = reflections + hit
        if int(reflections.max()) > max_reflections:
            return _Trajectory(x, alpha, beta, reflections.masked_fill(reflections > max_reflections, -1))
        hit = hit.unsqueeze(-1)
        x = x.scatter(-1, row, torch.where(hit, walls.gather(-1, row), x.gather(-1, row)))
        change = torch.where(hit, 2 * v.gather(-1, row) / diagonal.gather(-1, row), 0)
        v = v - change * gamma_rows(row.squeeze(-1))
        alpha = alpha.scatter_add(-1, row, change * sine.to(x).unsqueeze(-1))
        beta = beta.scatter_add(-1, row, -change * cosine.to(x).unsqueeze(-1))


def _put_inside(x: Tensor, lower: Tensor, upper: Tensor, scale: Tensor) -> tuple[Tensor, float]:
    """Put what is beyond a bound by rounding on the bound; also the largest such excess in units of `scale`."""
    excess = (torch.maximum(lower - x, x - upper) / scale).max()
    return torch.minimum(torch.maximum(x, lower), upper), float(excess)


class EagerTrajectories:
    """Trajectories of rows less their mean for a dense `Gamma`, in torch."""

    def __init__(self, gamma: Tensor, lower: Tensor, upper: Tensor, horizon: float, max_reflections: int) -> None:
        self.gamma, self.diagonal = gamma, gamma.diagonal(dim1=-2, dim2=-1)
        self.lower, self.upper = lower, upper
        self.horizon, self.max_reflections = horizon, max_reflections
        self.batch = torch.arange(gamma.shape[0], device=gamma.device).unsqueeze(-1)

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        positions, counts, excess = [], torch.zeros((), dtype=torch.long, device=position.device), 0.0
        lower, upper, scale = (values.unsqueeze(-2) for values in (self.lower, self.upper, self.diagonal.sqrt()))
        for velocity in velocities.unbind(1):
            end = _follow(
                position,
                velocity,
                lambda row: self.gamma[self.batch, row],
                self.diagonal,
                self.lower,
                self.upper,
                self.horizon,
                self.max_reflections,
            )
            counts = torch.where((counts < 0) | (end.reflections < 0), -1, counts + end.reflections)
            if bool((counts < 0).any()):
                return velocities, counts, excess
            position, beyond = _put_inside(end.position, lower, upper, scale)
            excess = max(excess, beyond)
            positions.append(position)
        return torch.stack(positions, dim=1), counts, excess


class EagerLowRankTrajectories:
    """Trajectories of the white coordinates `(z, e)` of `u = mean + F z + sqrt(noise) e`; nothing is `m x m`."""

    def __init__(
        self, root: Tensor, noise: Tensor, lower: Tensor, upper: Tensor, horizon: float, max_reflections: int
    ) -> None:
        self.root, self.noise = root, noise
        self.diagonal = root.square().sum(-1) + noise
        self.lower, self.upper = lower, upper
        self.horizon, self.max_reflections = horizon, max_reflections
        self.batch = torch.arange(root.shape[0], device=root.device).unsqueeze(-1)

    def _gamma_rows(self, row: Tensor) -> Tensor:
        rows = self.root[self.batch, row] @ self.root.mT
        noise = self.noise[self.batch, row].unsqueeze(-1)
        return rows.scatter_add(-1, row.unsqueeze(-1), noise)

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        r = self.root.shape[-1]
        noise_sd = self.noise.sqrt().unsqueeze(-2)
        lower, upper, scale = (values.unsqueeze(-2) for values in (self.lower, self.upper, self.diagonal.sqrt()))
        cosine, sine = math.cos(self.horizon), math.sin(self.horizon)
        positions, counts, excess = [], torch.zeros((), dtype=torch.long, device=position.device), 0.0
        for velocity in velocities.unbind(1):
            x, v = (w[..., :r] @ self.root.mT + noise_sd * w[..., r:] for w in (position, velocity))
            x, beyond = _put_inside(x, lower, upper, scale)
            end = _follow(
                x, v, self._gamma_rows, self.diagonal, self.lower, self.upper, self.horizon, self.max_reflections
            )
            counts = torch.where((counts < 0) | (end.reflections < 0), -1, counts + end.reflections)
            if bool((counts < 0).any()):
                return velocities, counts, excess
            # The normal of wall i is (F_i, sqrt(noise_i) e_i), the i-th row of (F, diag(sqrt(noise))).
            a, b = (
                w + torch.cat([change @ self.root, noise_sd * change], dim=-1)
                for w, change in ((position, end.alpha), (velocity, end.beta))
            )
            position = a * cosine + b * sine
            excess = max(excess, beyond, _put_inside(end.position, lower, upper, scale)[1])
            positions.append(position)
        return torch.stack(positions, dim=1), counts, excess
