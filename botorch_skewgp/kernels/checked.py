"""GPyTorch's kernels with validated setters: an invalid value raises an error and leaves the kernel unchanged."""

from __future__ import annotations

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from botorch_skewgp.checks import check_parameter

MIN_LENGTHSCALE = 0.025  # BoTorch's, for lengthscales that are not fitted as logarithms


class CheckedScaleKernel(ScaleKernel):
    """A `ScaleKernel`; setting an output scale that is not positive and finite raises `InputDataError`."""

    def _set_outputscale(self, value: float | Tensor) -> None:
        check_parameter(value, "outputscale")
        super()._set_outputscale(torch.as_tensor(value).to(self.raw_outputscale))


class CheckedRBFKernel(RBFKernel):
    """An `RBFKernel`; setting lengthscales that are not positive and finite raises `InputDataError`."""

    def _set_lengthscale(self, value: float | Tensor) -> None:
        check_parameter(value, "lengthscale")
        super()._set_lengthscale(torch.as_tensor(value).to(self.raw_lengthscale))
