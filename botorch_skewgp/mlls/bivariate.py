r"""The log evidence by bivariate conditioning, for few rows.

.. [Trinh2015bivariate] G. Trinh, A. Genz. Bivariate conditioning approximations for multivariate normal probabilities.
   Statistics and Computing 25, 2015.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.utils.probability import MVNXPB
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.observations import Observation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class BivariateConditioningMarginalLogLikelihood(RowMarginalLogLikelihood):
    r"""The log evidence with BoTorch's `MVNXPB` ([Trinh2015bivariate]_) for the interval rows.

    An approximation of another kind than expectation propagation, to compare with. Rows are eliminated in pairs, in an
    order that depends on the hyperparameters: the value jumps where the order changes, and the gradient is that of a
    fixed order. The cost is `m` steps in Python of `O(m^2)` each, and the automatic derivative goes through all of
    them: for up to about a hundred rows. `Gamma` must be positive definite.
    """

    def _log_evidence(self, prior: MultivariateNormal, observations: Sequence[Observation]) -> Tensor:
        row_model = self.model.row_model(prior, observations)
        value = row_model.number_log_density + _log_probability(row_model.truncated_normal)
        if self._num_prior_rows():
            value = value - _log_probability(self.model.prior_row_model(prior).truncated_normal)
        return value


def _log_probability(distribution: TruncatedNormal) -> Tensor:
    if distribution.num_rows == 0:
        return distribution.mean.new_zeros(())
    bounds = torch.stack([distribution.lower, distribution.upper], dim=-1) - distribution.mean.unsqueeze(-1)
    return MVNXPB(covariance_matrix=distribution.gamma, bounds=bounds).solve()
