r"""A constant mean that is integrated over instead of fitted."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import ConstantKernel, Kernel
from gpytorch.means import Mean
from torch import Tensor


class IntegratedConstantMean(Mean):
    r"""A constant `c ~ N(0, variance)`, integrated over exactly.

    A Gaussian process with such a mean has mean zero and `variance` added to all its covariances, a term of rank one.
    A fitted constant has no uncertainty: after five successes in one corner of the domain a model with one is as sure
    of the far corner as of the near one.

    Args:
        variance: The variance of the constant, in squared units of the latent function; not fitted.

    Raises:
        InputDataError: If the variance is not a positive number.
    """

    def __init__(self, variance: float) -> None:
        super().__init__()
        if not 0 < variance < float("inf"):
            raise InputDataError(f"variance must be positive and finite; got {variance}.")
        kernel = ConstantKernel().double()
        kernel.constant = torch.tensor([variance], dtype=torch.float64)
        self.kernel = kernel.requires_grad_(False)

    @property
    def variance(self) -> Tensor:
        """The variance of the constant."""
        return self.kernel.constant

    def forward(self, input: Tensor) -> Tensor:
        """Zeros, `batch_shape x n` for `batch_shape x n x d` points."""
        return input.new_zeros(input.shape[:-1])

    def added_to(self, covar_module: Kernel) -> Kernel:
        """The kernel of the sum of the constant and a process with the given kernel."""
        return covar_module + self.kernel

    def draw(self, sample_shape: torch.Size) -> DrawnConstants:
        """Draws of the constant."""
        deviation = self.variance.sqrt()
        normal = torch.randn(*sample_shape, 1, dtype=deviation.dtype, device=deviation.device)
        return DrawnConstants(deviation * normal)


class DrawnConstants(Mean):
    r"""Constants, one for each draw of a function.

    Args:
        constants: A `sample_shape x 1` tensor.
    """

    def __init__(self, constants: Tensor) -> None:
        super().__init__()
        self.register_buffer("constants", constants)

    def forward(self, input: Tensor) -> Tensor:
        """The constants as `... x 1`, to be broadcast over points."""
        return self.constants.to(input)
