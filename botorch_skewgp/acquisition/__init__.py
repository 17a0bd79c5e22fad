"""Acquisition functions: only those that BoTorch does not have."""

from botorch_skewgp.acquisition.dueling import (
    DuelingThompsonSampling,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
)

__all__ = ["DuelingThompsonSampling", "DuelingUpperCredibleBound", "ExpectedImprovementInformationGain"]
