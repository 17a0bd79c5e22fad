"""From an Ax experiment to observations: labels of validity for every trial, and datasets of several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ax.core.data_utils import ExperimentData
from ax.core.experiment import Experiment
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import UserInputError
from botorch.utils.datasets import SupervisedDataset
from pandas import DataFrame, MultiIndex, concat
from torch import Tensor

from botorch_skewgp.ax.comparisons import Comparison, is_pair
from botorch_skewgp.observations import Binary, Numeric, Observation, Preference, Tie, Validity

INVALID = (TrialStatus.FAILED, TrialStatus.ABANDONED)
ArmOfTrial = tuple[int, str]


class ObservationDataset(SupervisedDataset):
    r"""A BoTorch dataset whose rows carry observations of any kind.

    `Y` has the numbers, with NaN where there is none: Ax looks at it to see which points are feasible.
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
        probability: bool = False,
        group_indices: Tensor | None = None,
    ) -> None:
        r"""
        Args:
            X: An `n x d` tensor of points.
            Y: An `n x 1` tensor of numbers, NaN where there is none.
            feature_names: The names of the columns of `X`.
            outcome_names: The name of the outcome, as a list.
            observations: What was observed; indices refer to rows of `X`.
            kinds: The kinds of observations that the whole experiment has, of which a part of it may lack some.
            minimize: Whether low numbers are good: then a winner's number is the lower one.
            probability: Whether the outcome is the probability of a label.
            group_indices: The trial of each row.
        """
        super().__init__(X, Y, feature_names=feature_names, outcome_names=outcome_names, group_indices=group_indices)
        self.observations = tuple(observations)
        self.kinds = tuple(kinds)
        self.minimize = minimize
        self.probability = probability

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ObservationDataset) and _same(self._content(), other._content())

    __hash__ = None  # type: ignore[assignment]

    def _content(self) -> list[Any]:
        fields = [vars(entry) for entry in self.observations]
        tensors = [value for entry in fields for value in entry.values()]
        kinds = [self.kinds, [type(entry) for entry in self.observations]]
        rest = [*kinds, self.minimize, self.probability, self.feature_names, self.outcome_names]
        return [self.X, self.Y, self.group_indices, *tensors, *rest]


def _same(first: list[Any], second: list[Any]) -> bool:
    """Equality in which NaN equals itself."""
    return len(first) == len(second) and all(
        torch.equal(a.nan_to_num(nan=torch.pi), b.nan_to_num(nan=torch.pi))
        if isinstance(a, Tensor) and isinstance(b, Tensor)
        else a is b or (not isinstance(a, Tensor) and not isinstance(b, Tensor) and a == b)
        for a, b in zip(first, second, strict=True)
    )


def with_every_trial(
    experiment: Experiment,
    experiment_data: ExperimentData,
    objectives: Sequence[str],
    validity: str | None,
    labels: Sequence[str],
    comparisons: Sequence[Comparison],
) -> ExperimentData:
    r"""Add what Ax leaves out: rows of failed, abandoned and compared arms, and the column of validity.

    A trial's validity is 0 if it failed or was abandoned (Ax leaves out what it reported); else the label that was
    reported for it, or 1 if an objective has a number. The column is added only if some trial is not valid or a label
    was reported. Of learning curves the last numbers count, and none of trials that still run.

    Args:
        experiment: The experiment.
        experiment_data: Its data as Ax loads them.
        objectives: The signatures of the metrics of the objective.
        validity: The name of the metric of validity; `None` to leave failed trials out.
        labels: The names of all metrics whose values are 0 or 1.
        comparisons: The comparisons.

    Raises:
        UserInputError: If a number is not finite, or a label neither 0 nor 1.
    """
    experiment_data = _with_final_numbers(experiment, experiment_data)
    observed = experiment_data.observation_data
    _check_numbers(experiment)
    failed = [] if validity is None else _failed_arms(experiment)
    wanted = [*failed, *_compared_arms(experiment, comparisons)]
    missing = [key for key in dict.fromkeys(wanted) if key not in observed.index]
    names = observed.columns if len(observed.columns) else _columns([])
    observed = observed.reindex(columns=names.union(_columns(objectives if comparisons else []), sort=False))
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
    for label in labels:
        if ("mean", label) in observed.columns:
            _check_labels(label, observed["mean", label])
    if validity is not None:
        observed = _with_validity(observed, objectives, validity, set(failed))
    return ExperimentData(arm_data=arms, observation_data=observed)


def _with_final_numbers(experiment: Experiment, experiment_data: ExperimentData) -> ExperimentData:
    """The end of learning curves: that of a trial that still runs is not known."""
    if experiment_data.observation_data.index.nlevels == 2:
        return experiment_data
    final = experiment_data.filter_latest_observations()
    ended = [trial for trial in experiment.trials.values() if not trial.status.is_running]
    keep = final.observation_data.index.get_level_values("trial_index").isin([trial.index for trial in ended])
    observed = final.observation_data[keep]
    return ExperimentData(arm_data=final.arm_data.reindex(observed.index), observation_data=observed)


def _columns(signatures: Sequence[str]) -> MultiIndex:
    return MultiIndex.from_tuples([(part, name) for name in signatures for part in ("mean", "sem")], names=[None, None])


