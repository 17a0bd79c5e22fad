r"""Batches of rows of new observations, for acquisition functions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class FantasyRows:
    r"""A batch of rows over the few points of a fantasy; see `botorch_skewgp.rows.rows.Rows`.

    Args:
        weight: A `batch_shape x m x n'` tensor.
        lower: A `batch_shape x m` tensor.
        upper: A `batch_shape x m` tensor; equal to `lower` in all rows for numbers.
        noise_covariance: A `batch_shape x m x m` tensor.
        slip: The probability of the answers as slips, `batch_shape x m` if each row is an answer, `batch_shape x 1` if
            all rows are one; `None` without slips.
        attention: The probability of answers that are neither slips nor guesses.
    """

    weight: Tensor
    lower: Tensor
    upper: Tensor
    noise_covariance: Tensor
    slip: Tensor | None = None
    attention: Tensor | float = 1.0

    @classmethod
    def at_points(cls, lower: Tensor, upper: Tensor, noise: Tensor) -> FantasyRows:
        """One row per point, with independent noise of given variances; all `batch_shape x n'`."""
        eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
        return cls(eye, lower, upper, torch.diag_embed(noise.to(lower).expand_as(lower)))
