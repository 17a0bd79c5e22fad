"""The best arm by the model, also for experiments without numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ax.api.client import Client
from ax.api.types import TOutcome, TParameterization
from ax.exceptions.core import UserInputError

from botorch_skewgp.ax.internals import experiment_of
from botorch_skewgp.ax.registry import fitted_adapter, skewgp_spec_of
from botorch_skewgp.ax.transition import objective_is_known

SMALLEST = 1e-300  # least divisor


def get_best_arm(client: Client) -> tuple[TParameterization, TOutcome, str]:
    r"""The best of the tried arms as predicted by the model, fitted to all data so far.

    `client.get_best_parameterization` needs reported numbers; this uses comparisons too.

    Args:
        client: The client of an experiment with `skewgp_generation_strategy` and one objective.

    Returns:
        The arm's parameters, the predicted mean and standard deviation of each metric, and its name.

    Raises:
        UserInputError: If the client has another strategy, there are no data of the objective, there are several
            objectives, or no arm is predicted to satisfy the constraints.
    """
    skewgp_spec_of(client)
    if not objective_is_known(experiment_of(client)):
        raise UserInputError(
            "Nothing is known of the objective yet: no trial that worked has a number for it, and no trials were "
            "compared. Complete trials with data, or call attach_comparison."
        )
    adapter = fitted_adapter(client)
    best = None if adapter.is_moo_problem else adapter.model_best_point()
    if best is None or best[1] is None:
        raise UserInputError(
            "No arm is best: with several objectives use client.get_pareto_frontier(); else none of the arms is "
            "predicted to satisfy the constraints."
        )
    arm, prediction = best
    assert prediction is not None
    mean, covariance = prediction
    assert covariance is not None
    outcomes = {name: (float(mean[name]), float(covariance[name][name]) ** 0.5) for name in mean}
    arms = experiment_of(client).arms_by_name
    name = min(arms, key=lambda name: _difference(arms[name].parameters, arm.parameters))
    return cast(TParameterization, arms[name].parameters), outcomes, name


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """The distance of parameters, as those that come back from a logarithm are rounded."""
    total = 0.0
    for name in first.keys() | second.keys():
        a, b = first.get(name), second.get(name)
        if isinstance(a, int | float) and isinstance(b, int | float):
            total += abs(a - b) / max(abs(a), abs(b), SMALLEST)
        elif a != b:
            total += 1.0
    return total
