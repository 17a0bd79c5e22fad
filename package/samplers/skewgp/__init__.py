"""A sampler for Optuna that learns from failed trials, comparisons, constraints and numbers."""

from botorch_skewgp.optuna import SkewGPSampler

__all__ = ["SkewGPSampler"]
