"""Fitting: hyperparameters from several starts, phases of a skew prior by search, and hyperparameters sampled.

For a single start `botorch.fit.fit_gpytorch_mll` does, with an objective of `botorch_skewgp.mlls`.
"""

from botorch_skewgp.fitting.hyperparameters import (
    HyperparameterDraws,
    fit_fully_bayesian_skew_gp,
    sample_hyperparameters,
)
from botorch_skewgp.fitting.restarts import fit_skew_gp

__all__ = ["HyperparameterDraws", "fit_fully_bayesian_skew_gp", "fit_skew_gp", "sample_hyperparameters"]
