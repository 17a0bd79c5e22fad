r"""Expectation propagation that starts at the sites of the previous call."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation, expectation_propagation
from botorch_skewgp.truncated.propagation.sites import Sites
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

# Of the distance from the fixed point, whose square is the error of the value; 1e-3 takes a seventh more sweeps.
REDUCTION = 1e-2
TOLERANCE = 1e-7  # the distance that is always near enough
TOLERANCE_OF_VALUES = 1e-4  # the same where no gradient is needed
MAX_ENTRIES = 2**18  # of covariances processed at a time, which a cache can hold


class WarmExpectationPropagation:
    r"""Expectation propagation for a distribution that changes a little from call to call.

    Every call starts at the sites of the last one, as long as the number of rows is the same. Their distance from the
    new fixed point is the change of the distribution, and sweeps end once it is reduced enough. The error of the value
    is its square, which vanishes as an optimiser's steps become smaller.
    """

    def __init__(self) -> None:
        self._sites: Sites | None = None
        self._non_negative = False

    def __call__(self, distribution: TruncatedNormal) -> ExpectationPropagation:
        """Run to the fixed point."""
        sites = self._sites
        if sites is not None and sites.precision.shape != distribution.mean.shape:
            sites = None
        reduction = 0.0 if sites is None else REDUCTION
        non_negative = self._non_negative and sites is not None
        result = expectation_propagation(
            distribution, sites, tolerance=TOLERANCE, reduction=reduction, non_negative=non_negative
        )
        self._sites, self._non_negative = result.sites, result.non_negative
        return result

    def log_normalizers(self, distributions: Sequence[TruncatedNormal]) -> Tensor:
        """The log normalisers of many distributions, each from the sites of the last call; `N`, without gradients.

        Many small ones run in one batch. The error of values is about the square of `TOLERANCE_OF_VALUES`. The sites
        for later calls are not changed.

        Equally many rows in each.
        """
        m = distributions[0].num_rows
        if m == 0:
            return torch.stack([distribution.mean.new_zeros(()) for distribution in distributions])
        size = max(MAX_ENTRIES // m**2, 1)
        values = []
        with torch.no_grad():
            for i in range(0, len(distributions), size):
                for batch in _stacked(distributions[i : i + size]):
                    start = None
                    if self._sites is not None and self._sites.precision.shape[-1] == m:
                        start = Sites(*(entry.expand(batch.mean.shape) for entry in self._sites))
                    result = expectation_propagation(batch, start, tolerance=TOLERANCE_OF_VALUES)
                    values.append(result.log_normalizer.reshape(-1))
        return torch.cat(values)


def _stacked(distributions: Sequence[TruncatedNormal]) -> list[TruncatedNormal]:
    """One batch of the distributions if their priors can be stacked; else each by itself."""
    prior = type(distributions[0].prior).stack([d.prior for d in distributions]) if len(distributions) > 1 else None
    if prior is None:
        return list(distributions)
    counts = [d.count for d in distributions if d.count is not None]
    heights = [d.heights for d in distributions if d.heights is not None]
    return [
        TruncatedNormal(
            mean=torch.stack([d.mean for d in distributions]),
            prior=prior,
            lower=torch.stack([d.lower for d in distributions]),
            upper=torch.stack([d.upper for d in distributions]),
            noise=torch.stack([d.noise for d in distributions]),
            count=torch.stack(counts) if counts else None,
            heights=Heights.stack(heights) if heights else None,
        )
    ]
