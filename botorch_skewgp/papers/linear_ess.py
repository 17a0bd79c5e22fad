r"""Linear elliptical slice sampling: every step draws from the feasible part of an ellipse.

.. [Gessner2020integrals] Gessner, Kanjilal, Hennig. Integrals over Gaussians under linear domain constraints. 2020.
.. [Wu2024fast] Wu, Gardner. arXiv 2407.10449, 2024.
"""

from __future__ import annotations

import math

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.truncated.row_factor import standard_normal
from botorch_skewgp.truncated.samplers.sampler import RowSampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

TWO_PI = 2 * math.pi


class LinearEllipticalSliceSampler(RowSampler):
    r"""Elliptical slice sampling of a truncated normal without rejections [Gessner2020integrals]_.

    A step draws a Gaussian direction `v` and moves to `x cos(theta) + v sin(theta)`, with `theta` uniform on all angles
    at which every row is inside its bounds. With `m` rows the free angle shrinks like `1 / m`, and chains need
    thousands of steps for one independent draw: this is the algorithm of the papers and a baseline. A step costs
    `O(m^2)` for every chain, `O(m r)` with a low-rank prior. Raises `UnsupportedError` where answers may be slips.

    Example:
        >>> model = SkewGP(X, Preference(pairs), draw_settings=DrawSettings(sampler=LinearEllipticalSliceSampler))
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        super().__init__(distribution)
        if distribution.heights is not None:
            raise UnsupportedError(
                f"{type(self).__name__} draws rows inside their bounds, and the answers of these may be slips; use "
                "DrawSettings(sampler='reflective')."
            )
        self._lower, self._upper = distribution.lower - distribution.mean, distribution.upper - distribution.mean

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Move every chain once; one ellipse for every chain, which is what the info counts."""
        position = state.position
        noisy_prior = self.distribution.noisy_prior
        normal = standard_normal((len(position), noisy_prior.num_normals), position, generator)
        direction = noisy_prior.colour(normal)
        theta = free_angle(position, direction, self._lower, self._upper, generator=generator).unsqueeze(-1)
        position = position * theta.cos() + direction * theta.sin()
        # Rounding only: the angle is free, but it may be so close to a wall that the last digit crosses it.
        position = torch.maximum(torch.minimum(position, self._upper), self._lower)
        return SamplerState(position), SamplerInfo(torch.ones_like(position[..., 0], dtype=torch.long))


def free_angle(x: Tensor, v: Tensor, lower: Tensor, upper: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw uniformly from the angles at which `lower <= x cos(theta) + v sin(theta) <= upper`, `num_chains`."""
    # no arc beyond a bound contains the angle zero, as positions are inside: sorted by their starts, with the running
    # maximum of their ends, arcs give the free intervals ([Wu2024fast]_, section 3)
    below, above = lower.isfinite(), upper.isfinite()
    positions = torch.cat([x[:, above], -x[:, below]], dim=-1)
    directions = torch.cat([v[:, above], -v[:, below]], dim=-1)
    walls = torch.cat([upper[above], -lower[below]], dim=-1)
    starts, ends = _forbidden_arcs(positions, directions, walls)
    starts, order = starts.sort(dim=-1)
    reached = ends.gather(-1, order).cummax(dim=-1).values
    left = torch.nn.functional.pad(reached, (1, 0), value=0.0)
    right = torch.nn.functional.pad(starts, (0, 1), value=TWO_PI)
    length = (right - left).clamp(min=0)  # overlapping arcs leave no interval between them
    cumulated = length.cumsum(-1)
    uniform = torch.rand(x.shape[:-1], dtype=x.dtype, device=x.device, generator=generator).unsqueeze(-1)
    target = uniform * cumulated[..., -1:]
    # rounding may put the target at the total
    index = torch.searchsorted(cumulated, target, right=True).clamp(max=length.shape[-1] - 1)
    chosen_left, chosen_length = left.gather(-1, index), length.gather(-1, index)
    along = target - (cumulated.gather(-1, index) - chosen_length)
    along = torch.minimum(along.clamp(min=0), chosen_length)  # rounding only
    return (chosen_left + along).squeeze(-1)


def _forbidden_arcs(x: Tensor, v: Tensor, wall: Tensor) -> tuple[Tensor, Tensor]:
    """Start and end in [0, 2 pi] of the arc where `x cos(theta) + v sin(theta) > wall`; both zero if there is none."""
    # With t = tan(theta / 2) the wall is met where (wall + x) t^2 - 2 v t + (wall - x) = 0. The root near zero is
    # written without the difference of large numbers, so that walls that nearly touch differ.
    gap, sum_ = wall - x, wall + x
    discriminant = v.square() - gap * sum_
    reaches = discriminant > 0
    s = v.abs() + discriminant.clamp(min=0).sqrt()
    # Rounding only: the gap is negative by a last digit where a low-rank position is at its wall.
    near = 2 * torch.atan2(gap.clamp(min=0), s)
    far = 2 * torch.atan2(s, sum_)
    start = torch.where(v >= 0, near, TWO_PI - far).clamp(min=0, max=TWO_PI)
    end = torch.where(v >= 0, far, TWO_PI - near).clamp(min=0, max=TWO_PI)
    return torch.where(reaches, start, 0.0), torch.where(reaches, end, 0.0)
