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

MAX_EXHAUSTIVE = 4  # pseudo-points up to which all phases are tried


def fit_phases(model: SkewGP, **kwargs: Any) -> MarginalLogLikelihood:
    r"""Fit a model's hyperparameters and the signs of its skew prior ([Benavoli2020skew]_, equation (14)).

    All `2^s` phases for `s` up to 4 pseudo-points, each fitted from the fit with the present ones; beyond, single signs
    are flipped as long as that raises the objective, with a fit after each round of flips. `kwargs` are those of
    `fit_skew_gp`.

    Returns the objective, in evaluation mode, with its model at the best phases and hyperparameters found. Raises
    `UnsupportedError` if the model has no skew prior.

    Example:
        >>> prior = SkewPrior(pseudo_points=train_X[:2], phases=[1, 1])
        >>> mll = fit_phases(SkewGP(train_X, Binary(labels), skew_prior=prior))
    """
    if model.skew_prior is None:
        raise UnsupportedError("There are no phases to search for without a skew prior.")
    phases: Tensor = model.skew_prior.phases
    mll = fit_skew_gp(model, **kwargs)
    value, state = _value(mll), deepcopy(mll.state_dict())
    start, first = state, phases.tolist()
    if len(first) <= MAX_EXHAUSTIVE:
        for signs in itertools.product((1.0, -1.0), repeat=len(first)):
            if list(signs) == first:
                continue
            mll.load_state_dict(start)
            phases.copy_(phases.new_tensor(signs))
            new = _fitted_value(mll, kwargs)
            if new > value:
                value, state = new, deepcopy(mll.state_dict())
    else:
        while _flip(mll, phases) and (new := _fitted_value(mll, kwargs)) > value:
            value, state = new, deepcopy(mll.state_dict())
    mll.load_state_dict(state)
    return mll.eval()


def _flip(mll: MarginalLogLikelihood, phases: Tensor) -> bool:
    """Flip each sign in turn that raises the objective; whether there was one."""
    value, before = _value(mll), phases.clone()
    for i in range(len(phases)):
        phases[i] = -phases[i]
        new = _value(mll)
        if new > value:
            value = new
        else:
            phases[i] = -phases[i]
    return not torch.equal(phases, before)


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
