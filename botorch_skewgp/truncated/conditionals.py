r"""Every row given all others, before truncation: for leave-one-out densities and derivatives of the normaliser."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class RowConditionals(NamedTuple):
    r"""The normal distributions of `u_i` given `u_{-i}` at draws of `u`.

    Args:
        mean: The conditional means, `batch_shape x num_draws x m`.
        scale: The conditional standard deviations, `batch_shape x 1 x m`.
    """

    mean: Tensor
    scale: Tensor


def row_conditionals(distribution: TruncatedNormal, rows: Tensor) -> RowConditionals:
    r"""The normal distribution of every row given all others, without the truncation.

    With the precision matrix `Lambda = Gamma^-1`, `u_i` given `u_{-i}` has the variance `1 / Lambda_ii` and the mean
    `u_i - (Lambda (u - mean))_i / Lambda_ii`. With a low-rank root and noise in every row this is `O(m r^2)`.

    Args:
        distribution: The truncated normal.
        rows: Values of `u`, `batch_shape x num_draws x m`.
    """
    diagonal, product = distribution.noisy_prior.precision(rows - distribution.mean.unsqueeze(-2))
    return RowConditionals(mean=rows - product / diagonal, scale=diagonal.rsqrt())
