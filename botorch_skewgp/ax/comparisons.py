"""Comparisons and bounds of trials, recorded in the experiment's properties and stored with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ax.api.client import Client
from ax.core.arm import Arm
from ax.core.base_trial import BaseTrial
from ax.core.batch_trial import BatchTrial
from ax.core.experiment import Experiment
from ax.exceptions.core import UserInputError

from botorch_skewgp import checks
from botorch_skewgp.ax.internals import experiment_of, properties_of, save, title_of, user_input_errors
from botorch_skewgp.hosts import records

COMPARISONS, CENSORED = "skewgp_comparisons", "skewgp_censored"
PAIR = "skewgp_pair"  # marks, in a trial's run metadata, that it asks for a comparison


def recorded_comparisons(experiment: Experiment) -> list[records.Judgement]:
    r"""All judgements of arms, by name, of an experiment (`client._experiment`). Unreadable entries are left out with a
    warning, as are all if there are several objectives.

    Raises:
        UserInputError: If it is no experiment.
    """
    return recorded(experiment).judgements


def recorded(experiment: Experiment) -> records.Records:
    """What people reported in an experiment; entries that cannot be read are left out with a warning."""
    found = _read(experiment)
    records.warn_of(found.unreadable, f"Take it back by withdraw_unreadable(client), in {title_of(experiment)}.")
    return found


def _read(experiment: Experiment) -> records.Records:
    """What people reported: judgements of arms, and bounds, the last ones of each trial, arm and metric."""
    reports = [[entry] for entry in _entries(experiment, COMPARISONS)]
    judgements, unreadable = records.read_judgements(reports, experiment.arms_by_name, _objectives(experiment))
    bounds: dict[Any, tuple[float, float]] = {}
    for key, value in _entries(experiment, CENSORED):
        entry: dict[str, Any] = value if isinstance(value, dict) else {}
        index, arm, metric = (entry.get(name) for name in ("trial", "arm", "metric"))
        trial = experiment.trials.get(index) if type(index) is int else None
        ends = records.as_bounds(entry.get("lower"), entry.get("upper"))
        if trial and ends and metric in list(experiment.metrics) and arm in [known.name for known in trial.arms]:
            bounds[index, arm, metric] = ends
        else:
            unreadable.append(records.Unreadable(key, value, "is no bound of a metric of a trial of the experiment"))
    return records.Records(judgements, bounds, unreadable)


def _list(experiment: Experiment, kind: str) -> list[Any]:
    recorded = properties_of(experiment).get(kind, [])
    return list(recorded) if isinstance(recorded, list | tuple) else [recorded]


def _entries(experiment: Experiment, kind: str) -> list[tuple[str, Any]]:
    return [(f"{kind}[{i}]", entry) for i, entry in enumerate(_list(experiment, kind))]


def attach_comparison(
    client: Client, winner: int | str, loser: int | str, tie: bool = False, judge: int | str | None = None
) -> None:
    r"""Record which of two trials was better by the objective: of a metric that is minimised, it has the lower value.

    The trials need no numbers. A pair may be compared often, in both orders too.

    Example:
        >>> attach_comparison(client, winner=3, loser=1)
        >>> attach_comparison(client, 4, 3, tie=True)
        >>> attach_comparison(client, 3, 2, judge="ann")

    Args:
        client: The client of the experiment.
        winner: The better one: a trial's index, or an arm's name for trials with several arms.
        loser: The other one.
        tie: Whether the two were judged equally good; their order does not matter then.
        judge: The judge who compared them, a name or a number from 0 on. With two judges or more the model has a shared
            part and one of each judge, and experiments optimise the shared part.

    Raises:
        UserInputError: If a trial or arm is not in the experiment, has several arms, or is named twice, there are
            several objectives, or `tie` or `judge` is of another kind. The experiment is then as before, as it is after
            SQLAlchemy's errors where its database cannot be reached.
    """
    with user_input_errors():
        checks.check_flags(tie=tie)
    _attach(client, records.Judgement((winner,), (loser,), tie, judge=judge))


def attach_choice(
    client: Client,
    winner: int | str | None,
    losers: Sequence[int | str],
    judge: int | str | None = None,
    or_none: bool = False,
) -> None:
    r"""Record which of several trials was the best, or that all of them are bad, in a single answer.

    Example:
        >>> attach_choice(client, winner=3, losers=[1, 4])
        >>> attach_choice(client, winner=None, losers=[0, 2])  # all of these are bad

    Args:
        client: The client of the experiment.
        winner: The best one, a trial or arm as in `attach_comparison`; `None` if all are bad.
        losers: The other ones.
        judge: The judge who chose, see `attach_comparison`.
        or_none: Whether "all are bad" was an answer too: the best is then good enough, one trial may be judged alone,
            and the answers tell the level of the objective (`ChoiceOrNone`).

    Raises:
        UserInputError: As `attach_comparison`, or if there are no losers. The experiment is then as before.
    """
    with user_input_errors():
        records.check_choice(winner, losers, or_none, "losers")
    _attach(client, records.judged(winner, losers, or_none=or_none, judge=judge))


def _attach(client: Client, judgement: records.Judgement) -> None:
    """Store a judgement of some trials or arms."""
    experiment = experiment_of(client)
    check_one_objective(experiment)
    names: dict[str, int | str] = {}
    for entry in (*judgement.better, *judgement.worse):
        name = name_of_arm(experiment, entry)
        if name in names:
            raise UserInputError(f"{names[name]!r} and {entry!r} are the same arm, {name}; name different ones.")
        names[name] = entry
    with user_input_errors():
        records.check_judge(judgement.judge)
    _record(
        client, experiment, COMPARISONS, [*_list(experiment, COMPARISONS), records.as_value(judgement.of(list(names)))]
    )


def keep_round(client: Client, key: str, judgement: records.Judgement | None) -> None:
    """Store a judgement of arms by a key, in place of one that has it; of `None` that one is only taken away."""
    experiment = experiment_of(client)
    kept = [e for e in _list(experiment, COMPARISONS) if not (isinstance(e, dict) and e.get("round") == key)]
    new = [] if judgement is None else [{**records.as_value(judgement), "round": key}]
    _record(client, experiment, COMPARISONS, kept + new)


def attach_censored(
    client: Client,
    trial_index: int,
    metric: str,
    lower: float | None = None,
    upper: float | None = None,
    arm_name: str | None = None,
) -> None:
    r"""Record a censored reading: the number of a metric lies between bounds, and is otherwise unknown.

    It replaces the trial's own number, as a second call the first. A failed or abandoned trial with a bound of an
    objective counts as valid: it may have been stopped at a time limit.

    Example:
        >>> attach_censored(client, 3, "seconds", lower=100.0)  # stopped after 100 seconds
        >>> attach_censored(client, 4, "residue", upper=0.01)  # below the detection limit

    Args:
        client: The client of the experiment.
        trial_index: The trial's index.
        metric: The metric's name.
        lower: The lower bound; `None` if unknown.
        upper: The upper bound; `None` if unknown.
        arm_name: The name of the arm, for trials with several.

    Raises:
        UserInputError: If there is no such trial, arm or metric, there is no finite bound, or the lower bound is not
            below the upper one. The experiment is then as before.
    """
    experiment = experiment_of(client)
    arm = name_of_arm(experiment, trial_index if arm_name is None else arm_name)
    if not isinstance(metric, str) or metric not in experiment.metrics:
        raise UserInputError(f"There is no metric {metric!r}; the experiment has {', '.join(experiment.metrics)}.")
    with user_input_errors():
        given = records.checked_bounds(lower, upper)
    trial = trial_of(experiment, trial_index)
    if trial is None or all(arm != entry.name for entry in trial.arms):
        raise UserInputError(f"Trial {trial_index!r} has no arm {arm!r}.")
    entry = {"trial": trial.index, "arm": arm, "metric": metric, **given}
    _record(client, experiment, CENSORED, [*_list(experiment, CENSORED), entry])


def withdraw_comparison(client: Client, first: int | str, second: int | str) -> None:
    r"""Take back all comparisons of two trials or arms, named as in `attach_comparison`, ties and answers to pairs too.

    Example:
        >>> attach_comparison(client, winner=3, loser=1)
        >>> withdraw_comparison(client, 3, 1)

    Raises:
        UserInputError: If the two were not compared, or one is not in the experiment, which is then as before.
    """
    experiment = experiment_of(client)
    pair = {name_of_arm(experiment, entry) for entry in (first, second)}
    left = records.left_of({COMPARISONS: _list(experiment, COMPARISONS)}, lambda judgement: judgement.without(pair))
    if not left:
        raise UserInputError(f"{first!r} and {second!r} were not compared; there is nothing to take back.")
    _record(client, experiment, COMPARISONS, left[COMPARISONS])


def withdraw_censored(client: Client, trial_index: int, metric: str) -> None:
    r"""Take back the bounds of a metric of a trial.

    Raises:
        UserInputError: If there are none. The experiment is then as before.
    """
    experiment = experiment_of(client)
    trial, before = trial_of(experiment, trial_index), _list(experiment, CENSORED)
    place = None if trial is None else (trial.index, metric)
    kept = [e for e in before if not (isinstance(e, dict) and (e.get("trial"), e.get("metric")) == place)]
    if len(kept) == len(before):
        raise UserInputError(f"Trial {trial_index} has no bounds of {metric!r}; there is nothing to take back.")
    _record(client, experiment, CENSORED, kept)


def withdraw_unreadable(client: Client) -> None:
    r"""Take back all entries of the experiment that cannot be read, of which the model warns.

    Raises:
        UserInputError: If the client has no experiment.
    """
    experiment = experiment_of(client)
    keys = {entry.key for entry in _read(experiment).unreadable}
    for kind in (COMPARISONS, CENSORED):
        entries = _entries(experiment, kind)
        kept = [entry for key, entry in entries if key not in keys]
        if len(kept) < len(entries):
            _record(client, experiment, kind, kept)


def _record(client: Client, experiment: Experiment, kind: str, recorded: list[Any]) -> None:
    """Store entries with an experiment, which is as before if its database cannot be reached."""
    properties = properties_of(experiment)
    before = properties.get(kind, [])
    properties[kind] = recorded
    try:
        save(client, experiment)
    except BaseException:
        properties[kind] = before
        raise


def check_one_objective(experiment: Experiment) -> None:
    r"""Raise `UserInputError` if the experiment has several objectives: a comparison is about a single one."""
    advice = "To compare vectors of outcomes, see tutorials/ax/preference_exploration.py."
    records.check_one_objective(_objectives(experiment), UserInputError, advice)


def _objectives(experiment: Experiment) -> list[str]:
    config = experiment.optimization_config
    return [] if config is None else list(config.objective.metric_names)


def name_of_arm(experiment: Experiment, entry: int | str) -> str:
    """The name of an arm, by itself or by the index of a trial with a single one; raises `UserInputError`."""
    if isinstance(entry, str):
        if entry not in experiment.arms_by_name:
            names = list(experiment.arms_by_name)
            some = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise UserInputError(f"There is no arm {entry!r} in the experiment; its arms are {some}.")
        return entry
    trial = trial_of(experiment, entry)
    if trial is None:
        raise UserInputError(
            f"There is no trial {entry!r} in the experiment, whose trials are 0 to {len(experiment.trials) - 1}."
        )
    arms = trial.arms
    if len(arms) != 1:
        raise UserInputError(
            f"Trial {entry} has {len(arms)} arms; name one of {[arm.name for arm in arms]} instead of the trial."
        )
    return arms[0].name


def trial_of(experiment: Experiment, index: Any) -> BaseTrial | None:
    """The trial of an index, which must be a whole number; `None` if there is none."""
    return experiment.trials.get(int(index)) if checks.is_whole(index) else None


def is_pair(trial: object) -> bool:
    """Whether a trial asks for a comparison."""
    return isinstance(trial, BatchTrial) and bool(trial.run_metadata.get(PAIR, False))


def open_pairs(experiment: Experiment) -> list[list[Arm]]:
    """The arms of each pair that waits for an answer."""
    return [trial.arms for trial in experiment.trials.values() if is_pair(trial) and trial.status.is_running]
