"""Kernels beyond GPyTorch's, and the covariances of slopes under its kernels.

`items` and `judges` are kernels, `slopes` the covariances of slopes. `checked` refuses invalid values of GPyTorch's
kernels; `squared_exponential` computes covariances of fixed kernels fast.
"""

from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.slopes import slope_covariance

__all__ = ["ItemEffectKernel", "slope_covariance"]
