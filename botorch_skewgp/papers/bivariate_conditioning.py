r"""The log evidence by bivariate conditioning, for few rows.

.. [Trinh2015bivariate] G. Trinh, A. Genz. Bivariate conditioning approximations for multivariate normal probabilities.
   Statistics and Computing 25, 2015.
"""

from __future__ import annotations

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.probability import MVNXPB
from torch import Tensor

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


def bivariate_log_normalizer(distribution: TruncatedNormal) -> Tensor:
    r"""The log normaliser of interval rows by bivariate conditioning ([Trinh2015bivariate]_), BoTorch's `MVNXPB`.

    For up to about a hundred rows: `m` steps in Python of `O(m^2)` each.

    Args:
        distribution: Interval rows with a positive definite `Gamma`; at least one.

    Raises:
        UnsupportedError: If answers may be slips.

    Example:
        >>> value, _ = model.log_marginal_likelihood(bivariate_log_normalizer)
    """
    if distribution.heights is not None:
        raise UnsupportedError('Bivariate conditioning does not support slips; use method="exact" or "ep".')
    bounds = torch.stack([distribution.lower, distribution.upper], dim=-1) - distribution.mean.unsqueeze(-1)
    return MVNXPB(covariance_matrix=distribution.gamma, bounds=bounds).solve()


class BivariateConditioningMarginalLogLikelihood(RowMarginalLogLikelihood):
    r"""The log evidence with `bivariate_log_normalizer` for the interval rows.

    To compare with expectation propagation, for up to about a hundred rows: `m` steps in Python of `O(m^2)` each, and
    the automatic derivative through all of them. Rows are eliminated in pairs, in an order that depends on the
    hyperparameters: the value jumps where the order changes, and the gradient is that of a fixed order. `Gamma` must be
    positive definite.
    """

    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return bivariate_log_normalizer(rows)

    def _log_prior_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return bivariate_log_normalizer(rows)
