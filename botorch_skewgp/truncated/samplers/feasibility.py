r"""A point inside all bounds of rows without noise, or rows that contradict each other; without a linear program.

With `h = mean + F z`, damped Newton steps maximise the concave

    `-|z|^2 / 2 + sum_i log P(lower_i < h_i + s_i e_i <= upper_i),  e_i ~ N(0, 1),`

where `s_i` is the deviation of a row's noise, or a softness `delta` that shrinks geometrically where there is none.
If some `z` has all rows strictly inside, so has the maximiser for small `delta`. It tends to the closest feasible
point, where a bound pushes with a finite force `lambda`; the term of a row at distance `t delta` inside its bound
pushes with `phi(t) / (Phi(t) delta)`. The two are equal only if `phi(t) / Phi(t) = lambda delta`, hence `t` grows
without limit as `delta` shrinks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.truncated.factorization import cholesky_of_precision
from botorch_skewgp.truncated.row_factor import RowFactor
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

# Softness of the bounds, in standard deviations of the rows, from the first to the last attempt.
SOFTNESS = tuple(4.0**-k for k in range(17))
NEWTON_STEPS = 50


def feasible_point(distribution: TruncatedNormal, root: Tensor, point: Tensor) -> Tensor:
    r"""Latent coordinates at which all rows without noise are inside their bounds, found in double precision.

    Args:
        distribution: The truncated normal.
        root: A root of the covariance of its `h`, `batch_shape x m x r`.
        point: Where to start, `batch_shape x r`.

    Returns:
        A `batch_shape x r` tensor.

    Raises:
        ContradictionError: If none is found; it names a minimal set of rows that cannot hold together.
    """
    batch, m, r = distribution.batch_shape, distribution.num_rows, root.shape[-1]
    mean, factor = distribution.mean.double().reshape(-1, m), distribution.factor
    factor = factor.map(lambda values: values.double().reshape(-1, m))
    rows = _Rows(root.double().reshape(-1, m, r), mean, factor, torch.finfo(distribution.mean.dtype).eps)
    z, force = _search(rows, point.double().reshape(-1, r))
    inside = rows.inside(z)
    if not bool(inside.all()):
        element = int((~inside.all(-1)).nonzero()[0])
        noiseless = rows.factor.noise[element] == 0
        suspects = noiseless & ((force[element] > 0) | ~inside[element])
        names = _irreducible(rows, element, suspects.nonzero().squeeze(-1)[force[element][suspects].argsort()])
        where = f" of batch element {element}" if batch.numel() > 1 else ""
        raise ContradictionError(
            f"No feasible point was found: the rows{where} without noise with indices {names} cannot hold together. "
            "Give them noise, or remove the contradiction."
        )
    return z.reshape(*batch, r).to(point)


class _Rows(NamedTuple):
    """Rows `mean + F z + v` and their bounds, with one batch dimension; `eps` is the rounding of the caller's dtype."""

    root: Tensor
    mean: Tensor
    factor: RowFactor
    eps: float

    def inside(self, z: Tensor) -> Tensor:
        """Where rows without noise are inside their bounds, by a margin for rounding; true for all others."""
        h = self.mean + (self.root @ z.unsqueeze(-1)).squeeze(-1)
        size = self.mean.abs() + (self.root.abs() @ z.abs().unsqueeze(-1)).squeeze(-1)
        margin = 8 * self.eps * size
        factor = self.factor
        return ((h - margin > factor.lower) & (h + margin < factor.upper)) | (factor.noise > 0)

    def take(self, element: int, index: Tensor) -> _Rows:
        """Some rows of one element of the batch."""
        factor = self.factor.map(lambda values: values[element : element + 1, index])
        return _Rows(self.root[element : element + 1, index], self.mean[element : element + 1, index], factor, self.eps)


def _search(rows: _Rows, z: Tensor) -> tuple[Tensor, Tensor]:
    """Maximise with ever harder bounds until a point is inside all of them; also returns the rows' last forces."""
    scale = rows.root.square().sum(-1).sqrt()
    # A row that no coordinate moves: it is inside its bounds or never will be.
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    force = torch.zeros_like(scale)
    found = rows.inside(z).all(-1)
    for softness in SOFTNESS:
        if bool(found.all()):
            break
        noise = rows.factor.noise
        factor = rows.factor.with_noise(torch.where(noise > 0, noise, (softness * scale).square()))
        new, signed = _maximise(rows.root, rows.mean, factor, z, ~found)
        z, force = torch.where(found.unsqueeze(-1), z, new), signed.abs() * scale
        found = rows.inside(z).all(-1)
    return z, force


def _irreducible(rows: _Rows, element: int, suspects: Tensor) -> list[int]:
    """Leave suspects out, many and then one at a time, as long as the rest has no feasible point.

    The suspects come in the order of their forces, weakest first.
    """

    def contradict(index: Tensor) -> bool:
        part = rows.take(element, index)
        z, _ = _search(part, torch.zeros(1, part.root.shape[-1], dtype=part.root.dtype, device=part.root.device))
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


def _maximise(F: Tensor, mean: Tensor, factor: RowFactor, z: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    """Maximise `-|z|^2 / 2 + sum_i log P(lower_i < h_i + v_i <= upper_i)`, with noise; also returns rows' forces."""

    def at(z: Tensor) -> Tensor:
        return mean + (F @ z.unsqueeze(-1)).squeeze(-1)

    def objective(z: Tensor) -> Tensor:
        return factor.log_probability(at(z), zero).sum(-1) - 0.5 * z.square().sum(-1)

    zero = torch.zeros_like(mean)
    eye = torch.eye(F.shape[-1], dtype=F.dtype, device=F.device)
    value = objective(z)
    for _ in range(NEWTON_STEPS):
        deviation, moment, variance = factor.moments(at(z), zero)
        force = moment / deviation
        gradient = (F.mT @ force.unsqueeze(-1)).squeeze(-1) - z
        curvature = (1 - variance).clamp(min=0) / deviation.square()  # log-concave; rounding only
        cholesky, info = torch.linalg.cholesky_ex(eye + F.mT @ (curvature.unsqueeze(-1) * F))
        if bool(info.any()):
            # With hard bounds the identity is lost in rounding; the factor from a root keeps it.
            cholesky = cholesky_of_precision(F, curvature)
        direction = torch.cholesky_solve(gradient.unsqueeze(-1), cholesky).squeeze(-1)
        decrement = (gradient * direction).sum(-1)
        active = active & (decrement > 1e-9 * (1 + value.abs()))
        if not bool(active.any()):
            break
        step = torch.ones_like(value)
        for _ in range(30):
            trial = z + step.unsqueeze(-1) * direction
            trial_value = objective(trial)
            worse = active & ~(trial_value >= value + 1e-4 * step * decrement)
            if not bool(worse.any()):
                break
            step = torch.where(worse, 0.5 * step, step)
        accepted = active & ~worse
        z = torch.where(accepted.unsqueeze(-1), trial, z)
        value = torch.where(accepted, trial_value, value)
        active = accepted  # elsewhere only rounding is left
    return z, force
