"""Climbs from many starts at once: projected L-BFGS in a box, with one evaluation for all that still climb."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from botorch.exceptions.errors import OptimizationGradientError
from numpy.typing import NDArray
from torch import Tensor

MEMORY = 8  # steps that tell of the curvature
FIRST_STEP = 0.3  # of the unit cube at most
ENOUGH = 1e-4  # share of the rise promised by the gradient that a step must reach
MAX_ROUNDS, MAX_SHORTER = 200, 12  # evaluations of a climb, and of one step
TOLERANCE = 1e-7  # share of all that a climb has risen, below which a rise ends it
HEAD_START, HOPE = 8, 10.0  # rounds after which starts are compared; their last rises that they may hope for
SAME = 0.01  # of the unit cube: a climb ends so near to a higher one

Array = NDArray[Any]


def climb(
    initial_conditions: Tensor,
    acquisition_function: Callable[[Tensor], Tensor],
    lower_bounds: Tensor,
    upper_bounds: Tensor,
    fixed_features: Iterable[int] = (),
    least: float = 0.0,
    max_rounds: int = MAX_ROUNDS,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """The highest points reached from starts, `b x q x d`, and their acquisition values, `b`.

    It takes the place of BoTorch's `gen_candidates_scipy` where there are no constraints. Fixed columns keep the values
    of each start. A climb ends when a step gains no more than `least`, or than a small share of all that it has risen;
    and when a higher one is so far ahead, or so near, that it will hardly be overtaken.

    Raises:
        OptimizationGradientError: If a gradient is not a number.
    """
    is_free = lower_bounds < upper_bounds
    is_free[list(fixed_features)] = False
    low, high = lower_bounds[is_free], upper_bounds[is_free]
    width = high - low

    def points(U: Array, which: Array) -> Tensor:
        X = initial_conditions[torch.from_numpy(which).to(low.device)].clone()
        u = torch.from_numpy(U).to(low).view(*X.shape[:-1], -1)
        X[..., is_free] = (low + width * u).where(u < 1, high)  # exactly the bounds, where it ends there
        return X

    @torch.enable_grad()
    def evaluate(U: Array, which: Array) -> tuple[Array, Array]:
        X = points(U, which).requires_grad_()
        values = acquisition_function(X)
        (gradient,) = torch.autograd.grad(values.sum(), X)
        in_units = (gradient[..., is_free] * width).flatten(1)
        return values.detach().double().cpu().numpy(), in_units.double().cpu().numpy()

    starts = ((initial_conditions[..., is_free] - low) / width).clamp(0, 1).flatten(1).double().cpu().numpy()
    rounding = 4 * torch.finfo(initial_conditions.dtype).eps
    ends, values = _climb(evaluate, starts, least, rounding, max_rounds)
    return points(ends, np.arange(len(ends))), torch.from_numpy(values).to(initial_conditions)


def _climb(
    evaluate: Callable[[Array, Array], tuple[Array, Array]],
    X: Array,
    least: float,
    rounding: float,
    max_rounds: int,
) -> tuple[Array, Array]:
    """The ends and their values of climbs in the unit cube; values and gradients are asked for some of the starts."""
    climbing = np.arange(len(X))
    values, gradients = evaluate(X, climbing)
    _check(gradients)
    first = values.copy()
    curvature = _Curvature(X)
    direction, length = np.zeros_like(X), np.ones(len(X))
    rise, num_steps, num_shorter = np.full(len(X), np.inf), np.zeros(len(X), int), np.zeros(len(X), int)
    moved = climbing
    for number in range(1, max_rounds):
        direction[moved], length[moved], num_shorter[moved] = curvature.ascent(moved, X, gradients), 1.0, 0
        if not len(climbing):
            break
        old = X[climbing]
        new = np.clip(old + length[climbing, None] * direction[climbing], 0, 1)
        reached, slopes = evaluate(new, climbing)
        promised = ((new - old) * gradients[climbing]).sum(1)
        is_step = reached >= values[climbing] + ENOUGH * promised.clip(min=0)  # never where a value is not a number

        moved, failed = climbing[is_step], climbing[~is_step]
        _check(slopes[is_step])
        curvature.add(moved, (new - old)[is_step], gradients[moved] - slopes[is_step])
        rise[moved] = reached[is_step] - values[moved]
        X[moved], values[moved], gradients[moved] = new[is_step], reached[is_step], slopes[is_step]
        num_steps[moved] += 1

        # the top of the parabola through both values, with the slope at the first
        lost = (values[failed] + promised[~is_step]) - reached[~is_step]
        with np.errstate(all="ignore"):
            length[failed] *= np.nan_to_num(0.5 * promised[~is_step] / lost, nan=0.1).clip(0.1, 0.5)
        num_shorter[failed] += 1

        best = values.max()
        small = np.maximum(least, TOLERANCE * (values - first)) + rounding * np.abs(values)
        has_ended = (rise <= small) | (num_shorter >= MAX_SHORTER)
        if number >= HEAD_START:
            has_ended |= (num_steps >= HEAD_START // 2) & (values + HOPE * rise < best)
        distance = np.abs(X[:, None] - X).max(-1, initial=0.0)
        has_ended |= ((distance < SAME) & (values > values[:, None])).any(1) & (number >= HEAD_START // 2)
        climbing = climbing[~has_ended[climbing]]
        moved = moved[~has_ended[moved]]
    return X, values


class _Curvature:
    """The last steps of each climb and the changes of its gradient, downwards, for the product of L-BFGS."""

    def __init__(self, X: Array) -> None:
        self._steps, self._changes = np.zeros((2, MEMORY, *X.shape))
        self._weights = np.zeros((MEMORY, len(X)))
        self._scale = np.zeros(len(X))

    def add(self, which: Array, step: Array, change: Array) -> None:
        """Note a step of some climbs, where the function is concave along it."""
        product, squared = (step * change).sum(1), (change * change).sum(1)
        is_concave = product > 1e-10 * np.sqrt(squared) * np.linalg.norm(step, axis=1)
        which, product = which[is_concave], product[is_concave]
        for kept, newest in (
            (self._steps, step[is_concave]),
            (self._changes, change[is_concave]),
            (self._weights, 1 / product),
        ):
            kept[:-1, which] = kept[1:, which]
            kept[-1, which] = newest
        self._scale[which] = product / squared[is_concave]

    def ascent(self, which: Array, X: Array, gradients: Array) -> Array:
        """The directions of some climbs, zero where a bound is in the way."""
        X, gradients = X[which], gradients[which]
        is_free = ~(((X <= 0) & (gradients < 0)) | ((X >= 1) & (gradients > 0)))
        uphill = gradients * is_free
        steps, changes, weights = self._steps[:, which], self._changes[:, which] * is_free, self._weights[:, which]
        steps = steps * is_free
        direction, along = uphill, []
        for step, change, weight in zip(steps[::-1], changes[::-1], weights[::-1], strict=True):
            along.append(weight * (step * direction).sum(1))
            direction = direction - along[-1][:, None] * change
        norm = np.linalg.norm(uphill, axis=1) + np.finfo(float).tiny
        first = FIRST_STEP * np.minimum(1, 1 / norm)
        direction = direction * np.where(self._scale[which] > 0, self._scale[which], first)[:, None]
        for step, change, weight, share in zip(steps, changes, weights, along[::-1], strict=True):
            direction = direction + (share - weight * (change * direction).sum(1))[:, None] * step
        is_uphill = (direction * uphill).sum(1) > 1e-12 * norm * np.linalg.norm(direction, axis=1)
        return np.where(is_uphill[:, None], direction, first[:, None] * uphill)


def _check(gradients: Array) -> None:
    if np.isnan(gradients).any():
        raise OptimizationGradientError(
            f"{np.isnan(gradients).sum()} of {gradients.size} entries of the acquisition function's gradient are NaN.",
            current_x=gradients,
        )
