r"""Reflective trajectories of a truncated normal on CUDA: one program for each chain, its rows in registers.

Every event loads one row of `Gamma` and touches nothing else outside the registers.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _half_angle_tangent(x, v, bound):
    """`tan(t/2)` of the first time at which `x cos t + v sin t` falls from `x >= bound` to `bound`; `inf` if none."""
    radicand = v * v + (x - bound) * (x + bound)
    real = radicand >= 0
    at_bound = x <= bound  # at the bound, or beyond it by rounding
    root = tl.where(at_bound, tl.abs(v), tl.sqrt(tl.where(real, radicand, 0.0)))
    rising = v > 0
    numerator = tl.where(rising, v + root, x - bound)
    denominator = tl.where(rising, x + bound, root - v)
    hits = (real | at_bound) & (denominator > 0)
    time = tl.where(hits, numerator / tl.where(hits, denominator, 1.0), float("inf"))
    return tl.where(at_bound & (v <= 0), 0.0, time)


@triton.jit
def _run_chains(
    position, moves, gamma, lower, upper, angles, counts, excesses, m, chains, num_steps, max_reflections,
    BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    batch = (program // chains).to(tl.int64)
    chain = program % chains
    rows = tl.arange(0, BLOCK)
    inside = rows < m
    gamma += batch * m * m
    low = tl.load(lower + batch * m + rows, mask=inside, other=float("-inf"))
    high = tl.load(upper + batch * m + rows, mask=inside, other=float("inf"))
    diagonal = tl.load(gamma + rows.to(tl.int64) * (m + 1), mask=inside, other=1.0)
    x = tl.load(position + (batch * chains + chain) * m + rows, mask=inside, other=0.0)
    tan_horizon = tl.load(angles)
    total = tl.zeros((), dtype=tl.int64)
    excess = tl.zeros((), dtype=tl.float64)
    for step in range(num_steps):
        move = moves + ((batch * num_steps + step) * chains + chain) * m + rows
        v = tl.load(move, mask=inside, other=0.0)
        left = tan_horizon
        reflections = tl.zeros((), dtype=tl.int32)
        going = reflections == 0
        while going:
            to_low = _half_angle_tangent(x, v, low)
            to_high = _half_angle_tangent(-x, -v, -high)
            times = tl.minimum(to_low, to_high)
            found = tl.min(times, 0)
            row = tl.min(tl.where(times == found, rows, BLOCK), 0)
            going = found.to(tl.float64) < left
            time = tl.where(going, found.to(tl.float64), left)
            cosine = ((1 - time * time) / (1 + time * time)).to(x.dtype)
            sine = (2 * time / (1 + time * time)).to(x.dtype)
            left = (left - time) / (1 + left * time)
            turned = x * cosine + v * sine
            v = v * cosine - x * sine
            x = turned
            if going:
                here = rows == row
                x = tl.where(here, tl.where(to_high < to_low, high, low), x)
                speed = tl.sum(tl.where(here, v, 0.0), 0)
                scale = tl.sum(tl.where(here, diagonal, 0.0), 0)
                v -= 2 * speed / scale * tl.load(gamma + row.to(tl.int64) * m + rows, mask=inside, other=0.0)
                reflections += 1
                going = reflections <= max_reflections
        # A row is beyond a bound by rounding only; the excess lets the caller make sure of that.
        beyond = tl.maximum(tl.maximum(low - x, x - high), 0.0) / tl.sqrt(diagonal)
        excess = tl.maximum(excess, tl.max(beyond, 0).to(tl.float64))
        x = tl.minimum(tl.maximum(x, low), high)
        tl.store(move, x, mask=inside)
        total = tl.where((total < 0) | (reflections > max_reflections), -1, total + reflections)
    tl.store(counts + program, total)
    tl.store(excesses + program, excess)


class TritonTrajectories:
    r"""Reflective trajectories of many chains on a CUDA device.

    Args:
        gamma: A `b x m x m` tensor, the covariance before truncation.
        lower: A `b x m` tensor of lower bounds of positions, which are rows less their mean.
        upper: A `b x m` tensor of upper bounds of positions.
        horizon: The length of a trajectory.
        max_reflections: The most reflections that one trajectory may have.
    """

    def __init__(self, gamma: Tensor, lower: Tensor, upper: Tensor, horizon: float, max_reflections: int) -> None:
        self.gamma, self.lower, self.upper = (values.detach().contiguous() for values in (gamma, lower, upper))
        # A tensor, because scalar arguments of a kernel are single precision.
        self.angles = torch.tensor([math.tan(0.5 * horizon)], dtype=torch.float64, device=gamma.device)
        self.max_reflections = max_reflections

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        r"""Run every chain.

        Args:
            position: A `b x num_chains x m` tensor.
            velocities: A contiguous `b x num_steps x num_chains x m` tensor; overwritten.

        Returns:
            The positions, in the place of `velocities`; the `b x num_chains` numbers of reflections, -1 for a chain
            that had too many; and the largest excess over a bound, put on the bound, in standard deviations.
        """
        batch, chains, m = position.shape
        block = max(16, triton.next_power_of_2(m))
        counts = torch.zeros(batch, chains, dtype=torch.long, device=position.device)
        excesses = torch.zeros(batch, chains, dtype=torch.float64, device=position.device)
        _run_chains[(batch * chains,)](
            position.detach().contiguous(),
            velocities,
            self.gamma,
            self.lower,
            self.upper,
            self.angles,
            counts,
            excesses,
            m,
            chains,
            velocities.shape[1],
            self.max_reflections,
            BLOCK=block,
            num_warps=min(32, max(1, block // 128)),
        )
        return velocities, counts, float(excesses.max())