def _failed_arms(experiment: Experiment) -> list[ArmOfTrial]:
    """Arms that were tried and did not work; a pair without an answer is none of them."""
    return [
        (trial.index, arm.name)
        for trial in experiment.trials.values()
        if not is_pair(trial)
        for arm in (trial.arms if trial.status in INVALID else trial.abandoned_arms)
    ]


def _compared_arms(experiment: Experiment, comparisons: Sequence[Comparison]) -> list[ArmOfTrial]:
    """The first trial of every compared arm."""
    first: dict[str, int] = {}
    for trial in experiment.trials.values():
        for arm in trial.arms:
            first.setdefault(arm.name, trial.index)
    return [(first[name], name) for entry in comparisons for name in (entry.winner, entry.loser)]


def _with_validity(observed: DataFrame, objectives: Sequence[str], validity: str, failed: set[ArmOfTrial]) -> DataFrame:
    reported = observed["mean", validity] if ("mean", validity) in observed.columns else None
    if not failed and reported is None:
        return observed
    known = [name for name in objectives if ("mean", name) in observed.columns]
    works = observed["mean"][known].notna().any(axis=1).to_numpy() if known else np.zeros(len(observed), dtype=bool)
    values = np.where(works, 1.0, np.nan)
    values = np.where([key in failed for key in observed.index], 0.0, values)
    if reported is not None:
        values = np.where(reported.notna(), reported, values)
    observed = observed.copy()
    observed["mean", validity] = values.astype(float)
    observed["sem", validity] = np.nan
    return observed


def _check_numbers(experiment: Experiment) -> None:
    data = experiment.lookup_data().df
    for _, row in data[~np.isfinite(data["mean"])].iterrows() if len(data) else ():
        if experiment.trials[row["trial_index"]].status not in INVALID:
            raise UserInputError(
                f"Trial {row['trial_index']} reports {row['mean']} for {row['metric_name']!r}. Attach the right one, "
                f"or leave it out and call client.mark_trial_failed({row['trial_index']}), from which the model learns."
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
    *,
    valid: Tensor | None,
    comparisons: Sequence[Comparison],
    kinds: Sequence[type[Observation]],
    minimize: bool,
    feature_names: list[str],
    outcome: str,
) -> ObservationDataset | None:
    r"""The dataset of one outcome, with the arms that have anything to say about it.

    An arm of several trials is one point, and its numbers are several observations there: equal points make
    covariances singular. `Y` then has their mean, and `group_indices` the first trial.

    Args:
        X: An `n x d` tensor of points.
        index: The trial and arm of each row.
        mean: An `n`-dim tensor of numbers or labels, NaN where there is none.
        sem: An `n`-dim tensor of standard errors, NaN where they are not known.
        valid: An `n`-dim tensor of labels that bear on this outcome's own function; `None` if none do.
        comparisons: Comparisons that bear on this outcome.
        kinds: The kinds of observations of the whole experiment.
        minimize: Whether low numbers are good.
        feature_names: The names of the columns of `X`.
        outcome: The name of the outcome.

    Returns:
        The dataset, or `None` if there is nothing to put into it.
    """
    row_of: dict[str, int] = {}
    for i, (_, name) in enumerate(index):
        row_of.setdefault(name, i)
    pairs = torch.tensor(
        [
            (row_of[entry.winner], row_of[entry.loser], entry.tie)
            for entry in comparisons
            if entry.winner in row_of and entry.loser in row_of
        ],
        dtype=torch.long,
    ).reshape(-1, 3)
    keep = ~mean.isnan() if valid is None else ~(mean.isnan() & valid.isnan())
    keep[pairs[:, :2].flatten()] = True
    if not keep.any():
        return None
    first_row = torch.tensor([row_of[name] for _, name in index], device=X.device)
    arms, point = first_row[keep].unique(return_inverse=True)
    X, mean, sem, tied = X[arms], mean[keep], sem[keep], pairs[:, 2].bool()
    pairs = torch.searchsorted(arms, pairs[:, :2].contiguous().to(arms))
    observations: list[Observation] = []
    (numbers,) = (~mean.isnan()).nonzero(as_tuple=True)
    if Binary in kinds:
        observations.append(Binary(mean[numbers], index=point[numbers]))
    elif len(numbers):
        variance = sem[numbers].square()
        known, unknown = numbers[~variance.isnan()], numbers[variance.isnan()]
        if len(known):
            observations.append(Numeric(mean[known], sem[known].square(), index=point[known]))
        if len(unknown):
            observations.append(Numeric(mean[unknown], index=point[unknown]))
    observations += [kind(pairs[which]) for kind, which in ((Preference, ~tied), (Tie, tied)) if bool(which.any())]
    if valid is not None:
        (judged,) = (~valid[keep].isnan()).nonzero(as_tuple=True)
        if len(judged):
            observations.append(Validity(valid[keep][judged], index=point[judged]))
    trials = torch.tensor([trial for trial, _ in index], dtype=torch.long)
    count = torch.zeros_like(X[:, 0]).index_add(0, point[numbers], torch.ones_like(mean[numbers]))
    Y = torch.zeros_like(count).index_add(0, point[numbers], mean[numbers]) / count  # NaN where there is none
    return ObservationDataset(
        X,
        Y.unsqueeze(-1),
        feature_names=feature_names,
        outcome_names=[outcome],
        observations=observations,
        kinds=kinds,
        minimize=minimize,
        probability=Binary in kinds,
        group_indices=trials[arms.cpu()],
    )
