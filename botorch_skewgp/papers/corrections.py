r"""Expectation propagation's log normaliser of interval rows, corrected.

Expectation propagation replaces every tilted marginal by a Gaussian of its mean and variance and drops the higher
cumulants. To second order in these, the true log evidence differs from the approximation by

    log Z - log Z_EP = 1/2 sum_{i != j} sum_{l >= 3} c_il c_jl / l! (S_ij / (S_ii S_jj))^l

with `c_il` the `l`-th cumulant of the tilted distribution of row `i` and `S` the approximate posterior covariance of
the rows ([Opper2013perturbative]_). Terms of order 3 and 4 are kept.

.. [Opper2013perturbative] Opper, Paquet, Winther. JMLR 14, 2013.
"""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.exceptions import LargeCorrectionWarning
from botorch_skewgp.truncated.powered_factor import PoweredFactor
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.row_factor import RowFactor
from botorch_skewgp.truncated.step_factor import StepFactor
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import interval_cumulants, interval_moments, standardise

MAX_ENTRIES = 2**24  # of the covariance of rows that are held at a time
LARGE = (0.3, 0.01)  # nats, and share of the log evidence, beyond which a correction counts as large


@torch.no_grad()
def corrected_log_normalizer(distribution: TruncatedNormal) -> Tensor:
    r"""Expectation propagation's `log P(lower < u <= upper)` with the second-order correction.

    Within a tenth of a nat where it was tried. Computes `O(m^2)` numbers, block by block. Not differentiable. A
    `LargeCorrectionWarning` is issued where the correction is so large that the next orders may matter, as for many
    rows without noise that nearly repeat each other.

    Example:
        >>> value, _ = model.log_marginal_likelihood(corrected_log_normalizer)
    """
    approximation = expectation_propagation(distribution)
    approximation.warn_of_competition()
    cavity_mean, cavity_variance = approximation.cavity
    third, fourth = _cumulants(distribution.factor, cavity_mean, cavity_variance)
    scale = distribution.factor.scale(cavity_variance)
    share = cavity_variance / scale  # of the standardised row that is its noiseless part
    variance = torch.where(approximation.variance > 0, approximation.variance, torch.ones_like(scale))
    covariance_rows = approximation.product.covariance_rows
    m = distribution.num_rows
    total = distribution.mean.new_zeros(())
    cumulants = ((third * share.pow(3), 3, 6.0), (fourth * share.pow(4), 4, 24.0))
    for rows in torch.arange(m, device=scale.device).split(max(MAX_ENTRIES // max(m, 1), 1)):
        ratio = covariance_rows(rows) / torch.outer(variance[rows], variance)  # S_ij / (S_ii S_jj)
        of_itself = (torch.arange(len(rows), device=rows.device), rows)
        if distribution.count is None:
            ratio[of_itself] = 0
        for cumulant, order, factorial in cumulants:
            power = ratio.pow(order)
            if distribution.count is not None:  # pairs of different rows, of which one row stands for many
                power[of_itself] *= 1 - 1 / distribution.count[rows]
            cumulant = distribution.times_factors(cumulant)
            total = total + 0.5 * (power @ cumulant) @ cumulant[rows] / factorial
    value = approximation.log_normalizer
    if bool(total.abs() > LARGE[0] + LARGE[1] * value.abs()):
        warnings.warn(
            "The correction of expectation propagation's log evidence is large, so that what it leaves out may be as "
            "large. Use the exact method, or leave out rows without noise that nearly repeat others.",
            LargeCorrectionWarning,
            stacklevel=2,
        )
    return value + total


def _cumulants(factor: RowFactor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """The third and fourth cumulants of `(u - mean) / scale` under its factor, as `RowFactor.moments`."""
    if isinstance(factor, PoweredFactor):
        raise UnsupportedError(
            "Corrections of the evidence of answers with weights, count= of fractions, are not supported; use "
            'method="exact".'
        )
    bounds = [standardise(bound, mean, factor.scale(variance)) for bound in (factor.lower, factor.upper)]
    third, fourth = interval_cumulants(*bounds)
    if not isinstance(factor, StepFactor):
        return third, fourth
    _, m, v = interval_moments(*bounds)
    p = factor.attention(mean, variance)
    # moments about zero of the mixture with a standard normal, then its cumulants
    inside_4 = fourth + 4 * third * m + 3 * v.square() + 6 * v * m.square() + m.pow(4)
    moment_1 = p * m
    moment_2 = p * (v + m.square()) + (1 - p)
    moment_3 = p * (third + 3 * v * m + m.pow(3))
    moment_4 = p * inside_4 + 3 * (1 - p)
    variance = moment_2 - moment_1.square()
    central_3 = moment_3 - 3 * moment_1 * moment_2 + 2 * moment_1.pow(3)
    central_4 = moment_4 - 4 * moment_1 * moment_3 + 6 * moment_1.square() * moment_2 - 3 * moment_1.pow(4)
    return central_3, central_4 - 3 * variance.square()
