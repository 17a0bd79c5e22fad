r"""The log evidence: its parts, and the methods for the probability of interval rows.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.truncated.draws import Draws
from botorch_skewgp.truncated.evidence import LogNormalizer, bridge_log_normalizer
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

EvidenceMethod = Literal["exact", "ep"] | Callable[[TruncatedNormal], Tensor]


class Evidence(NamedTuple):
    r"""The parts of the evidence ([Benavoli2021unified]_, Corollaries 1-3); that of the prior's rows divides it."""

    number_log_density: Tensor  # the log density of the observations that are numbers, under the Gaussian process
    rows: TruncatedNormal  # the interval rows given the numbers; those of the skew prior come first
    prior_rows: TruncatedNormal  # the rows of the skew prior alone; none for a Gaussian prior

    def log_evidence(self, of_rows: Tensor, of_prior_rows: Tensor) -> Tensor:
        """The log evidence from the log normalisers of its parts."""
        return self.number_log_density + of_rows - of_prior_rows


def log_normalizer(distribution: TruncatedNormal, method: EvidenceMethod, draws: Draws | None = None) -> LogNormalizer:
    """The log normaliser of interval rows and its standard error, `None` if the method has none."""
    if not callable(method) and method not in ("exact", "ep"):
        raise UnsupportedError(
            f"method must be 'exact', 'ep' or a function of interval rows, such as those of botorch_skewgp.papers; got "
            f"{method!r}."
        )
    if distribution.num_rows == 0:
        return LogNormalizer(distribution.mean.new_zeros(()), distribution.mean.new_zeros(()))
    if callable(method):
        return LogNormalizer(method(distribution), None)
    if method == "exact":
        return bridge_log_normalizer(distribution, draws)
    approximation = expectation_propagation(distribution)
    approximation.warn_of_competition()
    return LogNormalizer(approximation.log_normalizer, None)
