"""Observations of an Ax experiment: labels of validity for every trial, and datasets of several kinds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ax.core.data_utils import ExperimentData
from ax.core.experiment import Experiment
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.transition_criterion import TransitionCriterion
from botorch.utils.datasets import SupervisedDataset
from pandas import DataFrame, MultiIndex, Series, concat
from torch import Tensor

from botorch_skewgp.ax.comparisons import Bound, is_pair, recorded_bounds, recorded_comparisons
from botorch_skewgp.ax.internals import title_of
from botorch_skewgp.hosts import data as hosts_data
from botorch_skewgp.hosts.data import LARGEST, as_rows
from botorch_skewgp.hosts.records import Judgement, Unreadable, warn_of
from botorch_skewgp.observations import Binary, Observation

INVALID = (TrialStatus.FAILED, TrialStatus.ABANDONED)
NOT_FETCHED = "Failed to fetch"  # begins the reason that Ax stores, before the metric's name
ArmOfTrial = tuple[int, str]


class ObservationDataset(SupervisedDataset):
    """A BoTorch dataset whose rows carry observations of any kind.

    `Y`, `n x 1`, has the numbers, with NaN where there is none; Ax reads from it which points are feasible. `kinds` are
    those of the whole experiment, of which a part may lack some.
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
        """All values as text, in which NaN equals itself."""
        fields = [(type(entry), vars(entry).items()) for entry in self.observations]
        told = [(kind, name, value) for kind, items in fields for name, value in items]
        rest = [self.X, self.Y, self.group_indices, self.kinds, self.minimize, self.feature_names, self.outcome_names]
        return repr([part.tolist() if isinstance(part, Tensor) else part for part in (*sum(told, ()), *rest)])


def with_every_trial(
    experiment: Experiment,
    experiment_data: ExperimentData,
    objectives: Sequence[str],
    validity: str | None,
    labels: Sequence[str],
    comparisons: Sequence[Judgement],
    bounds: Sequence[Bound] = (),
) -> ExperimentData:
    """Add what Ax leaves out: rows of failed, abandoned, compared and censored arms, and a column of validity if some
    trial is invalid or a label was reported. Of learning curves the last numbers count, once the trial has ended.
    """
    experiment_data = with_final_numbers(experiment, experiment_data)
    observed = experiment_data.observation_data
    _check_numbers(experiment)
    bounded = {(entry.trial_index, entry.arm_name, entry.metric) for entry in bounds}
    read = {key[:2] for key in bounded if key[2] in objectives}
    failed = [] if validity is None else [key for key in _failed_arms(experiment) if key not in read]
    wanted = [*failed, *_compared_arms(experiment, comparisons), *(key[:2] for key in sorted(bounded))]
    missing = [key for key in dict.fromkeys(wanted) if key not in observed.index]
    names = observed.columns if len(observed.columns) else _columns([])
    added = [*(objectives if comparisons else []), *(entry.metric for entry in bounds)]
    observed = observed.reindex(columns=names.union(_columns(list(dict.fromkeys(added))), sort=False))
    arms = experiment_data.arm_data
    if missing:
        index = MultiIndex.from_tuples(missing, names=["trial_index", "arm_name"])
        rows: list[dict[str, Any]] = [
            {**experiment.arms_by_name[name].parameters, "metadata": {}} for _, name in missing
        ]
        arms = concat([arms, DataFrame(rows, index=index)]) if len(arms) else DataFrame(rows, index=index)
        empty = DataFrame(np.nan, index=index, columns=observed.columns)
        observed = concat([observed, empty]) if len(observed) else empty
        arms = arms.sort_index(level=0, sort_remaining=False)
        observed = observed.reindex(arms.index)
    observed = observed.copy()
    for trial, arm, metric in bounded:
        observed.loc[(trial, arm), [("mean", metric), ("sem", metric)]] = np.nan
    too_large = _without_too_large(experiment, observed, objectives)
    if validity is not None:
        failed += [key for key in too_large if key not in failed]
    for label in labels:
        if ("mean", label) in observed.columns:
            _check_labels(label, observed["mean", label])
    if validity is not None:
        observed = _with_validity(observed, objectives, validity, set(failed), read)
    return ExperimentData(arm_data=arms, observation_data=observed)


def with_final_numbers(experiment: Experiment, experiment_data: ExperimentData) -> ExperimentData:
    """The last numbers of learning curves of trials that have ended."""
    if experiment_data.observation_data.index.nlevels == 2:
        return experiment_data
    final = experiment_data.filter_latest_observations()
    ended = [trial for trial in experiment.trials.values() if not trial.status.is_running]
    keep = final.observation_data.index.get_level_values("trial_index").isin([trial.index for trial in ended])
    observed = final.observation_data[keep]
    return ExperimentData(arm_data=final.arm_data.reindex(observed.index), observation_data=observed)


def _columns(signatures: Sequence[str]) -> MultiIndex:
    return MultiIndex.from_tuples([(part, name) for name in signatures for part in ("mean", "sem")], names=[None, None])


