r"""The phases of a skew prior, chosen by the evidence.

.. [Benavoli2020skew] Benavoli, Azzimonti, Piga. Skew Gaussian processes for classification. Machine Learning 109, 2020.
"""

from __future__ import annotations

import itertools
from copy import deepcopy
from typing import Any

import torch
from botorch.exceptions.errors import ModelFittingError, UnsupportedError
from gpytorch.mlls import MarginalLogLikelihood
from torch import Tensor

from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.models import SkewGP

MAX_PSEUDO_POINTS = 8  # of which all phases are fitted


def fit_phases(model: SkewGP, **kwargs: Any) -> MarginalLogLikelihood:
    r"""Fit a model's hyperparameters and the signs of its skew prior ([Benavoli2020skew]_, equation (14)).

    All `2^s` phases of `s` pseudo-points, each fitted from the fit with the present ones. `kwargs` are those of
    `fit_skew_gp`.

    Returns the objective, in evaluation mode, with its model at the best phases and hyperparameters found. Raises
    `UnsupportedError` if the model has no skew prior, or one of more than 8 pseudo-points.

    Example:
        >>> prior = SkewPrior(pseudo_points=train_X[:2], phases=[1, 1])
        >>> mll = fit_phases(SkewGP(train_X, Binary(labels), skew_prior=prior))
    """
    if model.skew_prior is None:
        raise UnsupportedError("There are no phases to search for without a skew prior.")
    phases: Tensor = model.skew_prior.phases
    if len(phases) > MAX_PSEUDO_POINTS:
        raise UnsupportedError(
            f"There are 2^{len(phases)} phases to fit; take at most {MAX_PSEUDO_POINTS} pseudo-points."
        )
    mll = fit_skew_gp(model, **kwargs)
    start, first = deepcopy(mll.state_dict()), phases.tolist()
    value, state = _value(mll), start
    for signs in itertools.product((1.0, -1.0), repeat=len(first)):
        if list(signs) == first:
            continue
        mll.load_state_dict(start)
        phases.copy_(phases.new_tensor(signs))
        new = _fitted_value(mll, kwargs)
        if new > value:
            value, state = new, deepcopy(mll.state_dict())
    mll.load_state_dict(state)
    return mll.eval()


def _fitted_value(mll: MarginalLogLikelihood, kwargs: dict[str, Any]) -> float:
    """The objective after a fit; minus infinity where none succeeds."""
    try:
        fit_skew_gp(mll, **kwargs)
    except ModelFittingError:
        return -float("inf")
    return _value(mll)


@torch.no_grad()
def _value(mll: MarginalLogLikelihood) -> float:
    """The objective at the present state."""
    mll.train()
    return float(mll(mll.model(*mll.model.train_inputs), mll.model.train_targets))
