"""When there is enough to learn from."""

from __future__ import annotations

from ax.core.experiment import Experiment
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.transition_criterion import TransitionCriterion

from botorch_skewgp.ax.comparisons import recorded_comparisons
from botorch_skewgp.ax.data import INVALID


def objective_is_known(experiment: Experiment) -> bool:
    r"""Whether a trial that did not fail has a number for every metric of the objective, or trials were compared.

    Args:
        experiment: The experiment.
    """
    if recorded_comparisons(experiment):
        return True
    config, numbers = experiment.optimization_config, experiment.lookup_data().df.dropna(subset=["mean"])
    wanted = set() if config is None else set(config.objective.metric_names)
    return any(
        wanted <= set(names) and experiment.trials[index].status not in INVALID
        for index, names in numbers.groupby("trial_index")["metric_name"]
    )


class ObjectiveIsKnown(TransitionCriterion):
    """Met as soon as something is known of the objective: failures and labels alone do not tell where to look."""

    def is_met(self, experiment: Experiment, curr_node: GenerationNode) -> bool:
        """Whether the objective is known.

        Args:
            experiment: The experiment.
            curr_node: The node that has the criterion.
        """
        return objective_is_known(experiment)
