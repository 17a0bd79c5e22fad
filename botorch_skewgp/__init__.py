"""Skew Gaussian processes for GPyTorch, BoTorch and Ax: exact posteriors for data that are not plain numbers."""

import botorch_skewgp.sampling  # noqa: F401  registers the posterior with BoTorch's samplers
from botorch_skewgp.models import SkewGP

__all__ = ["SkewGP"]
