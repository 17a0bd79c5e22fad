"""Preference exploration: a utility of several outcomes is learned from comparisons of outcomes (BOPE).

.. [Lin2022bope] Z. J. Lin, R. Astudillo, P. I. Frazier, E. Bakshy. Preference exploration for efficient Bayesian
   optimization with multiple outcomes. AISTATS 2022.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ax.api.client import Client
from ax.core.arm import Arm
from ax.core.auxiliary import AuxiliaryExperiment, AuxiliaryExperimentPurpose
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.metric import Metric
from ax.core.objective import Objective
from ax.core.optimization_config import OptimizationConfig, PreferenceOptimizationConfig
from ax.core.parameter import ParameterType, RangeParameter
from ax.core.search_space import SearchSpace
from ax.exceptions.core import UserInputError
from ax.utils.common.constants import Keys
from pandas import DataFrame

from botorch_skewgp.ax.internals import (
    experiment_of,
    metric_names_of,
    name_of,
    save_experiment,
    user_input_errors,
)
from botorch_skewgp.observations.checks import as_number

PAIRWISE = Keys.PAIRWISE_PREFERENCE_QUERY.value
WIDEST = 1e9  # bounds of outcomes, unknown beforehand


def configure_preference_exploration(client: Client, metric_names: Sequence[str]) -> None:
    r"""Optimise a utility of several metrics that is learned from comparisons of their values ([Lin2022bope]_).

    Replaces `client.configure_optimization`. The comparisons of `compare_outcomes` are kept in an auxiliary experiment
    in Ax's own format.

    Example:
        >>> configure_preference_exploration(client, ["speed", "comfort"])
        >>> compare_outcomes(client, winner={"speed": 3.0, "comfort": 1.0}, loser={"speed": 1.0, "comfort": 2.0})
        >>> client.set_generation_strategy(skewgp_generation_strategy())

    Args:
        client: The client of a configured experiment.
        metric_names: The metrics, at least two.

    Raises:
        UserInputError: If there are fewer than two different metrics, or one is no text.
    """
    # Ax fits outcome models in the order of their names, which must be that of the utility's inputs
    names = sorted(metric_names_of(metric_names, "metric_names"))
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise UserInputError(f"metric_names must be at least two different metrics; got {list(metric_names)}.")
    name = f"{name_of(experiment_of(client)) or 'experiment'}_preferences"
    outcomes = [
        RangeParameter(name=entry, parameter_type=ParameterType.FLOAT, lower=-WIDEST, upper=WIDEST) for entry in names
    ]
    metric = Metric(name=PAIRWISE)
    preferences = Experiment(
        name=name,
        search_space=SearchSpace(parameters=outcomes),
        optimization_config=OptimizationConfig(objective=_objective([metric])),
        metrics=[metric],
    )
    experiment = experiment_of(client)
    for entry in names:
        if entry not in experiment.metrics:
            experiment.add_metric(Metric(name=entry))
    save_experiment(client, preferences)  # before the experiment that refers to it
    experiment.add_auxiliary_experiment(
        purpose=AuxiliaryExperimentPurpose.PE_EXPERIMENT, auxiliary_experiment=AuxiliaryExperiment(preferences)
    )
    objective = _objective([experiment.metrics[entry] for entry in names])
    client.set_optimization_config(PreferenceOptimizationConfig(objective=objective, preference_profile_name=name))


def compare_outcomes(client: Client, winner: Mapping[str, float], loser: Mapping[str, float]) -> None:
    r"""Record that one vector of outcomes is better than another, observed or imagined.

    Args:
        client: The client of an experiment with `configure_preference_exploration`.
        winner: The better outcomes, a value for each metric.
        loser: The other outcomes.

    Raises:
        UserInputError: If preferences are not configured, or outcomes lack a metric, have others, or are the same.
    """
    auxiliary = _preferences(experiment_of(client))
    preferences = auxiliary.experiment
    names = list(preferences.search_space.parameters)
    compared = []
    for title, outcomes in (("winner", winner), ("loser", loser)):
        if not isinstance(outcomes, Mapping) or set(outcomes) != set(names):
            raise UserInputError(f"{title} must have one finite number for each of {names}; got {outcomes!r}.")
        with user_input_errors():
            values = {entry: as_number(outcomes[entry], f"{entry!r} of {title}") for entry in names}
        if not all(abs(value) <= WIDEST for value in values.values()):
            raise UserInputError(f"{title} must have one finite number for each of {names}; got {outcomes!r}.")
        compared.append(values)
    if compared[0] == compared[1]:
        raise UserInputError("winner and loser are the same outcomes; a comparison needs two different ones.")
    trial = preferences.new_batch_trial()
    for values in compared:
        trial.add_arm(Arm(parameters=dict(values)))
    trial.mark_running(no_runner_required=True)
    rows = [
        {
            "trial_index": trial.index,
            "arm_name": arm.name,
            "metric_name": PAIRWISE,
            "metric_signature": PAIRWISE,
            "mean": value,
            "sem": float("nan"),
        }
        for arm, value in zip(trial.arms, (1.0, 0.0), strict=True)
    ]
    preferences.attach_data(Data(df=DataFrame(rows)))
    auxiliary.data = preferences.lookup_data()
    trial.mark_completed()
    for experiment in (preferences, experiment_of(client)):
        save_experiment(client, experiment)


def _objective(metrics: Sequence[Metric]) -> Objective:
    """All metrics, each to be maximised."""
    signatures = {metric.name: metric.signature for metric in metrics}
    return Objective(expression=", ".join(signatures), metric_name_to_signature=signatures)


def _preferences(experiment: Experiment) -> AuxiliaryExperiment:
    config = experiment.optimization_config
    if not isinstance(config, PreferenceOptimizationConfig):
        raise UserInputError("The experiment learns no preferences; call configure_preference_exploration first.")
    auxiliary = experiment.find_auxiliary_experiment_by_name(
        purpose=AuxiliaryExperimentPurpose.PE_EXPERIMENT,
        auxiliary_experiment_name=config.preference_profile_name,
        raise_if_not_found=True,
    )
    assert auxiliary is not None
    return auxiliary
