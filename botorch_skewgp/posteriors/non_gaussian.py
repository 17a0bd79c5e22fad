"""Base class of posteriors that are not Gaussian, and a check before closed forms use one."""

from __future__ import annotations

from typing import NoReturn

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors import Posterior
from torch import Tensor


class NonGaussianPosterior(Posterior):
    """A posterior without `distribution` and `mvn`, which BoTorch takes where a formula needs a Gaussian."""

    _location: Tensor
    _columns: str  # the number of columns of base samples, for an error message

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
        r"""Draw from the joint posterior, differentiable in its inputs.

        Args:
            sample_shape: The shape of the sample; `torch.Size([1])` if `None`, as in BoTorch.

        Returns:
            A `sample_shape x batch_shape x q x o` tensor.
        """
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


def check_one_value(posterior: Posterior, user: str) -> None:
    """Raise `UnsupportedError` for posteriors over more than one value."""
    shape = tuple(posterior._extended_shape())
    if shape[-2:] != (1, 1):
        raise UnsupportedError(
            f"{user} needs the posterior of one value; got one of shape {shape}. For input transforms that turn one "
            "point into many, give a posterior_transform that reduces them to one."
        )
