r"""Expectation propagation that goes on from where it was."""

from __future__ import annotations

from botorch_skewgp.truncated.expectation_propagation import ExpectationPropagation, expectation_propagation
from botorch_skewgp.truncated.sites import Sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

REDUCTION = 1e-3  # of the distance from the fixed point, whose square is the error of the value
TOLERANCE = 1e-7  # the distance that is always near enough
EXACT = 1e-9  # the same, where values must not depend on earlier ones


class WarmExpectationPropagation:
    r"""Expectation propagation for a distribution that changes a little from call to call.

    Every call starts at the sites that the last one ended with, as long as the rows are as many. They are far from the
    new fixed point by as much as the distribution has changed, and sweeps end once that distance is reduced enough: the
    value is off by its square, and as an optimiser closes in with ever smaller steps, it becomes as small as after a
    start from nowhere.

    Args:
        exact: Whether to go on to the fixed point, so that results do not depend on earlier calls but for rounding.
    """

    def __init__(self, exact: bool = False) -> None:
        self._exact = exact
        self._sites: Sites | None = None

    def __call__(self, distribution: TruncatedNormal) -> ExpectationPropagation:
        r"""Run to the fixed point.

        Args:
            distribution: Interval rows, at least one.
        """
        sites = self._sites
        if sites is not None and sites.precision.shape != distribution.mean.shape:
            sites = None
        if self._exact:
            result = expectation_propagation(distribution, sites, tolerance=EXACT)
        else:
            reduction = 0.0 if sites is None else REDUCTION
            result = expectation_propagation(distribution, sites, tolerance=TOLERANCE, reduction=reduction)
        self._sites = result.sites
        return result
