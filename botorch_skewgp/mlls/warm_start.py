r"""Expectation propagation that goes on from where it was."""

from __future__ import annotations

from botorch_skewgp.truncated.expectation_propagation import (
    ExpectationPropagation,
    Sites,
    expectation_propagation,
)
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class WarmExpectationPropagation:
    r"""Expectation propagation for a distribution that changes a little from call to call.

    Every call starts at the sites that the last one ended with, as long as the rows are as many. The fixed point is the
    same up to its tolerance.
    """

    def __init__(self) -> None:
        self._sites: Sites | None = None

    def __call__(self, distribution: TruncatedNormal) -> ExpectationPropagation:
        r"""Run to the fixed point.

        Args:
            distribution: Interval rows, at least one.
        """
        sites = self._sites
        if sites is not None and sites.precision.shape != distribution.mean.shape:
            sites = None
        result = expectation_propagation(distribution, initial_sites=sites)
        self._sites = result.sites
        return result
