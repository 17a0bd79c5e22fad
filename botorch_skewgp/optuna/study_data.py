"""What a study knows, as points, numbers, comparisons and failures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import inf, nan
from typing import Any, Literal, NamedTuple

import torch
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_skewgp.hosts.data import LARGEST, Observed, as_rows, compared, observed
from botorch_skewgp.hosts.outcomes import PowerTransform, fit_power_transform
from botorch_skewgp.hosts.records import Judgement, Records, Unreadable, as_finite, as_number, warn_of
from botorch_skewgp.optuna import internals
from botorch_skewgp.optuna.judgements import read_records
from botorch_skewgp.optuna.search_space import SearchSpace

Failures = Literal["constraint", "ignore"]
RELATIVE_PARAMS = "skewgp:relative_params:"
FITS = "skewgp:fits"  # an attribute of trials, of `StoredFit`s
END = "skewgp:end"  # an attribute of trials, which the sampler sets
AGAINST = "skewgp:against"  # an attribute of trials: the number of the trial that they challenge
FIXED = "fixed_params"  # Optuna's attribute of trials from the queue: the values of parameters that are given
UNHEARD, TOLD, INTERRUPT = "unheard", "told", "interrupted"
UNBOUNDED = (-inf, inf)


class Outcome(Enum):
    """What is known of a trial's point; docs/failures.md has a table of all ways to end."""

    NUMBERS = "its numbers"
    BOUND = "the number is within a bound"
    FAILURE = "trials fail there"
    PENDING = "a result is awaited there"
    UNKNOWN = "nothing"


class StoredFit(NamedTuple):
    """The hyperparameters of a function's model, stored with the trial that it has chosen.

    Args:
        function: The name of the function.
        data: A digest of the data.
        values: The hyperparameters.
        num_points: The number of points that they were fitted to.
        has_ended: Whether the trial has ended.
    """

    function: str
    data: str
    values: list[float]
    num_points: int
    has_ended: bool = False


class TrialData(NamedTuple):
    """What is known of one trial, a row of `StudyData`, of which see the fields."""

    number: int
    params: dict[str, Any]
    numbers: list[float]
    noise: float
    bounds: tuple[float, float]
    constraints: dict[str, float]
    valid: float
    pending: bool
    shown: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyData:
    """What is known of a study's trials, one row for each that has a point in a search space.

    Args:
        X: Points in the search space, `n x d`.
        numbers: The numbers of objectives whose large values are good, `n x m`; NaN where there is none.
        noise: The known variances of the numbers of a single objective, `n`; NaN where there is none.
        bounds: Lower and upper bounds of a single objective, `2 x n`; infinite where there is none.
        constraints: The numbers of constraints, met if they are not positive, `n x k`; NaN where there is none.
        valid: 1 for trials that worked, 0 for those that failed, `n`; NaN where that is unknown.
        pending: Whether a result is awaited of a trial, and nothing was reported of it yet, `n`.
        shown: Whether the trial is on the page of a preferential study, `n`.
        trials: The numbers of the trials.
        judgements: The judgements, of rows.
        preferential: Whether it is a preferential study.
        fits: The fits stored with all trials.
    """

    X: Tensor
    numbers: Tensor
    noise: Tensor
    bounds: Tensor
    constraints: Tensor
    valid: Tensor
    pending: Tensor
    shown: Tensor
    trials: tuple[int, ...]
    judgements: tuple[Judgement, ...]
    preferential: bool
    fits: tuple[StoredFit, ...]

    @property
    def known(self) -> Tensor:
        """Whether each row has data about every objective, `n`."""
        bounded = self.bounds.isfinite().any(0).unsqueeze(-1)
        return compared(self.judgements, self.X) | (~self.numbers.isnan() | bounded).all(-1)

    @property
    def has_numbers(self) -> bool:
        """Whether any number or bound is known."""
        return not bool(self.numbers.isnan().all() and self.bounds.isinf().all())

    @property
    def feasible(self) -> Tensor:
        """Whether each trial neither failed nor violates a constraint, `n`."""
        return (self.valid != 0) & ~(self.constraints > 0).any(-1)

    def has_started(self, n_startup_trials: int) -> bool:
        """Whether there is a model: after a comparison on the page, or that number of ended or judged trials."""
        judged = compared(self.judgements, self.X)
        return bool(judged.any()) if self.preferential else int((~self.pending).sum()) >= n_startup_trials

    @cached_property
    def power_transform(self) -> PowerTransform:
        """The map of a single objective's numbers. Several, of which a hypervolume is computed, keep their units."""
        return fit_power_transform(self.numbers.numpy()) if self.numbers.shape[-1] == 1 else PowerTransform()

    def observed(self, objective: int = 0) -> Observed | None:
        """The data about an objective on the scale of its model; `None` without."""
        numbers, transform = self.numbers[:, objective], self.power_transform
        bounds = torch.stack([*map(torch.from_numpy, transform.bounds(*self.bounds.numpy()))])
        values = torch.from_numpy(transform(numbers.numpy()))
        errors = torch.from_numpy(transform.errors(numbers.numpy(), self.noise.sqrt().numpy()))
        return observed(self.X, values, variances=errors.square(), bounds=bounds, judgements=self.judgements)


