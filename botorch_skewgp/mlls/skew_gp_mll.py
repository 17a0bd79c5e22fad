r"""The log evidence by expectation propagation, the default objective for hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.mlls.warm_start import WarmExpectationPropagation
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class SkewGPMarginalLogLikelihood(RowMarginalLogLikelihood):
    r"""The log evidence by expectation propagation, plus the log priors of the hyperparameters.

    Numbers enter in closed form, interval rows through the expectation propagation fixed point, whose gradient needs no
    unrolling. Smooth and deterministic, as L-BFGS needs. Every evaluation starts at the sites of the last one. The
    value is a total, not divided by the number of observations.

    Example:
        >>> mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        >>> fit_gpytorch_mll(mll)
    """

    merges_equal_rows = True

    def __init__(self, likelihood: RowLikelihood, model: SkewGP) -> None:
        r"""
        Args:
            likelihood: The model's likelihood.
            model: The model.
        """
        super().__init__(likelihood, model)
        self.reset()

    def reset(self) -> None:
        """Forget the sites of the last evaluation."""
        self._expectation_propagation = WarmExpectationPropagation()

    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return self._expectation_propagation(rows).log_normalizer

    def _log_normalizers(self, rows: Sequence[TruncatedNormal]) -> Tensor:
        return self._expectation_propagation.log_normalizers(rows)
