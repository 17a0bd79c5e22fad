"""The transition from Sobol points to models."""

from __future__ import annotations

from ax.core.experiment import Experiment
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.transition_criterion import TransitionCriterion

from botorch_skewgp.ax.comparisons import recorded_bounds, recorded_comparisons
from botorch_skewgp.ax.data import INVALID
from botorch_skewgp.hosts.data import LARGEST


def objective_is_known(experiment: Experiment) -> bool:
    r"""Whether trials were compared, or one that did not fail has a number or a bound of each objective.

    Args:
        experiment: The experiment.
    """
    if recorded_comparisons(experiment):
        return True
    config, data = experiment.optimization_config, experiment.lookup_data().df
    wanted = set() if config is None else set(config.objective.metric_names)
    known = {(entry.trial_index, entry.metric) for entry in recorded_bounds(experiment)}
    known |= {
        (index, name)
        for index, name, mean in zip(data["trial_index"], data["metric_name"], data["mean"], strict=True)
        if abs(mean) <= LARGEST and experiment.trials[index].status not in INVALID
    }
    return any(wanted <= {name for i, name in known if i == index} for index in experiment.trials)


class ObjectiveIsKnown(TransitionCriterion):
    """Met as soon as the objective has data; failures and labels alone are not enough."""

    def is_met(self, experiment: Experiment, curr_node: GenerationNode) -> bool:
        """Whether the objective is known."""
        return objective_is_known(experiment)