def _without_too_large(experiment: Experiment, observed: DataFrame, objectives: Sequence[str]) -> list[ArmOfTrial]:
    """Leave out, in place, numbers whose square is infinite; returns the arms with such an objective."""
    found: list[ArmOfTrial] = []
    for name in observed.columns.get_level_values(1).unique():
        is_too_large = observed["mean", name].abs() > LARGEST
        for key, value in observed["mean", name][is_too_large].items():
            reason = "counts as a failure" if name in objectives else "is too large to learn from"
            warn_of(
                [Unreadable(f"{name!r} of trial {key[0]} of {title_of(experiment)}", value, reason)],
                f"Attach the right number by client.attach_data({key[0]}, ...) if there is one.",
            )
            found += [key] if name in objectives else []
        observed.loc[is_too_large, [("mean", name), ("sem", name)]] = np.nan
    return found


def _failed_arms(experiment: Experiment) -> list[ArmOfTrial]:
    """The arms that failed: not those of pairs that nobody answered, or whose numbers could not be fetched."""
    unfetched = {f"{NOT_FETCHED} {name}" for name in experiment.metrics}
    return [
        (trial.index, arm.name)
        for trial in experiment.trials.values()
        if trial.status not in INVALID or not (is_pair(trial) or trial.status_reason in unfetched)
        for arm in (trial.arms if trial.status in INVALID else trial.abandoned_arms)
    ]


def _compared_arms(experiment: Experiment, comparisons: Sequence[Judgement]) -> list[ArmOfTrial]:
    """The first trial of every compared arm."""
    first: dict[str, int] = {}
    for trial in experiment.trials.values():
        for arm in trial.arms:
            first.setdefault(arm.name, trial.index)
    return [(first[name], name) for entry in comparisons for name in entry.items]


def _with_validity(
    observed: DataFrame,
    objectives: Sequence[str],
    validity: str,
    failed: set[ArmOfTrial],
    bounded: set[ArmOfTrial],
) -> DataFrame:
    reported = observed["mean", validity] if ("mean", validity) in observed.columns else None
    if not failed and reported is None:
        return observed
    known = [name for name in objectives if ("mean", name) in observed.columns]
    has_number = observed["mean"][known].notna().any(axis=1) if known else Series(False, index=observed.index)
    works = has_number | observed.index.isin(bounded)
    labels = Series(np.where(observed.index.isin(failed), 0.0, np.where(works, 1.0, np.nan)), index=observed.index)
    observed["mean", validity] = labels if reported is None else reported.fillna(labels)
    observed["sem", validity] = np.nan
    return observed


def _check_numbers(experiment: Experiment) -> None:
    data = experiment.lookup_data().df
    # beyond LARGEST a variance overflows
    wrong = data[data["mean"].isna() | (data["sem"] < 0) | (data["sem"] > LARGEST)] if len(data) else data
    for _, row in wrong.iterrows():
        index, name = row["trial_index"], row["metric_name"]
        status = experiment.trials[index].status
        if status in INVALID:
            continue
        what = f"{row['mean']} for {name!r}"
        if not math.isnan(row["mean"]):
            what = f"the standard error {row['sem']} for {name!r}, which must be finite, or left out, and not negative"
        failed = (
            f"call client.mark_trial_failed({index})"
            if status.is_running
            else f"say that it failed by client.attach_data({index}, {{{name!r}: math.inf}}), of an objective"
        )
        raise UserInputError(
            f"Trial {index} reports {what}. Attach the right number by client.attach_data({index}, {{{name!r}: ...}}), "
            f"or {failed}; the model learns from failures."
        )


def _check_labels(name: str, values: Any) -> None:
    wrong = values[values.notna() & ~values.isin([0, 1])]
    if len(wrong):
        (trial, _), value = wrong.index[0], wrong.iloc[0]
        raise UserInputError(
            f"Trial {trial} reports {value} for {name!r}, whose values must be 0 or 1. Attach it again."
        )


def make_dataset(
    X: Tensor,
    index: MultiIndex,
    mean: Tensor,
    sem: Tensor,
    comparisons: Sequence[Judgement],
    bounds: Sequence[Bound],
    kinds: Sequence[type[Observation]],
    **kwargs: Any,
) -> ObservationDataset | None:
    """The dataset of one outcome, with the arms that have observations of it; `None` without. An arm of several trials
    is one point with several observations: `Y` has their mean, `group_indices` the first trial.
    """
    row_of: dict[Any, int] = {}
    for i, (_, name) in enumerate(index):
        row_of.setdefault(name, i)
    limits = {entry[:2]: entry[3:] for entry in bounds}
    ends = [limits.get(key, (-math.inf, math.inf)) for key in index]
    data = hosts_data.ExperimentData(
        X=X,
        numbers=mean.unsqueeze(-1),
        variances=sem.square().unsqueeze(-1),
        bounds=torch.tensor(ends, dtype=mean.dtype, device=mean.device).mT.unsqueeze(-1),
        constraints=mean.new_empty(len(X), 0),
        valid=mean * math.nan,
        pending=torch.zeros_like(mean, dtype=torch.bool),
        judgements=as_rows(comparisons, row_of),
        labels=Binary in kinds,
    )
    known = data.observed()
    if known is None:
        return None
    numbers = ~mean.isnan()
    count = torch.zeros_like(known.X[:, 0]).index_add(0, known.point[numbers], torch.ones_like(mean[numbers]))
    Y = torch.zeros_like(count).index_add(0, known.point[numbers], mean[numbers]) / count  # NaN where there is none
    trials = torch.tensor([trial for trial, _ in index], dtype=torch.long)
    return ObservationDataset(
        known.X,
        Y.unsqueeze(-1),
        observations=known.observations,
        kinds=kinds,
        group_indices=trials[known.rows.cpu()],
        **kwargs,
    )


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
