"""The prior of rows given the sites of some of them."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors.base import RowPrior, Sites
from botorch_skewgp.truncated.priors.low_rank import LowRankPrior


class PriorGivenSites:
    r"""A prior of rows given the sites of some of them, which has latent coordinates of its own.

    Args:
        prior: The prior of all rows.
        which: A mask of length `m`.
        sites: The sites of these rows, in this order, of positive precision.
        mean: The prior mean of all rows, `batch_shape x m`.

    Attributes:
        mean: The mean of all rows given the sites, `batch_shape x m`.
        prior: Their prior around it.
    """

    def __init__(self, prior: RowPrior, which: Tensor, sites: Sites, mean: Tensor) -> None:
        padded = Sites(*(torch.zeros_like(mean).masked_scatter(which, entry) for entry in sites))
        factor = prior.wide.given(mean, padded, padded)
        assert factor is not None
        self.mean, self.prior = factor.moments.mean, LowRankPrior(prior.times(factor.latent_root.mT).mT)
