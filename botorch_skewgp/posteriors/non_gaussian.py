"""Base class of posteriors that are not Gaussian."""

from __future__ import annotations

from typing import NoReturn

import torch
from botorch.posteriors import Posterior
from torch import Tensor


class NonGaussianPosterior(Posterior):
    """A posterior that must not be taken for a Gaussian one.

    BoTorch asks a posterior for its `distribution` or its `mvn` where a formula or a list of models needs a Gaussian.
    """

    _location: Tensor

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
        """Raises an error, since BoTorch would treat it as Gaussian.

        Raises:
            AttributeError: Always.
        """
        message = (
            f"A {type(self).__name__} has no distribution that BoTorch could take for a Gaussian. Join models in a "
            "ModelList, not in a ModelListGP."
        )
        if hasattr(self, "moment_matched"):
            message += " Where a Gaussian is wanted, ask for moment_matched()."
        raise AttributeError(message)
