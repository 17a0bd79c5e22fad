r"""Batches of rows of new observations, for acquisition functions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class FantasyRows:
    """A batch of rows over the few points of a fantasy; see `botorch_skewgp.rows.rows.Rows`."""

    weight: Tensor  # `batch_shape x m x n'`
    lower: Tensor  # `batch_shape x m`
    upper: Tensor  # `batch_shape x m`; equal to `lower` in all rows for numbers
    noise_covariance: Tensor  # `batch_shape x m x m`
    # probability of the answers as slips, `batch_shape x m` if each row is an answer, `batch_shape x 1` if all rows
    # are one; `None` without slips
    slip: Tensor | None = None
    attention: Tensor | float = 1.0  # probability of answers that are neither slips nor guesses

    @classmethod
    def at_points(cls, lower: Tensor, upper: Tensor, noise: Tensor) -> FantasyRows:
        """One row per point, with independent noise of given variances; all `batch_shape x n'`."""
        eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
        return cls(eye, lower, upper, torch.diag_embed(noise.to(lower).expand_as(lower)))
