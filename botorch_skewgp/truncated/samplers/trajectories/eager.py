r"""Trajectories of a truncated normal in torch, and the common interface of all of them.

Trajectories take positions `num_chains x m` and velocities `num_steps x num_chains x m`, and return the positions after
each step, each chain's number of events (-1 where it was stopped for too many), and the largest excess over a closed
bound, in standard deviations. Bounds are of rows less their mean.

Where a row reaches a bound it is reflected. At a wall of finite height, of an answer that may be a slip, the potential
jumps by `log((outside + gain) / outside)` if the answer is attentive on one side only: a particle whose energy across
the wall, `v_n^2 / 2`, exceeds the jump goes on, slower or faster by it; else it is reflected ([Afshar2015reflection]_).
An answer of several rows changes where the last of its rows comes inside or the first one leaves; at its other bounds
nothing happens.

.. [Afshar2015reflection] H. M. Afshar, J. Domke. Reflection, refraction, and Hamiltonian Monte Carlo. NeurIPS 2015.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_skewgp.truncated.step_factor import Heights


def half_angle_tangent(x: Tensor, v: Tensor, bound: Tensor) -> Tensor:
    """`tan(t/2)` of the first `t` in `[0, pi)` at which `x cos t + v sin t` falls to a bound; `inf` if none."""
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


def next_crossing(x: Tensor, v: Tensor, bound: Tensor) -> Tensor:
    """As `half_angle_tangent`, of the first time in `(0, pi)` at which a bound is crossed, from either side: positive
    roots of `(x + l) T^2 - 2 v T + (l - x) = 0` in `T = tan(t/2)`.
    """
    radicand = v.square() + (x - bound) * (x + bound)
    q = v + torch.copysign(radicand.clamp(min=0).sqrt(), v)
    roots = torch.stack([q / (x + bound), (bound - x) / q])
    roots = torch.where((roots > 0) & (radicand >= 0), roots, math.inf)
    return roots.amin(0)


def advance(x: Tensor, v: Tensor, time: Tensor, left: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Move chains to their next event, or to the end, and whether they have one; times are `tan(t/2)`, `num_chains`."""
    hit = time < left
    time = torch.where(hit, time, left)
    left = (left - time) / (1 + left * time)
    c, s = (1 - time.square()) / (1 + time.square()), 2 * time / (1 + time.square())
    c, s = c.unsqueeze(-1), s.unsqueeze(-1)
    return x * c + v * s, v * c - x * s, left, hit


class EagerTrajectories:
    """Trajectories of rows less their mean that are reflected, or where answers may be slips refracted, at bounds."""

    def __init__(
        self, gamma: Tensor, lower: Tensor, upper: Tensor, limits: tuple[float, int], heights: Heights | None
    ) -> None:
        self.gamma, self.diagonal, self.lower, self.upper = gamma, gamma.diagonal(), lower, upper
        (self.horizon, self.max_events), self.heights = limits, heights
        self.jump = torch.full_like(lower, math.inf) if heights is None else heights.jump
        self._closed = self.jump == math.inf

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        """Run every chain."""
        positions, counts, excess = [], torch.zeros((), dtype=torch.long, device=position.device), 0.0
        scale = self.diagonal.sqrt()
        for velocity in velocities:
            end, events = self._follow(position, velocity)
            counts = torch.where((counts < 0) | (events < 0), -1, counts + events)
            if bool((counts < 0).any()):
                return velocities, counts, excess
            inside = torch.maximum(torch.minimum(end, self.upper), self.lower)
            position = torch.where(self._closed, inside, end)  # rounding only, as the excess says
            excess = max(excess, float(((position - end).abs() / scale).max()))
            positions.append(position)
        return torch.stack(positions), counts, excess

    def _time(self, x: Tensor, v: Tensor, bound: Tensor) -> Tensor:
        """`tan(t/2)` of the first time at which rows reach a lower bound, from above where it is closed."""
        falls = half_angle_tangent(x, v, bound)
        if self.heights is None:
            return falls
        return torch.where(self._closed, falls, next_crossing(x, v, bound))

    def _follow(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Follow positions and velocities, every chain to its own next event; ends and numbers of events."""
        lower, upper, jump = (values.expand_as(x) for values in (self.lower, self.upper, self.jump))
        diagonal = self.diagonal.expand_as(x)
        two_sided = bool(upper.isfinite().any())
        left = torch.full_like(x[..., 0], math.tan(0.5 * self.horizon))
        events = torch.zeros(left.shape, dtype=torch.long, device=x.device)
        beyond = (x < lower) | (x > upper)
        while True:
            times, walls = self._time(x, v, lower), lower
            if two_sided:
                to_upper = self._time(-x, -v, -upper)
                walls = torch.where(to_upper < times, upper, lower)
                times = torch.minimum(times, to_upper)
            found, row = times.min(dim=-1, keepdim=True)
            x, v, left, hit = advance(x, v, found.squeeze(-1), left)
            if not bool(hit.any()):
                return x, events
            events = events + hit
            if int(events.max()) > self.max_events:
                return x, events.masked_fill(events > self.max_events, -1)
            hit = hit.unsqueeze(-1)
            x = x.scatter(-1, row, torch.where(hit, walls.gather(-1, row), x.gather(-1, row)))
            velocity, across = v.gather(-1, row), diagonal.gather(-1, row)
            after = -velocity
            if self.heights is not None:
                was_beyond = beyond.gather(-1, row)
                others = self.heights.total(beyond.to(x)).gather(-1, row) - was_beyond.to(x)
                rise = torch.where(was_beyond, -jump.gather(-1, row), jump.gather(-1, row))
                rise = torch.where(others > 0, 0.0, rise)  # the answer is a slip on either side
                energy = velocity.square() - 2 * rise * across
                crosses = energy > 0
                after = torch.where(crosses, torch.copysign(energy.clamp(min=0).sqrt(), velocity), after)
                beyond = beyond.scatter(-1, row, was_beyond ^ (crosses & hit))
            v = v + torch.where(hit, (after - velocity) / across, 0) * self.gamma[row.squeeze(-1)]
            v = v.scatter(-1, row, torch.where(hit, after, velocity))
