r"""The log evidence by expectation propagation, the default objective for hyperparameters."""

from __future__ import annotations

from torch import Tensor

from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.truncated.priors import Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation, expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

# Distance from the fixed point, in units of a row's marginal; its square is the error of the value, and a gradient's
# error is about this. From sites of before a looser one saves a seventh of a fit's sweeps.
TOLERANCE = 1e-7
TOLERANCE_NEARBY = 1e-5


class WarmExpectationPropagation:
    """Expectation propagation from the sites of the call before, as long as the number of rows is the same."""

    def __init__(self) -> None:
        self._sites: Sites | None = None
        self._non_negative = False

    def __call__(self, distribution: TruncatedNormal) -> ExpectationPropagation:
        """Run to the fixed point."""
        sites = self._sites
        if sites is not None and sites.precision.shape != distribution.mean.shape:
            sites = None
        non_negative = self._non_negative and sites is not None  # where the value is not stationary in the sites
        tolerance = TOLERANCE if sites is None or non_negative else TOLERANCE_NEARBY
        result = expectation_propagation(distribution, sites, tolerance, non_negative)
        self._sites, self._non_negative = result.sites, result.non_negative
        return result


class SkewGPMarginalLogLikelihood(RowMarginalLogLikelihood):
    r"""The log evidence by expectation propagation, plus the log priors of the hyperparameters.

    Numbers enter in closed form, interval rows through the expectation propagation fixed point, whose gradient needs no
    unrolling. Smooth and deterministic, as L-BFGS needs. Every evaluation starts at the sites of the last one.

    Example:
        >>> mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        >>> fit_gpytorch_mll(mll)
    """

    merges_equal_rows = True

    def __init__(self, likelihood: RowLikelihood, model: SkewGP) -> None:
        """Of a model and its likelihood."""
        super().__init__(likelihood, model)
        self.reset()

    def reset(self) -> None:
        """Forget the sites of the last evaluation."""
        self._expectation_propagation = WarmExpectationPropagation()

    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        return self._expectation_propagation(rows).log_normalizer
