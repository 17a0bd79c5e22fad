r"""Trajectories through walls of finite height, in torch.

Where a row reaches a bound, the potential jumps by `log((outside + gain) / outside)` if its answer is attentive on one
side only. A particle whose energy across the wall, `v_n^2 / 2`, exceeds the jump goes on, slower or faster by it; else
it is reflected ([Afshar2015reflection]_). An answer of several rows changes where the last of its rows comes inside or
the first one leaves; at its other bounds nothing happens.

The rows' times to a bound are the positive roots of `(x + l) T^2 - 2 v T + (l - x) = 0` in `T = tan(t/2)`, see
`botorch_skewgp.truncated.samplers.reflective_ess`. The root zero of a row at its bound does not count.

.. [Afshar2015reflection] H. M. Afshar, J. Domke. Reflection, refraction, and Hamiltonian Monte Carlo. NeurIPS 2015.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_skewgp.truncated.samplers.trajectories.eager import DenseGamma, LowRankGamma, advance
from botorch_skewgp.truncated.step_factor import Heights


def next_crossing(x: Tensor, v: Tensor, bound: Tensor) -> Tensor:
    r"""`tan(t/2)` of the first time `t` in `(0, pi)` at which `x cos t + v sin t` crosses a bound, from either side.

    Args:
        x: Positions.
        v: Velocities.
        bound: Bounds; infinite where there is none.

    Returns:
        The elementwise `tan(t/2)`, `inf` where the bound is not reached.
    """
    radicand = v.square() + (x - bound) * (x + bound)
    q = v + torch.copysign(radicand.clamp(min=0).sqrt(), v)
    roots = torch.stack([q / (x + bound), (bound - x) / q])
    roots = torch.where((roots > 0) & (radicand >= 0), roots, math.inf)
    return roots.amin(0)


class RefractiveTrajectories:
    r"""Trajectories of rows less their mean that are refracted or reflected at bounds.

    Args:
        gamma: The covariance before truncation.
        lower: A `b x m` tensor of lower bounds of positions; `-inf` where there is none.
        upper: A `b x m` tensor of upper bounds.
        heights: The heights of the rows' factors, `b x m`.
        horizon: The length of a trajectory.
        max_events: The most events that one trajectory may have.
    """

    def __init__(
        self,
        gamma: DenseGamma | LowRankGamma,
        lower: Tensor,
        upper: Tensor,
        heights: Heights,
        horizon: float,
        max_events: int,
    ) -> None:
        self.gamma, self.heights = gamma, heights.map(lambda values: values.unsqueeze(-2))
        self.lower, self.upper = lower.unsqueeze(-2), upper.unsqueeze(-2)
        self.jump = (torch.log(heights.outside + heights.gain) - heights.log_outside).unsqueeze(-2)
        self.horizon, self.max_events = horizon, max_events

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        r"""Run every chain.

        Args:
            position: A `b x num_chains x m` tensor.
            velocities: A `b x num_steps x num_chains x m` tensor.

        Returns:
            The positions after each step; the `b x num_chains` numbers of events, -1 for a chain stopped for too many;
            and the largest excess over a closed bound, in standard deviations.
        """
        positions, counts, excess = [], torch.zeros((), dtype=torch.long, device=position.device), 0.0
        scale, closed = self.gamma.diagonal.sqrt().unsqueeze(-2), self.jump == math.inf
        for velocity in velocities.unbind(1):
            end, events = self._follow(position, velocity)
            counts = torch.where((counts < 0) | (events < 0), -1, counts + events)
            if bool((counts < 0).any()):
                return velocities, counts, excess
            inside = torch.maximum(torch.minimum(end, self.upper), self.lower)
            position = torch.where(closed, inside, end)  # rounding only, as the excess says
            excess = max(excess, float(((position - end).abs() / scale).max()))
            positions.append(position)
        return torch.stack(positions, dim=1), counts, excess

    def _follow(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Follow positions and velocities, every chain to its own next event; ends and numbers of events."""
        lower, upper, jump = (values.expand_as(x) for values in (self.lower, self.upper, self.jump))
        diagonal = self.gamma.diagonal.unsqueeze(-2).expand_as(x)
        has_lower, has_upper = bool(lower.isfinite().any()), bool(upper.isfinite().any())
        left = torch.full(x.shape[:-1], math.tan(0.5 * self.horizon), dtype=torch.float64, device=x.device)
        events = torch.zeros(left.shape, dtype=torch.long, device=x.device)
        beyond = (x < lower) | (x > upper)
        while True:
            times, walls = torch.full_like(x, math.inf), lower
            if has_lower:
                times = next_crossing(x, v, lower)
            if has_upper:
                to_upper = next_crossing(x, v, upper)
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
            was_beyond, velocity = beyond.gather(-1, row), v.gather(-1, row)
            others = self.heights.total(beyond.to(x)).gather(-1, row) - was_beyond.to(x)
            rise = torch.where(was_beyond, -jump.gather(-1, row), jump.gather(-1, row))
            rise = torch.where(others > 0, torch.zeros_like(rise), rise)  # the answer is a slip on either side
            across = diagonal.gather(-1, row)
            energy = velocity.square() - 2 * rise * across
            crosses = energy > 0
            after = torch.where(crosses, torch.copysign(energy.clamp(min=0).sqrt(), velocity), -velocity)
            change = torch.where(hit, (after - velocity) / across, 0)
            v = v + change * self.gamma.rows(row.squeeze(-1))
            v = v.scatter(-1, row, torch.where(hit, after, velocity))
            beyond = beyond.scatter(-1, row, was_beyond ^ (crosses & hit))
