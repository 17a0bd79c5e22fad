r"""Sweeps of expectation propagation, compiled for CPUs, for up to 150 rows.

At a hundred rows torch's overhead is ten times the arithmetic of a sweep. These are the same accelerated sweeps for
ordinary rows. The general sweeps continue from their result: it has converged, or they start afresh where a row is out
of the ordinary.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from botorch_skewgp.truncated.compilation import compiled
from botorch_skewgp.truncated.priors import Sites
from botorch_skewgp.truncated.priors.square import LEAST_SHARE, PRECISE_SITE
from botorch_skewgp.truncated.propagation.acceleration import (
    LONGER,
    MOST_FAILURES,
    NEAR,
    SHARES,
    SHORTER,
    SHORTEST_STEP,
)
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

FARTHEST = 10.0  # standard deviations in a tail, from which on moments in closed form lose their digits
NARROWEST = 0.1  # width of an interval in standard deviations, likewise
LEAST_SHARE_OF_LAST, LARGEST_SHARE_OF_LAST = SHARES
SQRT_HALF, SQRT_2_OVER_PI = math.sqrt(0.5), math.sqrt(2 / math.pi)


@compiled()
def _subtract(target, factors, rows, is_triangular):
    """Subtract a combination of rows from a row, four at a time; of triangular ones what is right of the diagonal."""
    k, n = 0, len(target)
    while k + 4 <= len(factors):
        a, b, c, d = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        first, second, third, fourth = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for j in range(k if is_triangular else 0, n):
            target[j] -= a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
        k += 4
    while k < len(factors):
        a, first = factors[k], rows[k]
        for j in range(n):
            target[j] -= a * first[j]
        k += 1


@compiled()
def _product(covariance, prior_mean, precision, shift, upper, inverse, vectors, mean, variance, left):
    """Moments of the rows under prior and sites, and the shares of their precisions without their own site.

    False if a site is far more precise than the prior, or the product is no distribution.
    """
    m = len(prior_mean)
    root, offset, projected = vectors
    for i in range(m):
        if not (precision[i] >= 0 and precision[i] * covariance[i, i] <= PRECISE_SITE):
            return False
        root[i] = math.sqrt(precision[i])
        offset[i] = shift[i] - precision[i] * prior_mean[i]
    # I + S C S = U^T U, row by row, and U^-1, both upper triangular; inner loops run along rows
    for i in range(m):
        for j in range(i, m):
            upper[i, j] = root[i] * covariance[i, j] * root[j]
        upper[i, i] += 1.0
    for i in range(m):
        projected[:i] = upper[:i, i]
        _subtract(upper[i, i:], projected[:i], upper[:i, i:], False)
        if not upper[i, i] > 0:
            return False
        scale = 1.0 / math.sqrt(upper[i, i])
        for j in range(i, m):
            upper[i, j] *= scale
    inverse[:] = 0.0
    for i in range(m - 1, -1, -1):
        inverse[i, i] = 1.0 / upper[i, i]
        for k in range(i + 1, m):
            projected[k] = upper[i, k] * inverse[i, i]
        _subtract(inverse[i, i + 1 :], projected[i + 1 :], inverse[i + 1 :, i + 1 :], True)
    tells_little = False
    for i in range(m):
        total = 0.0
        for j in range(i, m):
            total += inverse[i, j] * inverse[i, j]
        left[i] = total
        tells_little |= not 1 - total > LEAST_SHARE
    # E h = mean + S^-1 (I - B^-1) S^-1 offset, or mean + C (offset - S B^-1 S C offset) where a site tells too little
    if tells_little:
        for i in range(m):
            total = 0.0
            for j in range(m):
                total += covariance[i, j] * offset[j]
            mean[i] = root[i] * total
    else:
        for i in range(m):
            mean[i] = offset[i] / root[i]
    for j in range(m):
        projected[j] = 0.0
    for i in range(m):
        for j in range(i, m):
            projected[j] += inverse[i, j] * mean[i]
    for i in range(m):
        total = 0.0
        for j in range(i, m):
            total += inverse[i, j] * projected[j]
        if tells_little:
            offset[i] -= root[i] * total
        else:
            mean[i] = prior_mean[i] + (mean[i] - total) / root[i]
            variance[i] = (1 - left[i]) / precision[i]
    if not tells_little:
        return True
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += covariance[i, j] * offset[j]
        mean[i] = prior_mean[i] + total
        if 1 - left[i] > LEAST_SHARE:
            variance[i] = (1 - left[i]) / precision[i]
            continue
        for j in range(m):
            projected[j] = 0.0
        for k in range(m):
            factor = root[k] * covariance[k, i]
            for j in range(k, m):
                projected[j] += inverse[k, j] * factor
        total = covariance[i, i]
        for j in range(m):
            total -= projected[j] * projected[j]
        variance[i] = total
        left[i] = 1 - precision[i] * total
    return True


@compiled()
def _site(mean, variance, lower, upper, noise):
    """The site that matches the moments of a row with a cavity, and whether they have all digits."""
    scale = math.sqrt(variance + noise)
    a, b = (lower - mean) / scale, (upper - mean) / scale
    flip = a + b > 0
    if flip:
        a, b = -b, -a
    if b < -FARTHEST or b - a < NARROWEST:
        return 0.0, 0.0, False
    # densities at the bounds over the probability; twice the latter
    probability = math.erfc(-b * SQRT_HALF)
    at_lower = at_upper = 0.0
    if a > -np.inf:
        probability -= math.erfc(-a * SQRT_HALF)
        at_lower = SQRT_2_OVER_PI * math.exp(-0.5 * a * a) / probability
    if b < np.inf:
        at_upper = SQRT_2_OVER_PI * math.exp(-0.5 * b * b) / probability
    moved = at_lower - at_upper
    spread = 1.0 - moved * moved
    if a > -np.inf:
        spread += at_lower * a
    if b < np.inf:
        spread -= at_upper * b
    lost = max(1.0 - spread, 0.0)
    remaining = noise + variance * spread
    if not remaining > 0:
        return 0.0, 0.0, False
    return lost / remaining, ((-moved if flip else moved) * scale + mean * lost) / remaining, True


@compiled()
def _approach(covariance, prior_mean, lower, upper, noise, sites, tolerance, max_iterations):
    """Sweep until sites, `2 x m`, change by no more than the tolerance; returns the number of sweeps, 0 for none."""
    m = len(prior_mean)
    factor, inverse, vectors = np.empty((m, m)), np.empty((m, m)), np.empty((3, m))
    mean, variance, left = np.empty(m), np.empty(m), np.empty(m)
    x, change, last, last_change, ahead = (
        sites.copy(),
        np.empty((2, m)),
        np.empty((2, m)),
        np.empty((2, m)),
        np.empty((2, m)),
    )
    step, previous, failures, taken, has_last = 1.0, np.inf, 0, False, False
    for iteration in range(1, max_iterations + 1):
        if not _product(covariance, prior_mean, x[0], x[1], factor, inverse, vectors, mean, variance, left):
            return 0
        residual = 0.0
        for i in range(m):
            if not (left[i] > 0 and variance[i] > 0):
                return 0
            cavity_mean, cavity_variance = (mean[i] - x[1, i] * variance[i]) / left[i], variance[i] / left[i]
            precision, shift, is_right = _site(cavity_mean, cavity_variance, lower[i], upper[i], noise[i])
            if not is_right:
                return 0
            change[0, i], change[1, i] = precision - x[0, i], shift - x[1, i]
            residual = max(residual, abs(change[0, i]) * variance[i])
            residual = max(residual, abs(change[1, i] - change[0, i] * mean[i]) * math.sqrt(variance[i]))
        if not residual < np.inf:
            return 0
        if residual <= tolerance:
            sites[:] = x
            return iteration
        grew = residual > previous
        step = max(SHORTER * step, SHORTEST_STEP) if grew and not taken else min(LONGER * step, 1.0)
        failures += grew and taken
        previous = residual
        taken = not grew and step == 1.0 and residual <= NEAR and failures < MOST_FAILURES and has_last
        share = 0.0
        if taken:
            along = squared = 0.0
            for i in range(m):
                for j in range(2):
                    weight = variance[i] * variance[i] if j == 0 else variance[i]
                    difference = change[j, i] - last_change[j, i]
                    along += weight * difference * change[j, i]
                    squared += weight * difference * difference
            share = along / squared if squared > 0 else 0.0
            share = min(max(share, LEAST_SHARE_OF_LAST), LARGEST_SHARE_OF_LAST)
        for i in range(m):
            for j in range(2):
                ahead[j, i] = x[j, i] + change[j, i]
                if taken:
                    ahead[j, i] -= share * (x[j, i] - last[j, i] + change[j, i] - last_change[j, i])
            if not ahead[0, i] >= 0:
                ahead[0, i], ahead[1, i] = x[0, i] + change[0, i], x[1, i] + change[1, i]
        last[:], last_change[:], has_last = x, change, True
        x += step * (ahead - x)
    return 0


@compiled()
def _approach_all(covariance, prior_mean, lower, upper, noise, sites, tolerance, max_iterations):
    """Sweep for each distribution of a batch; returns the largest number of sweeps."""
    most = 0
    for i in range(len(prior_mean)):
        done = _approach(
            covariance[i], prior_mean[i], lower[i], upper[i], noise[i], sites[i], tolerance, max_iterations
        )
        most = max(most, done)
    return most


def approach(distribution: TruncatedNormal, sites: Sites, tolerance: float, max_iterations: int) -> tuple[Sites, int]:
    r"""Sites at the fixed point up to rounding, if no row is far in a tail, narrow or precise.

    Args:
        distribution: The truncated normal, of double precision on a CPU, each row for itself.
        sites: Sites to start from.
        tolerance: The largest change of a site, in units of its row's marginal, at which the sweeps stop.
        max_iterations: The largest number of sweeps.

    Returns:
        The sites, the given ones for distributions of the batch that did not converge, and the largest number of sweeps
        of those that did; 0 if none did.
    """
    m = distribution.num_rows

    def flat(values: Tensor, *event: int) -> np.ndarray:
        return values.detach().expand(*distribution.batch_shape, *event).reshape(-1, *event).contiguous().numpy()

    both = np.stack([flat(entry, m) for entry in sites], axis=1)
    covariance, mean = flat(distribution.prior.covariance, m, m), flat(distribution.mean, m)
    lower, upper, noise = flat(distribution.lower, m), flat(distribution.upper, m), flat(distribution.noise, m)
    done = _approach_all(covariance, mean, lower, upper, noise, both, tolerance, max_iterations)
    if done == 0:
        return sites, 0
    found = (distribution.mean.new_tensor(both[:, j]).reshape(distribution.mean.shape) for j in range(2))
    return Sites(*found), done
