"""What people say about pairs of trials: recorded in the experiment's properties, so that it is stored with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from ax.api.client import Client
from ax.api.types import TParameterization
from ax.core.batch_trial import BatchTrial
from ax.core.experiment import Experiment
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.utils.common.constants import Keys

from botorch_skewgp.ax.internals import (
    experiment_of,
    generation_strategy_of,
    properties_of,
    save_experiment,
    save_generation_strategy,
    save_trial,
)

COMPARISONS = "skewgp_comparisons"
PAIR = "skewgp_pair"  # marks, in a trial's run metadata, that it asks for a comparison


@dataclass(frozen=True)
class Comparison:
    """One arm was judged better than another, or the two as good; arms by name."""

    winner: str
    loser: str
    tie: bool = False


def recorded_comparisons(experiment: Experiment) -> list[Comparison]:
    """All comparisons of an experiment: those recorded here, and the answered two-arm trials of Ax's own metric
    `pairwise_pref_query`, whose arms have values 1 and 0; equal values are a tie.
    """
    comparisons = [Comparison(**entry) for entry in properties_of(experiment).get(COMPARISONS, [])]
    data = experiment.lookup_data().df
    if data.empty:
        return comparisons
    answers = data[data["metric_name"] == Keys.PAIRWISE_PREFERENCE_QUERY.value].dropna(subset=["mean"])
    for _, trial in answers.groupby("trial_index"):
        if len(trial) == 2:
            (first, a), (second, b) = sorted(zip(trial["arm_name"], trial["mean"], strict=True), key=lambda x: -x[1])
            comparisons.append(Comparison(first, second, tie=a == b))
    return comparisons


def attach_comparison(client: Client, winner: int | str, loser: int | str, tie: bool = False) -> None:
    r"""Record which of two trials was better.

    The trials need no numbers. A pair may be compared often, in both orders too. What is better is what the objective
    wants: for a metric that is minimised, the winner is the one with the lower value.

    Example:
        >>> attach_comparison(client, winner=3, loser=1)
        >>> attach_comparison(client, 4, 3, tie=True)

    Args:
        client: The client of the experiment.
        winner: The better one: a trial's index, or an arm's name for trials with several arms.
        loser: The other one.
        tie: Whether the two were judged as good as each other; their order is then of no account.

    Raises:
        UserInputError: If a trial or arm is not in the experiment, has several arms, or is compared with itself. The
            experiment is then as before.
    """
    experiment = experiment_of(client)
    names = [_arm_name(experiment, entry) for entry in (winner, loser)]
    if names[0] == names[1]:
        raise UserInputError(
            f"{winner!r} and {loser!r} are the same arm, {names[0]}; a comparison needs two different ones."
        )
    entry = {"winner": names[0], "loser": names[1], "tie": bool(tie)}
    properties_of(experiment)[COMPARISONS] = [*properties_of(experiment).get(COMPARISONS, []), entry]
    save_experiment(client, experiment)


def _arm_name(experiment: Experiment, entry: int | str) -> str:
    if isinstance(entry, str):
        if entry not in experiment.arms_by_name:
            raise UserInputError(f"There is no arm {entry!r} in the experiment; its arms are {_some(experiment)}.")
        return entry
    if entry not in experiment.trials:
        raise UserInputError(
            f"There is no trial {entry!r} in the experiment, whose trials are 0 to {len(experiment.trials) - 1}."
        )
    arms = experiment.trials[entry].arms
    if len(arms) != 1:
        raise UserInputError(
            f"Trial {entry} has {len(arms)} arms; name one of {[arm.name for arm in arms]} instead of the trial."
        )
    return arms[0].name


def _some(experiment: Experiment, most: int = 10) -> str:
    names = list(experiment.arms_by_name)
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def get_next_pair(client: Client) -> tuple[int, dict[str, TParameterization]]:
    r"""Ask for the next two points to compare, as one trial with two arms.

    Answer with `complete_pair`; or leave the trial unanswered, `client.mark_trial_abandoned(trial_index)`, which is no
    failure.

    Args:
        client: The client of the experiment.

    Returns:
        The trial's index, and the parameters of each arm by its name.

    Raises:
        UserInputError: If no optimization is configured.
    """
    experiment = experiment_of(client)
    if experiment.optimization_config is None:
        raise UserInputError("Call client.configure_optimization(objective=...) before asking for a pair.")
    strategy = generation_strategy_of(client)
    with _tried_arms_allowed(strategy):
        (runs,) = strategy.gen(experiment=experiment, n=2, num_trials=1)
    if sum(len(run.arms) for run in runs) != 2:
        raise UserInputError(
            "The search space has no second point to compare with; two different points could not be generated."
        )
    trial = experiment.new_batch_trial(generator_runs=runs)
    trial.update_run_metadata({PAIR: True})
    trial.mark_running(no_runner_required=True)
    save_generation_strategy(client, strategy)
    save_trial(client, experiment, trial)
    return trial.index, {arm.name: cast(TParameterization, arm.parameters) for arm in trial.arms}


@contextmanager
def _tried_arms_allowed(strategy: GenerationStrategy) -> Iterator[None]:
    """A pair often has an arm that was tried before, such as the best one; Ax would put Sobol points in its place."""
    before = [(node, node.should_deduplicate) for node in strategy.nodes_by_name.values()]
    try:
        for node, _ in before:
            node.should_deduplicate = False
        yield
    finally:
        for node, value in before:
            node.should_deduplicate = value


def complete_pair(client: Client, trial_index: int, winner: str | None) -> None:
    r"""Answer a trial of `get_next_pair`, and mark it completed.

    Args:
        client: The client of the experiment.
        trial_index: The trial's index.
        winner: The name of the better arm; `None` for a tie.

    Raises:
        UserInputError: If the trial is none of `get_next_pair`, is not open any more, or the winner is not one of its
            arms. The experiment is then as before.
    """
    experiment = experiment_of(client)
    trial = experiment.trials.get(trial_index)
    if trial is None or not is_pair(trial):
        raise UserInputError(f"Trial {trial_index} is no pair of get_next_pair; use attach_comparison for others.")
    if trial.status != TrialStatus.RUNNING:
        raise UserInputError(f"Trial {trial_index} is {trial.status.name}; only running pairs can be answered.")
    names = [arm.name for arm in trial.arms]
    if winner is not None and winner not in names:
        raise UserInputError(f"winner must be one of {names}, or None for a tie; got {winner!r}.")
    first, second = names if winner != names[1] else reversed(names)
    attach_comparison(client, first, second, tie=winner is None)
    trial.mark_completed()
    save_trial(client, experiment, trial)


def is_pair(trial: object) -> bool:
    """Whether a trial asks for a comparison."""
    return isinstance(trial, BatchTrial) and bool(trial.run_metadata.get(PAIR, False))
