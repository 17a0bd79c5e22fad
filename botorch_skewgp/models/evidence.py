r"""The ways to compute the probability of interval rows, by name."""

from __future__ import annotations

from typing import Literal

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.probability import MVNXPB
from torch import Tensor

from botorch_skewgp.truncated.corrections import corrected_log_normalizer
from botorch_skewgp.truncated.draws import Draws
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

EvidenceMethod = Literal["exact", "ep", "ep_corrected", "mvnxpb"]


def log_normalizer(
    distribution: TruncatedNormal, method: EvidenceMethod, draws: Draws | None = None
) -> tuple[Tensor, Tensor]:
    r"""The log normaliser of interval rows and the variance of its error, NaN where the method gives none.

    Args:
        distribution: The interval rows.
        method: See `SkewGP.log_marginal_likelihood`.
        draws: Draws of the rows for the exact method; made if `None`.

    Raises:
        UnsupportedError: If the method is unknown.
    """
    unknown = distribution.mean.new_full((), torch.nan)
    if distribution.num_rows == 0:
        return distribution.mean.new_zeros(()), distribution.mean.new_zeros(())
    if method == "exact":
        estimate = bridge_log_normalizer(distribution, draws)
        return estimate.value, estimate.standard_error.square()
    if method == "ep":
        return expectation_propagation(distribution).log_normalizer, unknown
    if method == "ep_corrected":
        return corrected_log_normalizer(expectation_propagation(distribution)), unknown
    if method == "mvnxpb":
        gamma = distribution.dense_covariance + torch.diag_embed(distribution.noise)
        bounds = torch.stack([distribution.lower, distribution.upper], dim=-1) - distribution.mean.unsqueeze(-1)
        return MVNXPB(covariance_matrix=gamma, bounds=bounds).solve(), unknown
    raise UnsupportedError(f"method must be 'exact', 'ep', 'ep_corrected' or 'mvnxpb'; got {method!r}.")
