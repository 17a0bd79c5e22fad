"""Base class of posteriors whose marginal distributions are mixtures, with the distribution functions of these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_skewgp.posteriors.mixture_marginals import MixtureMarginals
from botorch_skewgp.posteriors.non_gaussian import NonGaussianPosterior


class MixturePosterior(NonGaussianPosterior):
    """A posterior of values `offset + weight y`, where `y` has mixtures for marginal distributions."""

    _offset: float = 0.0
    _weight: float = 1.0  # which may be negative

    @property
    @abstractmethod
    def marginals(self) -> MixtureMarginals:
        """The marginal mixtures of `y`."""

    @abstractmethod
    def _to_event(self, x: Tensor) -> Tensor:
        """What marginals return, `... x batch_shape x e`, as `... x batch_shape x q x o`."""

    def _at_values(self, function: Callable[[Tensor], Tensor], value: Tensor | float) -> Tensor:
        """A function of the marginals at values, shapes as in `cdf`."""
        value = torch.as_tensor(value, dtype=self.dtype, device=self.device)  # numbers keep all digits
        event = self._extended_shape()
        if value.ndim >= len(event) and value.shape[value.ndim - len(event) :] == event:
            return self._to_event(function(value.flatten(-2)))
        result = self._to_event(function(value.reshape(value.shape + (1,) * (len(event) - 1))))
        # as GPyTorchPosterior: a single number adds no dimension
        return result.reshape(event) if value.numel() == 1 else result

    def _at_outcomes(self, function: Callable[[Tensor], Tensor], value: Tensor | float) -> Tensor:
        """A function of `y` at values of the posterior, shapes as in `cdf`."""
        return self._at_values(lambda x: function((x - self._offset) / self._weight), value)

    def cdf(self, value: Tensor | float) -> Tensor:
        r"""The marginal probabilities `P(f <= value)`, accurate where they are small.

        Args:
            value: A number or a tensor evaluated at every point, giving `value.shape x batch_shape x q x o` (a single
                number adds no dimension); or a tensor whose last dimensions are `batch_shape x q x o`, taken
                elementwise.
        """
        law = self.marginals
        return self._at_outcomes(law.cdf if self._weight > 0 else law.survival, value)

    def probability_above(self, value: Tensor | float) -> Tensor:
        r"""The marginal probabilities `P(f > value)`, accurate where they are small.

        Args:
            value: As in `cdf`.
        """
        law = self.marginals
        return self._at_outcomes(law.survival if self._weight > 0 else law.cdf, value)

    def density(self, value: Tensor | float) -> Tensor:
        r"""The marginal probability densities.

        Args:
            value: As in `cdf`.
        """
        return self._at_outcomes(self.marginals.density, value) / abs(self._weight)

    def quantile(self, value: Tensor | float) -> Tensor:
        r"""The marginal quantiles; see `MixtureMarginals.quantile`.

        Differentiable in the inputs of the posterior by the implicit function theorem.

        Args:
            value: Probabilities in (0, 1); shapes as in `cdf`.

        Raises:
            ValueError: If a probability is outside (0, 1).
        """
        law, upwards = self.marginals, self._weight > 0
        quantile = self._at_values(lambda level: law.quantile(level if upwards else 1 - level), value)
        return self._offset + self._weight * quantile
