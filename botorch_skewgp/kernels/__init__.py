"""Kernels of `items` and `judges`, GPyTorch's with values that are `checked`, `evaluation`, covariances of `slopes`."""

from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.slopes import slope_covariance

__all__ = ["ItemEffectKernel", "slope_covariance"]
