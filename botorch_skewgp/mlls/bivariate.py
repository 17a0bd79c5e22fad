r"""The log evidence by bivariate conditioning, for few rows.

.. [Trinh2015bivariate] G. Trinh, A. Genz. Bivariate conditioning approximations for multivariate normal probabilities.
   Statistics and Computing 25, 2015.
"""

from __future__ import annotations

from torch import Tensor

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.models.marginal_likelihood import bivariate_log_normalizer
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class BivariateConditioningMarginalLogLikelihood(RowMarginalLogLikelihood):
    r"""The log evidence with BoTorch's `MVNXPB` ([Trinh2015bivariate]_) for the interval rows.

    To compare with expectation propagation, for up to about a hundred rows: `m` steps in Python of `O(m^2)` each, and
    the automatic derivative through all of them. Rows are eliminated in pairs, in an order that depends on the
    hyperparameters: the value jumps where the order changes, and the gradient is that of a fixed order. `Gamma` must be
    positive definite.
    """

    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return bivariate_log_normalizer(rows)

    def _log_prior_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return bivariate_log_normalizer(rows)
