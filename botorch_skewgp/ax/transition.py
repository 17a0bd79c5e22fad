"""The transition from Sobol points to models."""

from __future__ import annotations

from ax.core.experiment import Experiment
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.transition_criterion import TransitionCriterion

from botorch_skewgp.ax.comparisons import recorded_bounds, recorded_comparisons
from botorch_skewgp.ax.data import INVALID
from botorch_skewgp.hosts.data import LARGEST


def known_arms(experiment: Experiment) -> list[str]:
    """The names of arms that were compared and did not fail, or have a number or a bound of each objective."""
    config, data = experiment.optimization_config, experiment.lookup_data().df
    wanted = set() if config is None else set(config.objective.metric_names)
    compared = {name for entry in recorded_comparisons(experiment) for name in entry.items}
    known = {(entry.trial_index, entry.arm_name, entry.metric) for entry in recorded_bounds(experiment)}
    known |= {
        (index, arm, name)
        for index, arm, name, mean in zip(
            data["trial_index"], data["arm_name"], data["metric_name"], data["mean"], strict=True
        )
        if abs(mean) <= LARGEST and experiment.trials[index].status not in INVALID
    }
    metrics: dict[tuple[int, str], set[str]] = {}
    for index, arm, name in known:
        metrics.setdefault((index, arm), set()).add(name)
    failed = {arm.name for trial in experiment.trials.values() if trial.status in INVALID for arm in trial.arms}
    measured = {arm for (_, arm), names in metrics.items() if wanted <= names}
    return [name for name in experiment.arms_by_name if name in measured or name in compared - failed]


def objective_is_known(experiment: Experiment) -> bool:
    """Whether trials were compared, or one that did not fail has a number or a bound of each objective."""
    return bool(recorded_comparisons(experiment) or known_arms(experiment))


class ObjectiveIsKnown(TransitionCriterion):
    """Met as soon as the objective has data; failures and labels alone are not enough."""

    def is_met(self, experiment: Experiment, curr_node: GenerationNode) -> bool:
        """Whether the objective is known."""
        return objective_is_known(experiment)
