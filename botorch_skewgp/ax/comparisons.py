"""What people say about pairs of trials: recorded in the experiment's properties, so that it is stored with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ax.api.client import Client
from ax.core.batch_trial import BatchTrial
from ax.core.experiment import Experiment
from ax.exceptions.core import UserInputError
from ax.utils.common.constants import Keys

from botorch_skewgp.ax.internals import (
    experiment_of,
    properties_of,
    save_experiment,
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
        UserInputError: If a trial or arm is not in the experiment, has several arms, or is compared with itself; or if
            there are several objectives, of which a comparison does not tell. The experiment is then as before, as it
            is where its database cannot be reached, which SQLAlchemy's errors say.
    """
    experiment = experiment_of(client)
    check_one_objective(experiment)
    names = [_arm_name(experiment, entry) for entry in (winner, loser)]
    if names[0] == names[1]:
        raise UserInputError(
            f"{winner!r} and {loser!r} are the same arm, {names[0]}; a comparison needs two different ones."
        )
    entry = {"winner": names[0], "loser": names[1], "tie": bool(tie)}
    _record(client, experiment, [*properties_of(experiment).get(COMPARISONS, []), entry])


def withdraw_comparison(client: Client, winner: int | str, loser: int | str, tie: bool = False) -> None:
    r"""Take back the last comparison of two trials with this answer, be it attached or the answer to a pair.

    Example:
        >>> attach_comparison(client, winner=3, loser=1)
        >>> withdraw_comparison(client, winner=3, loser=1)

    Args:
        client: The client of the experiment.
        winner: The one that was said to be better, as in `attach_comparison`.
        loser: The other one.
        tie: Whether they were said to be as good as each other, in whatever order.

    Raises:
        UserInputError: If there is no such comparison, or no such trial or arm. The experiment is then as before.
    """
    experiment = experiment_of(client)
    names = [_arm_name(experiment, entry) for entry in (winner, loser)]
    known = properties_of(experiment).get(COMPARISONS, [])
    wanted = [(*names, tie), (*reversed(names), tie)] if tie else [(*names, tie)]
    found = [i for i, entry in enumerate(known) if (entry["winner"], entry["loser"], entry["tie"]) in wanted]
    if not found:
        said = "as good as" if tie else "better than"
        raise UserInputError(
            f"Nobody said that {winner!r} was {said} {loser!r}; see recorded_comparisons(experiment) for what was said."
        )
    _record(client, experiment, [entry for i, entry in enumerate(known) if i != found[-1]])


def _record(client: Client, experiment: Experiment, comparisons: list[dict[str, Any]]) -> None:
    """Keep comparisons with an experiment; as before if its database cannot be reached, so that one can try again."""
    properties = properties_of(experiment)
    before = properties.get(COMPARISONS, [])
    properties[COMPARISONS] = comparisons
    try:
        save_experiment(client, experiment)
    except BaseException:
        properties[COMPARISONS] = before
        raise


def check_one_objective(experiment: Experiment) -> None:
    r"""Raise `UserInputError` if the experiment has several objectives: a comparison is about a single one."""
    config = experiment.optimization_config
    names = [] if config is None else list(config.objective.metric_names)
    if len(names) > 1:
        raise UserInputError(
            "Comparisons say which trial is better all in all, for which there must be one metric as objective; the "
            f"objective has {names}. To compare vectors of outcomes, use configure_preference_exploration."
        )


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


def is_pair(trial: object) -> bool:
    """Whether a trial asks for a comparison."""
    return isinstance(trial, BatchTrial) and bool(trial.run_metadata.get(PAIR, False))
