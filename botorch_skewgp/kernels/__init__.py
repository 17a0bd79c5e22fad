"""Kernels beyond GPyTorch's, and the covariances of slopes under its kernels."""

from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.slopes import slope_covariance

__all__ = ["ItemEffectKernel", "slope_covariance"]
