"""Fits from several starts, sampled hyperparameters, and warm starts.

`restarts` fits, `trivial` warns of fits that know nothing, `panel` chooses and fits a model of many people, `spreads`
learns how much judges differ, `warm_start` takes the hyperparameters of another model. `hyperparameters` samples them
by `importance` from their `unbounded_density`. For a single start without the warning use
`botorch.fit.fit_gpytorch_mll` with an objective of `botorch_skewgp.mlls`.
"""

from botorch_skewgp.fitting.hyperparameters import (
    HyperparameterDraws,
    fit_fully_bayesian_skew_gp,
    sample_hyperparameters,
)
from botorch_skewgp.fitting.panel import fit_panel
from botorch_skewgp.fitting.restarts import fit_skew_gp
from botorch_skewgp.fitting.warm_start import WarmStart, warm_start

__all__ = [
    "HyperparameterDraws",
    "WarmStart",
    "fit_fully_bayesian_skew_gp",
    "fit_panel",
    "fit_skew_gp",
    "sample_hyperparameters",
    "warm_start",
]