def read_study(
    study: Study, space: SearchSpace, failures: Failures = "constraint", leave_out: Iterable[int] = ()
) -> StudyData:
    """Read what a study knows. The dashboard's zeros for trials that were compared are no numbers; entries that cannot
    be read are left out with a warning.
    """
    records = read_records(study)
    warn_of(records.unreadable, f"Study {study.study_name!r}: take it back by withdraw_unreadable(study).")
    system_attrs, trials = internals.system_attrs_of(study), study.get_trials(deepcopy=False)
    preferential = bool(system_attrs.get(internals.PREFERENTIAL, False))
    judged = {number for entry in records.judgements for number in entry.items}
    losers = {number for entry in records.judgements for number in entry.losers}
    refused = {number for entry in records.judgements if entry.or_none for number in entry.items}
    ignored = (internals.skipped_in(system_attrs, trials) - records.unusable - refused).union(leave_out)
    unreadable: list[Unreadable] = []
    tried_again = _tried_again(trials, unreadable)
    names: set[str] = set()
    rows: list[TrialData] = []
    for trial in trials:
        number = trial.number
        if number in ignored:
            continue
        constraints = _constraints(trial, unreadable)
        names.update(constraints)
        params = None if trial.state == TrialState.WAITING else space.params_of(trial, _chosen(trial, space))
        if params is None:
            continue
        numbers = _numbers(study, trial, preferential, records)
        noise = records.numbers.get(number, (nan, None))[1]
        sizes = [*map(abs, numbers), *constraints.values()]  # a constraint is broken if positive
        outcome = _outcome(trial, records, number in tried_again, sizes)
        failed = outcome is Outcome.FAILURE
        is_ignored = outcome is Outcome.UNKNOWN or (failed and failures == "ignore")
        if is_ignored and number not in judged:
            continue
        rows.append(
            TrialData(
                number=number,
                params=params,
                numbers=[nan] * len(numbers) if failed else numbers,
                noise=nan if failed or noise is None else noise,
                bounds=UNBOUNDED if failed else records.bounds.get(number, UNBOUNDED),
                constraints={name: value for name, value in constraints.items() if abs(value) <= LARGEST},
                valid=_validity(outcome, failures),
                pending=outcome is Outcome.PENDING and number not in {*judged, *records.numbers},
                shown=preferential and number not in losers and not failed,
            )
        )
    warn_of(unreadable, f"Study {study.study_name!r}: the trial counts as if it had no such entry.")
    limits = [[row.constraints.get(name, nan) for name in sorted(names)] for row in rows]
    return StudyData(
        X=space.points([row.params for row in rows]),
        numbers=_as_tensor([row.numbers for row in rows]).reshape(len(rows), len(study.directions)),
        noise=_as_tensor([row.noise for row in rows]),
        bounds=_as_tensor([row.bounds for row in rows]).reshape(-1, 2).mT,
        constraints=_as_tensor(limits).reshape(len(rows), len(names)),
        valid=_as_tensor([row.valid for row in rows]),
        pending=torch.tensor([row.pending for row in rows], dtype=torch.bool),
        shown=torch.tensor([row.shown for row in rows], dtype=torch.bool),
        trials=tuple(row.number for row in rows),
        judgements=as_rows(records.judgements, {row.number: place for place, row in enumerate(rows)}),
        preferential=preferential,
        fits=tuple(fit for trial in trials for fit in _fits(trial)),
    )


