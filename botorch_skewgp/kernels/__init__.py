"""Kernels of `items` and `judges`, GPyTorch's with values that are `checked`, covariances of `slopes`.

`squared_exponential` computes covariances of fixed kernels fast.
"""

from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.kernels.slopes import slope_covariance

__all__ = ["ItemEffectKernel", "slope_covariance"]
