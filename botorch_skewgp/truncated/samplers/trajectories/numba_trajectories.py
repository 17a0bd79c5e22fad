r"""Trajectories of a truncated normal, compiled for CPUs: those of `eager`, chain by chain.

Where no row is refracted, one event (a reflection and the search for the next one) is a single streaming pass over the
rows. Three ideas keep that pass at a handful of instructions for every row:

* *Fixed frame.* A trajectory is `x(t) = a cos t + b sin t`, with `t` since its start. A reflection at `t` that
  changes the velocity by `-k g`, `g` a row of `Gamma`, is `a += k sin(t) g` and `b -= k cos(t) g`: positions and
  velocities are never rotated.
* *Two linear tests instead of a root.* Let every row be inside its bounds at `t0`, and let `h = t1 - t0 <= pi/2`.
  A row that leaves over its lower bound between `t0` and `t1` has `x(t1) < lower`, or it has come back by `t1`.
  The latter needs a minimum below `lower`; there `x < 0`, hence `x'' = -x > 0`, and from that minimum to `t1` the
  row is convex: its tangent at `t1`, followed back to `t0`, ends below `lower`. So only rows with
  `min(x(t1), x(t1) - h x'(t1)) < lower` need their exact hitting time, and both terms are linear in `(a, b)`.
  Upper bounds are the mirror image.
* *A short look ahead.* `t1` is a few mean gaps between reflections after `t0`. If nothing is hit before `t1`, the
  search goes on from there. How far it looks does not change the trajectory.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_skewgp.truncated.compilation import compiled
from botorch_skewgp.truncated.step_factor import Heights

# Rows whose flags are the bits of one number. The arrays are padded to a multiple, so that inner loops have a fixed
# length.
BLOCK = 16
LOOK_AHEAD = 2.0  # in mean gaps between reflections

# Infinite bounds are compared with, so neither `ninf` nor all of fast math is allowed.
FAST = {"contract", "reassoc", "nsz", "arcp"}


@compiled(inline="always")
def _half_angle_tangent(x, v, bound):
    """`tan(t/2)` of the first time at which `x cos t + v sin t` falls from `x >= bound` to `bound`; `inf` if none."""
    if x <= bound:  # at the bound, or beyond it by rounding
        if v <= 0.0:
            return 0.0
        root = v
    else:
        radicand = v * v + (x - bound) * (x + bound)
        if not radicand >= 0.0:
            return np.inf
        root = math.sqrt(radicand)
    if v > 0.0:
        return (v + root) / (x + bound) if x + bound > 0.0 else np.inf
    return (x - bound) / (root - v) if root - v > 0.0 else np.inf


@compiled(inline="always")
def _advance(cosine, sine, half_tangent):
    """Cosine and sine of `t + h` from those of `t` and `tan(h/2)`."""
    square = half_tangent * half_tangent
    inverse = 1.0 / (1.0 + square)  # a division costs as much as ten products
    c, s = (1.0 - square) * inverse, 2.0 * half_tangent * inverse
    return cosine * c - sine * s, sine * c + cosine * s


# Unsigned indices of whole arrays: a view for each block, or an index that may be negative, costs more than the
# arithmetic. Bits are real numbers, and added, so that the lanes line up.
@compiled(fastmath=FAST, forceinline=True)
def _update_and_flag(a, b, gamma, row, lower, upper, bits, flags, to_a, to_b, c, s, p, q):
    """Add `to_a g` and `to_b g`, `g = gamma[row]`, to the coefficients; flag the rows that may leave."""
    for k in range(np.uint64(a.shape[0])):
        flagged = 0.0
        for j in range(BLOCK):
            aj = a[k, j] + to_a * gamma[row, k, j]
            bj = b[k, j] + to_b * gamma[row, k, j]
            a[k, j] = aj
            b[k, j] = bj
            end, tangent = aj * c + bj * s, aj * p + bj * q
            low, high = (end, tangent) if end < tangent else (tangent, end)
            flagged += bits[j] if (low < lower[k, j]) | (high > upper[k, j]) else 0.0
        flags[k] = flagged


@compiled()
def _run_chain(position, moves, a, b, flags, bits, gamma, diagonal, lower, upper, horizon, max_events):
    """Run one chain with work arrays from outside; `moves`, `num_steps x m`, become positions. Returns the number of
    events, or -1 if one trajectory had too many, and the largest excess over a closed bound, in standard deviations.
    """
    num_steps, m = moves.shape
    num_blocks = lower.shape[0]
    flat_a, flat_b, flat_lower, flat_upper = a.reshape(-1), b.reshape(-1), lower.reshape(-1), upper.reshape(-1)
    total = 0
    excess = 0.0
    # Time is kept as T = tan(t/2): `left` to the horizon, `gap` between reflections, `best` to the next one.
    cos_horizon, sin_horizon, tan_horizon = math.cos(horizon), math.sin(horizon), math.tan(0.5 * horizon)
    gap = tan_horizon / m
    for step in range(num_steps):
        for i in range(m):
            flat_a[i] = position[i]
            flat_b[i] = moves[step, i]
        reflections = 0
        left = tan_horizon
        cos_start, sin_start = 1.0, 0.0
        row, change = 0, 0.0
        reach = LOOK_AHEAD
        since = 0.0
        while True:
            to_a, to_b = change * sin_start, -change * cos_start
            best = min(left, reach * gap, 1.0)
            at_end = best >= left
            cos_stop, sin_stop = cos_horizon, sin_horizon
            if not at_end:
                cos_stop, sin_stop = _advance(cos_start, sin_start, best)
            # 2 tan(h/2) >= h: following the tangent a little further back is on the safe side.
            c, s, p, q = cos_stop, sin_stop, cos_stop + 2.0 * best * sin_stop, sin_stop - 2.0 * best * cos_stop
            _update_and_flag(a, b, gamma, np.uint64(row), lower, upper, bits, flags, to_a, to_b, c, s, p, q)
            hit, wall = -1, 0.0
            for block in range(num_blocks):
                flagged = int(flags[block])
                if flagged == 0:
                    continue
                for j in range(BLOCK):
                    if flagged & (1 << j) == 0:
                        continue
                    i = block * BLOCK + j
                    ai, bi = flat_a[i], flat_b[i]
                    x, v = ai * cos_start + bi * sin_start, bi * cos_start - ai * sin_start
                    if min(ai * c + bi * s, ai * p + bi * q) < flat_lower[i]:
                        bound = flat_lower[i]
                        found = _half_angle_tangent(x, v, bound)
                        if found < best:
                            best, hit, wall = found, i, bound
                    if max(ai * c + bi * s, ai * p + bi * q) > flat_upper[i]:
                        bound = flat_upper[i]
                        found = _half_angle_tangent(-x, -v, -bound)
                        if found < best:
                            best, hit, wall = found, i, bound
            if hit >= 0:
                c, s = _advance(cos_start, sin_start, best)
            since += best
            if hit < 0:
                if at_end:
                    break
                left = (left - best) / (1.0 + left * best)
                cos_start, sin_start = c, s
                change = 0.0
                reach *= 2.0
                continue
            reflections += 1
            if reflections > max_events:
                return -1, excess
            left = (left - best) / (1.0 + left * best)
            cos_start, sin_start = c, s
            gap += 0.1 * (since - gap)
            since = 0.0
            reach = LOOK_AHEAD
            row = hit
            velocity = flat_b[row] * cos_start - flat_a[row] * sin_start
            change = 2.0 * velocity / diagonal[row]
            flat_a[row] = wall * cos_start - velocity * sin_start
            flat_b[row] = wall * sin_start + velocity * cos_start
        total += reflections
        for i in range(m):
            x = flat_a[i] * cos_horizon + flat_b[i] * sin_horizon
            # A row is beyond a bound by rounding only; `excess` lets the caller make sure of that.
            if x < flat_lower[i]:
                excess = max(excess, (flat_lower[i] - x) / math.sqrt(diagonal[i]))
                x = flat_lower[i]
            elif x > flat_upper[i]:
                excess = max(excess, (x - flat_upper[i]) / math.sqrt(diagonal[i]))
                x = flat_upper[i]
            position[i] = x
            moves[step, i] = x
    return total, excess


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
def _run_refracted(position, moves, x, v, beyond, num_beyond, gamma, lower, upper, jump, answer, horizon, max_events):
    """As `_run_chain`, through walls of finite height."""
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


def _pad(values: Tensor, fill: float) -> np.ndarray:
    """Pad the last dimension to a multiple of `BLOCK` and split it into blocks."""
    m = values.shape[-1]
    blocks = -(-m // BLOCK)
    missing = blocks * BLOCK - m
    padded = torch.nn.functional.pad(values, (0, missing), value=fill) if missing else values  # which may be large
    return padded.reshape(*values.shape[:-1], blocks, BLOCK).contiguous().numpy()


class NumbaTrajectories:
    """Trajectories as `EagerTrajectories`, on as many CPU threads as `torch.get_num_threads()` says."""

    def __init__(
        self, gamma: Tensor, lower: Tensor, upper: Tensor, limits: tuple[float, int], heights: Heights | None
    ) -> None:
        self._work: list[tuple[Any, Any]]  # shapes and types of work arrays
        arguments: tuple[np.ndarray, ...]
        if heights is None:
            self._kernel = _run_chain
            bits = (2 ** torch.arange(BLOCK)).to(lower).numpy()
            # a copy of the diagonal, as entries of the large matrix are far from every cache
            diagonal, bounds = gamma.diagonal().contiguous().numpy(), (_pad(lower, -math.inf), _pad(upper, math.inf))
            arguments = (bits, _pad(gamma, 0.0), diagonal, *bounds)
            self._work = [(bounds[0].shape, bits.dtype)] * 2 + [(len(bounds[0]), bits.dtype)]
        else:
            self._kernel = _run_refracted
            answer, m = heights.label.contiguous().numpy(), len(lower)
            arguments = (*(x.contiguous().numpy() for x in (gamma, lower, upper, heights.jump)), answer)
            self._work = [(m, np.float64)] * 2 + [(m, np.bool_), (int(answer.max()) + 1, np.int64)]
        self._arguments = (*arguments, *limits)

    def __call__(self, position: Tensor, velocities: Tensor) -> tuple[Tensor, Tensor, float]:
        """Run every chain; positions may be in the place of the velocities, which must be contiguous."""
        chains = len(position)
        start, every, counts = position.clone().numpy(), velocities.numpy(), torch.zeros(chains, dtype=torch.long)

        def run(chain: int) -> float:
            work = (np.zeros(*shape_and_type) for shape_and_type in self._work)
            counts[chain], excess = self._kernel(start[chain], every[:, chain], *work, *self._arguments)
            return float(excess)

        threads = min(torch.get_num_threads(), chains)
        if threads <= 1:
            return velocities, counts, max(map(run, range(chains)), default=0.0)
        with ThreadPoolExecutor(threads) as pool:
            return velocities, counts, max(pool.map(run, range(chains)))
