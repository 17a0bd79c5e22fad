"""Posteriors of increasing functions of a quantity with a skewed posterior."""

from __future__ import annotations

from collections.abc import Callable

import torch
from botorch.posteriors.transformed import TransformedPosterior
from torch import Tensor

from botorch_skewgp.posteriors.skew_gp_posterior import SkewGPPosterior


class MappedPosterior(TransformedPosterior):
    """The joint posterior of an increasing function of values with a `SkewGPPosterior`.

    Samples are those of BoTorch's `TransformedPosterior`; quantiles are mapped too. Subclasses define moments.
    """

    def __init__(self, latent: SkewGPPosterior, increasing: Callable[[Tensor], Tensor]) -> None:
        super().__init__(latent, sample_transform=increasing)
        self.latent = latent

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape."""
        return self.latent.batch_shape

    def quantile(self, value: Tensor | float) -> Tensor:
        """The marginal quantiles."""
        return self._sample_transform(self.latent.quantile(value))
