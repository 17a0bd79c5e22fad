"""The best trial by the model, also for studies without numbers."""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from optuna.trial import FrozenTrial

from botorch_skewgp.models import SkewGP
from botorch_skewgp.optuna.internals import study_of
from botorch_skewgp.optuna.judgements import check_single_objective
from botorch_skewgp.optuna.search_space import SearchSpace, modelled_parameters
from botorch_skewgp.optuna.study_data import StudyData, read_study
from botorch_skewgp.optuna.study_model import fitted_model


def get_best_trial(study: Any) -> FrozenTrial:
    r"""The best of the tried trials as predicted by the model, fitted to all numbers, bounds and comparisons.

    `study.best_trial` is the one with the best number, whatever people said; in a preferential study, whose numbers are
    zeros, it means nothing. Trials that failed or broke a constraint are left out.

    Example:
        >>> report_comparison(study, better=3, worse=1)
        >>> get_best_trial(study).params

    Args:
        study: A study with one objective, preferential or not.

    Raises:
        InputDataError: If nothing is known of the objective yet, or all trials failed or broke a constraint.
        UnsupportedError: If the study has several objectives.
    """
    study = study_of(study)
    check_single_objective(study)
    trials = study.get_trials(deepcopy=False)
    space = SearchSpace(modelled_parameters(trials))
    data = read_study(study, space) if space.dim else None
    known = None if data is None else data.power_transformed().observed()
    if data is None or known is None:
        raise InputDataError(
            "Nothing is known of the objective yet: tell a trial's value, or compare trials by report_comparison."
        )
    number = best_number(data, fitted_model(known, space))
    if number is None:
        raise InputDataError("No trial is best: all trials failed or broke a constraint.")
    return study.get_trials()[number]


@torch.no_grad()
def best_number(data: StudyData, model: SkewGP) -> int | None:
    """The number of the trial with data that is best by a model; `None` if all failed or broke a constraint."""
    rows = (data.known & data.feasible).nonzero().squeeze(-1)
    if not len(rows):
        return None
    mean = model.latent_posterior(data.X[rows]).mean.squeeze(-1)
    return data.trials[rows[mean.argmax()]]
