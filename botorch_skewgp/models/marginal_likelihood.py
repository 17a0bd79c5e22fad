r"""The log evidence: its parts, and the methods for the probability of interval rows.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
.. [Trinh2015bivariate] G. Trinh, A. Genz. Bivariate conditioning approximations for multivariate normal probabilities.
   Statistics and Computing 25, 2015.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.probability import MVNXPB
from torch import Tensor

from botorch_skewgp.truncated.draws import Draws
from botorch_skewgp.truncated.evidence import LogNormalizer, bridge_log_normalizer
from botorch_skewgp.truncated.propagation.corrections import corrected_log_normalizer
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

EvidenceMethod = Literal["exact", "ep", "ep_corrected", "mvnxpb"]


class Evidence(NamedTuple):
    r"""The parts of a model's evidence ([Benavoli2021unified]_, Corollaries 1-3).

    The skew prior is a Gaussian process given the rows of its pseudo-points: these are among the rows of the data, and
    their own normaliser divides the evidence.

    Args:
        number_log_density: The log density of the observations that are numbers, under the Gaussian process.
        rows: The interval rows given the numbers; those of the skew prior come first.
        prior_rows: The rows of the skew prior alone; none for a Gaussian prior.
    """

    number_log_density: Tensor
    rows: TruncatedNormal
    prior_rows: TruncatedNormal

    def log_evidence(self, of_rows: Tensor, of_prior_rows: Tensor) -> Tensor:
        r"""The log evidence from the log normalisers of its parts.

        Args:
            of_rows: The log normaliser of `rows`.
            of_prior_rows: The log normaliser of `prior_rows`.
        """
        return self.number_log_density + of_rows - of_prior_rows


def bivariate_log_normalizer(distribution: TruncatedNormal) -> Tensor:
    r"""The log normaliser of interval rows by bivariate conditioning ([Trinh2015bivariate]_), BoTorch's `MVNXPB`.

    Args:
        distribution: Interval rows with a positive definite `Gamma`; at least one.

    Raises:
        UnsupportedError: If answers may be slips.
    """
    if distribution.heights is not None:
        raise UnsupportedError('Bivariate conditioning does not support slips; use method="exact" or "ep".')
    bounds = torch.stack([distribution.lower, distribution.upper], dim=-1) - distribution.mean.unsqueeze(-1)
    return MVNXPB(covariance_matrix=distribution.gamma, bounds=bounds).solve()


def log_normalizer(distribution: TruncatedNormal, method: EvidenceMethod, draws: Draws | None = None) -> LogNormalizer:
    r"""The log normaliser of interval rows and its standard error, `None` if the method has none.

    Args:
        distribution: The interval rows.
        method: See `SkewGP.log_marginal_likelihood`.
        draws: Draws of the rows for the exact method; made if `None`.

    Raises:
        UnsupportedError: If the method is unknown, or does not support slips.
    """
    if method not in get_args(EvidenceMethod):
        raise UnsupportedError(f"method must be 'exact', 'ep', 'ep_corrected' or 'mvnxpb'; got {method!r}.")
    if distribution.num_rows == 0:
        return LogNormalizer(distribution.mean.new_zeros(()), distribution.mean.new_zeros(()))
    if method == "exact":
        return bridge_log_normalizer(distribution, draws)
    if method == "mvnxpb":
        return LogNormalizer(bivariate_log_normalizer(distribution), None)
    approximation = expectation_propagation(distribution)
    approximation.warn_of_competition()
    if method == "ep_corrected":
        return LogNormalizer(corrected_log_normalizer(approximation), None)
    return LogNormalizer(approximation.log_normalizer, None)
