"""Kernels beyond GPyTorch's, and what its kernels say about slopes of the function."""

from botorch_skewgp.kernels.arcsine import ArcsineKernel
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.reliability import ReliabilityKernel
from botorch_skewgp.kernels.slopes import slope_covariance

__all__ = ["ArcsineKernel", "ItemEffectKernel", "ReliabilityKernel", "slope_covariance"]
