"""Trajectories through walls of finite height, compiled for CPUs: those of `eager`, chain by chain."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from botorch_skewgp.truncated.compilation import compiled
from botorch_skewgp.truncated.samplers.trajectories.numba_trajectories import largest_of_threads
from botorch_skewgp.truncated.step_factor import Heights


@compiled(inline="always")
def _next_crossing(x, v, bound):
    """`tan(t/2)` of the first time in `(0, pi)` at which `x cos t + v sin t` crosses a bound; `inf` if none."""
    radicand = v * v + (x - bound) * (x + bound)
    if not radicand >= 0.0:
        return np.inf
    q = v + math.copysign(math.sqrt(radicand), v)
    first = q / (x + bound) if x + bound != 0.0 else np.inf
    second = (bound - x) / q if q != 0.0 else np.inf
    first = first if first > 0.0 else np.inf
    return min(first, second) if second > 0.0 else first


@compiled()
def _run_chain(position, moves, x, v, beyond, num_beyond, gamma, lower, upper, jump, answer, horizon, max_events):
    """Run one chain with work arrays from outside; `moves`, `num_steps x m`, become positions. Returns the number of
    events, or -1 if one trajectory had too many, and the largest excess over a closed bound, in standard deviations.
    """
    num_steps, m = moves.shape
    total, excess = 0, 0.0
    tan_horizon = math.tan(0.5 * horizon)
    for step in range(num_steps):
        num_beyond[:] = 0
        for i in range(m):
            x[i], v[i] = position[i], moves[step, i]
            beyond[i] = (x[i] < lower[i]) | (x[i] > upper[i])
            num_beyond[answer[i]] += beyond[i]
        left, events = tan_horizon, 0
        while True:
            best, hit, wall = left, -1, 0.0
            for i in range(m):
                if lower[i] > -np.inf:
                    found = _next_crossing(x[i], v[i], lower[i])
                    if found < best:
                        best, hit, wall = found, i, lower[i]
                if upper[i] < np.inf:
                    found = _next_crossing(x[i], v[i], upper[i])
                    if found < best:
                        best, hit, wall = found, i, upper[i]
            square = best * best
            c, s = (1.0 - square) / (1.0 + square), 2.0 * best / (1.0 + square)
            for i in range(m):
                xi, vi = x[i], v[i]
                x[i], v[i] = xi * c + vi * s, vi * c - xi * s
            if hit < 0:
                break
            left = (left - best) / (1.0 + left * best)
            events += 1
            if events > max_events:
                return -1, excess
            x[hit] = wall
            across, velocity = gamma[hit, hit], v[hit]
            rise = 0.0  # of the potential; the answer is a slip on either side if another of its rows is beyond
            if num_beyond[answer[hit]] == beyond[hit]:
                rise = -jump[hit] if beyond[hit] else jump[hit]
            energy = velocity * velocity - 2.0 * rise * across
            after = -velocity
            if energy > 0.0:
                after = math.copysign(math.sqrt(energy), velocity)
                beyond[hit] = not beyond[hit]
                num_beyond[answer[hit]] += 1 if beyond[hit] else -1
            change = (after - velocity) / across
            for i in range(m):
                v[i] += change * gamma[hit, i]
            v[hit] = after
        total += events
        for i in range(m):
            end = x[i]
            if jump[i] == np.inf:  # rows are beyond closed bounds by rounding only
                end = min(max(end, lower[i]), upper[i])
                excess = max(excess, abs(end - x[i]) / math.sqrt(gamma[i, i]))
            position[i] = end
            moves[step, i] = end
    return total, excess


class NumbaRefraction:
    """As `EagerTrajectories`, on as many CPU threads as `torch.get_num_threads()` says."""

    def __init__(
        self, gamma: Tensor, lower: Tensor, upper: Tensor, heights: Heights, horizon: float, max_events: int
    ) -> None:
        self.gamma, self.lower, self.upper = (_array(values) for values in (gamma, lower, upper))
        self.jump = _array(torch.log(heights.outside + heights.gain) - heights.log_outside)
        answer = torch.arange(len(lower)) if heights.answer is None else heights.answer.round().long()
        self.answer = answer.contiguous().numpy()
        self.horizon, self.max_events = horizon, max_events

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        """Run every chain."""
        chains, m = position.shape
        start, moves = _array(position).copy(), velocities.double()
        every, counts = moves.numpy(), torch.zeros(chains, dtype=torch.long)

        def run(chain: int) -> float:
            work = np.empty(m), np.empty(m), np.empty(m, np.bool_), np.empty(self.answer.max(initial=0) + 1, np.int64)
            events, excess = _run_chain(
                start[chain],
                every[:, chain],
                *work,
                self.gamma,
                self.lower,
                self.upper,
                self.jump,
                self.answer,
                self.horizon,
                self.max_events,
            )
            counts[chain] = events
            return float(excess)

        excess = largest_of_threads(run, chains)
        return moves.to(velocities), counts, excess


def _array(values: Tensor) -> np.ndarray:
    return values.detach().double().contiguous().numpy()
