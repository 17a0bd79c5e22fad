"""The best arm by the model, also for experiments without numbers."""

from __future__ import annotations

from typing import cast

import torch
from ax.api.client import Client
from ax.api.types import TOutcome, TParameterization
from ax.core.arm import Arm
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import UserInputError

from botorch_skewgp.ax.adapter import Prospects
from botorch_skewgp.ax.internals import experiment_of
from botorch_skewgp.ax.registry import fitted_adapter, skewgp_spec_of
from botorch_skewgp.ax.transition import known_arms

LIKELY = 0.5  # the least probability of an arm that meets the constraints
POSSIBLE = 0.25  # of an arm whose own numbers meet them, as one at the limit, which half of the errors break


def get_best_arm(client: Client) -> tuple[TParameterization, TOutcome, str]:
    r"""The best of the tried arms as predicted by the model, fitted to all data so far.

    `client.get_best_parameterization` needs reported numbers; this uses comparisons too. Arms that failed, and arms
    outside the search space, are left out. An arm must meet all constraints, and work, with a probability of at least
    one half. Where no arm does, those count whose own numbers meet the constraints, with a probability of one quarter:
    the most probable of them is returned.

    Args:
        client: The client of an experiment with `skewgp_generation_strategy` and one objective.

    Returns:
        The arm's parameters, the predicted mean and standard deviation of each metric, and its name.

    Raises:
        UserInputError: If the client has another strategy, there are no data of the objective, there are several
            objectives, the objective is learned from comparisons of outcomes, or no arm is predicted to satisfy the
            constraints.
    """
    skewgp_spec_of(client)
    experiment = experiment_of(client)
    known = known_arms(experiment)
    if not known:
        raise UserInputError(
            "Nothing is known of the objective yet: no trial that worked has a number for it, and no trials were "
            "compared. Complete trials with data, or call attach_comparison."
        )
    adapter = fitted_adapter(client)
    if adapter.is_moo_problem or adapter.learns_objective:
        raise UserInputError(
            "No arm is best: with several objectives use client.get_pareto_frontier(); in preference exploration your "
            "comparisons of outcomes decide."
        )
    arms: list[Arm] = [experiment.arms_by_name[name] for name in known]
    arms = [arm for arm in arms if experiment.search_space.check_membership(arm.parameters)]
    found = adapter.prospects(arms) if arms else Prospects(*(torch.empty(0),) * 3)
    scores = torch.where(found.feasible >= LIKELY, found.goodness, -torch.inf)
    if not bool((found.feasible >= LIKELY).any()):
        possible = (found.feasible_if_measured >= LIKELY) & (found.feasible >= POSSIBLE)
        if not bool(possible.any()):
            raise UserInputError(
                "No arm is best: none of the arms is predicted to satisfy the constraints. Go on with the next trials, "
                "or relax a constraint."
            )
        scores = torch.where(possible, found.feasible, -torch.inf)
    best = arms[int(scores.argmax())]
    mean, covariance = adapter.predict([ObservationFeatures.from_arm(best)])
    outcomes = {name: (float(mean[name][0]), float(covariance[name][name][0]) ** 0.5) for name in mean}
    return cast(TParameterization, best.parameters), outcomes, best.name