def _as_tensor(values: Sequence[Any]) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


def _fits(trial: FrozenTrial) -> list[StoredFit]:
    """The fits stored with a trial; whatever else stands in their place is no fit, and costs a start."""
    stored, found = trial.system_attrs.get(FITS), []
    for entry in stored if isinstance(stored, list | tuple) else ():
        match entry:
            case [str(function), str(data), [*values], int(num_points)] if None not in map(as_finite, values):
                found.append(StoredFit(function, data, values, num_points, trial.state.is_finished()))
    return found


def _outcome(trial: FrozenTrial, records: Records, was_tried_again: bool, sizes: Sequence[float]) -> Outcome:
    """What is known of a trial's point; a failure if the size of a number or constraint has no square."""
    if trial.number in records.unusable or any(size > LARGEST for size in sizes):
        return Outcome.FAILURE
    if trial.number in records.bounds:
        return Outcome.BOUND
    if trial.state == TrialState.RUNNING:
        return Outcome.PENDING
    if trial.state == TrialState.PRUNED:
        return Outcome.FAILURE
    if trial.state != TrialState.FAIL:
        return Outcome.NUMBERS
    if not (was_tried_again or trial.system_attrs.get(END) in (UNHEARD, INTERRUPT)):
        return Outcome.FAILURE
    return Outcome.NUMBERS if trial.number in records.numbers else Outcome.UNKNOWN


def _validity(outcome: Outcome, failures: Failures) -> float:
    """1 if the trial worked, 0 if it failed, NaN if that is unknown or ignored."""
    if outcome in (Outcome.NUMBERS, Outcome.BOUND):
        return 1.0
    return 0.0 if outcome is Outcome.FAILURE and failures == "constraint" else nan


def _chosen(trial: FrozenTrial, space: SearchSpace) -> dict[str, Any]:
    """What the sampler has chosen for a running trial, whose objective may not have asked for it yet."""
    params = {}
    for name, distribution in space.distributions.items() if trial.state == TrialState.RUNNING else ():
        value = as_finite(trial.system_attrs.get(RELATIVE_PARAMS + name))
        if value is not None and internals.contains(distribution, value):
            params[name] = distribution.to_external_repr(value)
    return params


def _numbers(study: Study, trial: FrozenTrial, preferential: bool, records: Records) -> list[float]:
    """The objectives of a trial, the larger the better."""
    none = [nan] * len(study.directions)
    if trial.number in records.numbers:
        return [records.numbers[trial.number][0]]
    if trial.state != TrialState.COMPLETE or trial.values is None or trial.number in records.bounds:
        return none
    if preferential and not any(trial.values):
        return none
    signs = (-1.0 if direction == StudyDirection.MINIMIZE else 1.0 for direction in study.directions)
    values = [sign * value for sign, value in zip(signs, trial.values, strict=True)]
    return none if any(value != value for value in values) else values


def _constraints(trial: FrozenTrial, unreadable: list[Unreadable]) -> dict[str, float]:
    """A trial's constraints by name; those that are no numbers, or whose size is too large, are listed."""
    found = {}
    for name, value in internals.constraints_in(trial.system_attrs).items():
        number = as_number(value)
        if number is None or abs(number) > LARGEST:
            fails = number is not None and number > 0
            reason = "is too large, hence the trial counts as failed" if fails else "is not a finite number"
            unreadable.append(Unreadable(f"Constraint {name!r} of trial {trial.number}", value, reason))
        if number is not None:
            found[name] = number
    return found


def _tried_again(trials: Iterable[FrozenTrial], unreadable: list[Unreadable]) -> set[int]:
    """The trials that failed because their worker died, and were put into the queue again."""
    numbers: set[int] = set()
    for trial in trials:
        history = trial.system_attrs.get("retry_history", [])
        if isinstance(history, list) and all(isinstance(entry, int) for entry in history):
            numbers.update(history)
        else:
            unreadable.append(Unreadable(f"retry_history of trial {trial.number}", history, "is no list of trials"))
    return numbers
