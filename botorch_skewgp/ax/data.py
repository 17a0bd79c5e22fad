"""Observations of an Ax experiment: labels of validity for every trial, and datasets of several kinds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ax.core.data_utils import ExperimentData
from ax.core.experiment import Experiment
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.transition_criterion import TransitionCriterion
from botorch.utils.datasets import SupervisedDataset
from pandas import DataFrame, MultiIndex
from torch import Tensor

from botorch_skewgp.ax.comparisons import is_pair, recorded
from botorch_skewgp.ax.internals import title_of
from botorch_skewgp.hosts.data import LARGEST, text_of
from botorch_skewgp.hosts.records import Judgement, Records, Unreadable, warn_of
from botorch_skewgp.observations import Observation

INVALID = (TrialStatus.FAILED, TrialStatus.ABANDONED)
NOT_FETCHED = "Failed to fetch"  # begins the reason that Ax stores, before the metric's name
ArmOfTrial = tuple[int, str]
Rows = dict[ArmOfTrial, dict[tuple[str, str], Any]]  # means and standard errors by metric


class ObservationDataset(SupervisedDataset):
    """A BoTorch dataset with observations of any kind; `Y`, `n x 1`, has the numbers, NaN where there is none, by which
    Ax finds feasible points. `kinds` are those of the whole experiment; a part may lack some.
    """

    def __init__(
        self,
        X: Tensor,
        Y: Tensor,
        *,
        feature_names: list[str],
        outcome_names: list[str],
        observations: Sequence[Observation],
        kinds: Sequence[type[Observation]],
        minimize: bool = False,
        group_indices: Tensor | None = None,
    ) -> None:
        super().__init__(X, Y, feature_names=feature_names, outcome_names=outcome_names, group_indices=group_indices)
        self.observations = tuple(observations)
        self.kinds = tuple(kinds)
        self.minimize = minimize

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ObservationDataset) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    def _content(self) -> str:
        rest = (self.Y, self.group_indices, self.kinds, self.minimize, self.feature_names, self.outcome_names)
        return text_of(self.X, self.observations, *rest)


def with_every_trial(
    experiment: Experiment,
    experiment_data: ExperimentData,
    objectives: Sequence[str],
    validity: str | None,
    labels: Sequence[str],
    records: Records,
) -> ExperimentData:
    """Add what Ax leaves out: rows of failed, abandoned, compared and censored arms, and a column of validity if some
    trial is invalid or a label was reported. Of learning curves the last numbers count, once the trial has ended.
    """
    _check_numbers(experiment)
    data = with_final_numbers(experiment, experiment_data)
    rows: Rows = data.observation_data.to_dict("index")
    bounded = {key[:2] for key in records.bounds if key[2] in objectives}
    failed = [] if validity is None else [key for key in _failed_arms(experiment) if key not in bounded]
    for key in failed:
        rows.setdefault(key, {})
    for key in _compared_arms(experiment, records.judgements):
        row = rows.setdefault(key, {})
        rows[key] = {(part, name): math.nan for name in objectives for part in ("mean", "sem")} | row
    for index, arm, name in records.bounds:
        rows.setdefault((index, arm), {}).update({("mean", name): math.nan, ("sem", name): math.nan})
    failed += _without_too_large(experiment, rows, objectives)
    _check_labels(rows, labels)
    columns = dict.fromkeys([*data.observation_data.columns, *(name for row in rows.values() for name in row)])
    if validity is not None and (failed or ("mean", validity) in columns):
        columns |= {("mean", validity): None, ("sem", validity): None}
        for key, row in rows.items():
            works = key in bounded or any(_is_number(row.get(("mean", name))) for name in objectives)
            if not _is_number(row.get(("mean", validity))):
                row["mean", validity] = 0.0 if key in failed else 1.0 if works else math.nan
            row["sem", validity] = math.nan
    if not rows:
        return data
    arms = data.arm_data.to_dict("index")
    for key in rows:
        arms.setdefault(key, {**experiment.arms_by_name[key[1]].parameters, "metadata": {}})
    keys = sorted(rows, key=lambda key: key[0])
    index = MultiIndex.from_tuples(keys, names=["trial_index", "arm_name"])
    values = [[rows[key].get(name, math.nan) for name in columns] for key in keys]
    return ExperimentData(
        arm_data=DataFrame([arms[key] for key in keys], index=index),
        observation_data=DataFrame(values, index=index, columns=MultiIndex.from_tuples(columns)),
    )


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def with_final_numbers(experiment: Experiment, experiment_data: ExperimentData) -> ExperimentData:
    """The last numbers of learning curves of trials that have ended."""
    if experiment_data.observation_data.index.nlevels == 2:
        return experiment_data
    final = experiment_data.filter_latest_observations()
    ended = [trial for trial in experiment.trials.values() if not trial.status.is_running]
    keep = final.observation_data.index.get_level_values("trial_index").isin([trial.index for trial in ended])
    observed = final.observation_data[keep]
    return ExperimentData(arm_data=final.arm_data.reindex(observed.index), observation_data=observed)


def _without_too_large(experiment: Experiment, rows: Rows, objectives: Sequence[str]) -> list[ArmOfTrial]:
    """Leave out, in place, numbers whose square is infinite; returns the arms with such an objective."""
    found = []
    for key, row in rows.items():
        for name in [name for (part, name), value in row.items() if part == "mean" and abs(value) > LARGEST]:
            reason = "counts as a failure" if name in objectives else "is too large to learn from"
            title = f"{name!r} of trial {key[0]} of {title_of(experiment)}"
            advice = f"Attach the right number by client.attach_data({key[0]}, ...) if there is one."
            warn_of([Unreadable(title, row["mean", name], reason)], advice)
            row |= {("mean", name): math.nan, ("sem", name): math.nan}
            found += [key] if name in objectives else []
    return found


def _failed_arms(experiment: Experiment) -> list[ArmOfTrial]:
    """The arms that failed: not those of pairs that nobody answered, or whose numbers could not be fetched."""
    unfetched = {f"{NOT_FETCHED} {name}" for name in experiment.metrics}
    failed: list[ArmOfTrial] = []
    for trial in experiment.trials.values():
        if trial.status not in INVALID:
            failed += [(trial.index, arm.name) for arm in trial.abandoned_arms]
        elif not (is_pair(trial) or trial.status_reason in unfetched):
            failed += [(trial.index, arm.name) for arm in trial.arms]
    return failed


def _compared_arms(experiment: Experiment, comparisons: Sequence[Judgement]) -> list[ArmOfTrial]:
    """The first trial of every compared arm."""
    first: dict[str, int] = {}
    for trial in experiment.trials.values():
        for arm in trial.arms:
            first.setdefault(arm.name, trial.index)
    return [(first[name], name) for entry in comparisons for name in entry.items]


def _check_numbers(experiment: Experiment) -> None:
    data = experiment.lookup_data().df
    # beyond LARGEST a variance overflows
    if not len(data):
        return
    has_wrong_error = (data["sem"] < 0) | (data["sem"] > LARGEST)
    for _, row in data[data["mean"].isna() | has_wrong_error].iterrows():
        index, name = row["trial_index"], row["metric_name"]
        status = experiment.trials[index].status
        if status in INVALID:
            continue
        if math.isnan(row["mean"]):
            what = f"{row['mean']} for {name!r}"
        else:
            what = f"the standard error {row['sem']} for {name!r}, which must be finite, or left out, and not negative"
        if status.is_running:
            failed = f"call client.mark_trial_failed({index})"
        else:
            failed = f"say that it failed by client.attach_data({index}, {{{name!r}: math.inf}}), of an objective"
        raise UserInputError(
            f"Trial {index} reports {what}. Attach the right number by client.attach_data({index}, {{{name!r}: ...}}), "
            f"or {failed}; the model learns from failures."
        )


def _check_labels(rows: Rows, labels: Sequence[str]) -> None:
    for name, ((trial, _), row) in itertools.product(labels, rows.items()):
        value = row.get(("mean", name))
        if _is_number(value) and value not in (0, 1):
            raise UserInputError(
                f"Trial {trial} reports {value} for {name!r}, whose values must be 0 or 1. Attach it again."
            )


def known_arms(experiment: Experiment) -> list[str]:
    """The names of arms that were compared and did not fail, or have a number or a bound of each objective."""
    config, records, data = experiment.optimization_config, recorded(experiment), experiment.lookup_data().df
    objectives = set() if config is None else set(config.objective.metric_names)
    compared = {name for judgement in records.judgements for name in judgement.items}
    failed_trials = [trial for trial in experiment.trials.values() if trial.status in INVALID]
    failed = {arm.name for trial in failed_trials for arm in trial.arms}
    data = data[data["mean"].abs() <= LARGEST]
    data = data[~data["trial_index"].isin([trial.index for trial in failed_trials])]
    numbers = zip(data["trial_index"], data["arm_name"], data["metric_name"], strict=True)
    known = {*records.bounds, *numbers}
    measured = {arm for index, arm, _ in known if all((index, arm, name) in known for name in objectives)}
    return [name for name in experiment.arms_by_name if name in measured or name in compared - failed]


def objective_is_known(experiment: Experiment) -> bool:
    """Whether trials were compared, or one that did not fail has a number or a bound of each objective."""
    return bool(recorded(experiment).judgements or known_arms(experiment))


class ObjectiveIsKnown(TransitionCriterion):
    """Met as soon as the objective has data; failures and labels alone are not enough."""

    def is_met(self, experiment: Experiment, curr_node: GenerationNode) -> bool:
        """Whether the objective is known."""
        return objective_is_known(experiment)
