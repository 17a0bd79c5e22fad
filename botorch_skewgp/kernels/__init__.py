"""Kernels beyond GPyTorch's, and what its kernels say about slopes of the function."""

from botorch_skewgp.kernels.arcsine import ArcsineKernel
from botorch_skewgp.kernels.slopes import slope_covariance

__all__ = ["ArcsineKernel", "slope_covariance"]
