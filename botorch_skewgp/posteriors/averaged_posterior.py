"""The average of several distributions of the same values, such as the predictions of an ensemble's members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.posteriors import Posterior
from torch import Tensor

NUM_HALVINGS = 60  # of the interval between the members' quantiles


class AveragedPosterior(Posterior):
    r"""A mixture of posteriors: with probability `w_i` all values are those of posterior `i`.

    Args:
        members: Posteriors of the same shape with `mean`, `variance`, `cdf`, `density`, `quantile` and `rsample`, such
            as `SkewGPPosterior` and `WarpedPosterior`.
        weights: Their probabilities, `E`.
    """

    def __init__(self, members: Sequence[Any], weights: Tensor) -> None:
        self.members, self.weights = list(members), weights

    @property
    def device(self) -> torch.device:
        """The device of the posterior's tensors."""
        return self.members[0].device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the posterior's tensors."""
        return self.members[0].dtype

    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return self.members[0]._extended_shape(sample_shape)

    def _average(self, function: Callable[[Any], Tensor]) -> Tensor:
        values = torch.stack([function(member) for member in self.members], dim=-1)
        return values @ self.weights.to(values)

    @property
    def mean(self) -> Tensor:
        """The mean, `batch_shape x q x o`."""
        return self._average(lambda member: member.mean)

    @property
    def variance(self) -> Tensor:
        """The marginal variances, `batch_shape x q x o`: the mean of the variances and the variance of the means."""
        mean = self.mean
        return self._average(lambda member: member.variance + (member.mean - mean).square())

    def cdf(self, value: Tensor | float) -> Tensor:
        """The marginal probabilities `P(y <= value)`; values as in `SkewGPPosterior.cdf`."""
        return self._average(lambda member: member.cdf(value))

    def probability_above(self, value: Tensor | float) -> Tensor:
        """The marginal probabilities `P(y > value)`, accurate where small; values as in `SkewGPPosterior.cdf`."""
        return self._average(lambda member: member.probability_above(value))

    def density(self, value: Tensor | float) -> Tensor:
        """The marginal densities; values as in `SkewGPPosterior.cdf`."""
        return self._average(lambda member: member.density(value))

    @torch.no_grad()
    def quantile(self, value: Tensor | float) -> Tensor:
        """The marginal quantiles, `value.shape x batch_shape x q x o`, by bisection between those of the members."""
        ends = torch.stack([member.quantile(value) for member in self.members])
        low, high = ends.amin(0), ends.amax(0)
        level = torch.as_tensor(value, dtype=self.dtype, device=self.device)
        level = level.view(*level.shape, *[1] * self.mean.ndim)
        for _ in range(NUM_HALVINGS):
            middle = (low + high) / 2
            is_below = self.cdf(middle) < level
            low, high = torch.where(is_below, middle, low), torch.where(is_below, high, middle)
        return (low + high) / 2

    @property
    def median(self) -> Tensor:
        """The marginal medians, `batch_shape x q x o`."""
        return self.quantile(0.5)

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Draws of the joint distribution, `sample_shape x batch_shape x q x o`, by default `[1]`."""
        sample_shape = torch.Size([1]) if sample_shape is None else sample_shape
        count = max(sample_shape.numel(), 1)
        which = torch.multinomial(self.weights, count, replacement=True)
        draws = torch.stack([member.rsample(torch.Size([count])) for member in self.members])
        chosen = draws[which, torch.arange(count, device=which.device)]
        return chosen.view(self._extended_shape(sample_shape))
