r"""R-hat and effective size of split chains, compiled for CPUs: one pass over each functional, lags as they are needed.

Geyer's sum ends after a few lags where draws are good, and then needs neither transforms nor the lags beyond.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from botorch_skewgp.truncated.compilation import compiled

MAX_LAGS = 32  # beyond them one Fourier transform is faster
SUMS = {"contract", "reassoc"}  # let sums be vectorised


@compiled(fastmath=SUMS)
def _product(first, second, lag):
    """The sum of `first[i] second[i + lag]`."""
    total = 0.0
    for i in range(first.shape[0] - lag):
        total += first[i] * second[i + lag]
    return total


@compiled()
def _centre(values, centred):
    """Fill `centred` with chains less their means; the variance of the means, and whether all values are one."""
    chains, n = values.shape
    least, most, mean_of_means, between = values[0, 0], values[0, 0], 0.0, 0.0
    means = np.empty(chains)
    for j in range(chains):
        total = 0.0
        for i in range(n):
            least, most = min(least, values[j, i]), max(most, values[j, i])
            total += values[j, i]
        means[j] = total / n
        mean_of_means += means[j] / chains
        for i in range(n):
            centred[j, i] = values[j, i] - means[j]
    for j in range(chains):
        between += (means[j] - mean_of_means) ** 2 / (chains - 1)
    return between, least == most


@compiled(error_model="numpy")
def _r_hats(values, result):
    chains, n = values.shape[1:]
    centred = np.empty((chains, n))
    for row in range(values.shape[0]):
        between, constant = _centre(values[row], centred)
        within = 0.0
        for j in range(chains):
            within += _product(centred[j], centred[j], 0) / (chains * (n - 1))
        result[row] = np.nan if constant else math.sqrt((n * between / within + n - 1) / n)


@compiled()
def _correlation(centred, lag, variance, between):
    chains, n = centred.shape
    covariance = 0.0
    for j in range(chains):
        covariance += _product(centred[j], centred[j], lag) / (chains * n)
    return 1.0 - (variance * n / (n - 1) - covariance) / (variance + between)


@compiled(error_model="numpy")
def _sizes(values, result):
    chains, n = values.shape[1:]
    centred = np.empty((chains, n))
    number = chains * n
    last = max((n - 3) // 2, 0)
    for row in range(values.shape[0]):
        between, constant = _centre(values[row], centred)
        if constant:
            result[row] = number
            continue
        variance = 0.0
        for j in range(chains):
            variance += _product(centred[j], centred[j], 0) / number
        time, least = -1.0, np.inf
        for k in range(MAX_LAGS // 2):
            even = 1.0 if k == 0 else _correlation(centred, 2 * k, variance, between)
            pair = even + _correlation(centred, 2 * k + 1, variance, between)
            if k == last or not pair > 0.0:
                if even > 0.0 or pair >= 0.0:
                    time += even
                break
            least = min(least, pair)
            time += 2.0 * least
        else:
            result[row] = np.nan
            continue
        # a bound that keeps estimates for anticorrelated chains stable
        result[row] = number / max(time, 1.0 / math.log10(number))


def r_hats(values: Tensor) -> Tensor:
    r"""R-hat of split chains, NaN where all values are the same.

    Args:
        values: A `... x num_chains x num_steps` tensor of double precision on a CPU, of two steps or more.
    """
    return _by_rows(_r_hats, values)


def effective_sizes(values: Tensor) -> Tensor:
    r"""Effective size of split chains, NaN where the autocorrelation has not died out within `MAX_LAGS` lags.

    Args:
        values: As for `r_hats`.
    """
    return _by_rows(_sizes, values)


def _by_rows(fill, values):
    result = values.new_empty(values.shape[:-2])
    if result.numel() > 0:
        fill(values.contiguous().view(-1, *values.shape[-2:]).numpy(), result.view(-1).numpy())
    return result
