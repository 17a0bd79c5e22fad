"""Base class of posteriors whose marginals are mixtures, not Gaussian: its sampler, and a check before closed forms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NoReturn

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors import Posterior
from botorch.sampling.get_sampler import GetSampler
from botorch.sampling.normal import IIDNormalSampler, NormalMCSampler, SobolQMCNormalSampler
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_skewgp.posteriors.mixture_marginals import MixtureMarginals


class MixturePosterior(Posterior):
    """A posterior of values `offset + weight y`, where `y` has mixtures for marginal distributions. It has no
    `distribution` and no `mvn`, which BoTorch takes where a formula needs a Gaussian.
    """

    _location: Tensor
    _columns: str  # the number of columns of base samples, for an error message
    _offset: float = 0.0
    _weight: float = 1.0  # which may be negative

    @property
    def device(self) -> torch.device:
        """The device of the posterior's tensors."""
        return self._location.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the posterior's tensors."""
        return self._location.dtype

    @property
    def batch_range(self) -> tuple[int, int]:
        """Every dimension of the base samples but the last is a batch dimension."""
        return (0, -1)

    @property
    def distribution(self) -> NoReturn:
        """Not there, so that BoTorch does not treat the posterior as Gaussian; raises `AttributeError`."""
        message = (
            f"A {type(self).__name__} has no distribution that BoTorch could take for a Gaussian. Join models in a "
            "ModelList, not in a ModelListGP."
        )
        if hasattr(self, "moment_matched"):
            message += " Where a Gaussian is wanted, ask for moment_matched()."
        raise AttributeError(message)

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        """Draw from the joint posterior, `sample_shape x batch_shape x q x o`, by default `[1]`; differentiable."""
        sample_shape = torch.Size([1]) if sample_shape is None else sample_shape
        base_samples = torch.randn(sample_shape + self.base_sample_shape, dtype=self.dtype, device=self.device)
        return self.rsample_from_base_samples(sample_shape=sample_shape, base_samples=base_samples)

    def _check_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> None:
        if base_samples.shape[: len(sample_shape)] != sample_shape:
            raise RuntimeError(
                f"sample_shape {tuple(sample_shape)} disagrees with base_samples of shape {tuple(base_samples.shape)}."
            )
        if base_samples.shape[-1] != self.base_sample_shape[-1]:
            raise RuntimeError(
                f"base_samples must have {self.base_sample_shape[-1]} columns ({self._columns}); got "
                f"{base_samples.shape[-1]}."
            )

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
        """The marginal probabilities `P(f <= value)`, accurate where they are small. A number or a tensor is evaluated
        at every point, `value.shape x batch_shape x q x o` (a single number adds no dimension); a tensor whose last
        dimensions are `batch_shape x q x o` elementwise.
        """
        law = self.marginals
        return self._at_outcomes(law.cdf if self._weight > 0 else law.survival, value)

    def probability_above(self, value: Tensor | float) -> Tensor:
        """The marginal probabilities `P(f > value)`, accurate where they are small; values as in `cdf`."""
        law = self.marginals
        return self._at_outcomes(law.survival if self._weight > 0 else law.cdf, value)

    def density(self, value: Tensor | float) -> Tensor:
        """The marginal probability densities; values as in `cdf`."""
        return self._at_outcomes(self.marginals.density, value) / abs(self._weight)

    def quantile(self, value: Tensor | float) -> Tensor:
        """The marginal quantiles, of shapes as in `cdf`, differentiable in the inputs of the posterior; see
        `MixtureMarginals.quantile`. Raises `ValueError` if a probability is outside (0, 1).
        """
        law = self.marginals
        upwards = self._weight > 0
        quantile = self._at_values(lambda level: law.quantile(level if upwards else 1 - level), value)
        return self._offset + self._weight * quantile


@GetSampler.register(MixturePosterior)
def get_skew_gp_sampler(
    posterior: MixturePosterior, sample_shape: torch.Size, *, seed: int | None = None
) -> NormalMCSampler:
    """Sobol base samples, or independent ones where their dimension is beyond the Sobol engine's."""
    if posterior.base_sample_shape[-1] > SobolEngine.MAXDIM:
        return IIDNormalSampler(sample_shape=sample_shape, seed=seed)
    return SobolQMCNormalSampler(sample_shape=sample_shape, seed=seed)


def without_repetition(base_samples: Tensor, num_sample_dims: int) -> Tensor:
    """The stored part of base samples, of size one along batch dimensions over which they are expanded."""
    for dim in range(num_sample_dims, base_samples.ndim - 1):
        if base_samples.stride(dim) == 0:
            base_samples = base_samples.narrow(dim, 0, min(1, base_samples.shape[dim]))
    return base_samples


def check_one_value(posterior: Posterior, user: str) -> None:
    """Raise `UnsupportedError` for posteriors over more than one value."""
    shape = tuple(posterior._extended_shape())
    if shape[-2:] != (1, 1):
        raise UnsupportedError(
            f"{user} needs the posterior of one value; got one of shape {shape}. For input transforms that turn one "
            "point into many, give a posterior_transform that reduces them to one."
        )
