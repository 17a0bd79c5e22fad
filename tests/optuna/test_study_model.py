"""The models of a study, and what they ask for next."""

import pytest
import torch

pytest.importorskip("optuna")

import optuna
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import read_study
from botorch_skewgp.optuna.study_model import StudyModel


def test_where_only_failures_are_known_running_trials_are_taken_to_fail():
    study = optuna.create_study()
    for x in (0.0, 0.1, 0.2):
        study.enqueue_trial({"x": x})
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        study.tell(trial, state=TrialState.FAIL)
    space = SearchSpace({"x": FloatDistribution(0, 1)})
    model = StudyModel(read_study(study, space), space)
    running = torch.tensor([[0.9]], dtype=torch.double)
    alone = model.acquisition(0, running[:0])
    beside = model.acquisition(0, running)
    assert alone(running.unsqueeze(0)) > beside(running.unsqueeze(0)) + 0.1
