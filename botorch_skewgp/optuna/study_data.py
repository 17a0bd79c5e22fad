"""What a study knows, as points, numbers, comparisons and failures."""

from __future__ import annotations

import functools
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
UNHEARD, TOLD, INTERRUPT = "unheard", "told", "interrupted"
UNBOUNDED = (-inf, inf)


class Says(Enum):
    """What a trial without a number says of its point; docs/failures.md has a table of all ways to end."""

    FAILS = "trials fail there"
    PENDING = "a result is awaited there"
    NOTHING = "nothing"
    BOUND = "the number is within the bound"


class StoredFit(NamedTuple):
    """The hyperparameters of a function's model, stored with the trial that it has chosen: its name, a digest of the
    data, the values, and the number of points that they were fitted to.
    """

    function: str
    data: str
    values: list[float]
    num_points: int
    has_ended: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyData:
    """What is known of a study's trials, one row for each that has all parameters of a search space.

    Numbers `n x m` and bounds `2 x n` are of objectives whose large values are good; where there is none, numbers,
    constraints `n x k` and `valid` are NaN, and bounds infinite.
    """

    X: Tensor
    numbers: Tensor
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
    def feasible(self) -> Tensor:
        """Whether each trial neither failed nor violates a constraint, `n`."""
        return (self.valid != 0) & ~(self.constraints > 0).any(-1)

    def has_started(self, n_startup_trials: int) -> bool:
        """Whether there is a model: after a comparison on the page, or that number of ended or judged trials."""
        judged = compared(self.judgements, self.X)
        return bool(judged.any()) if self.preferential else int((~self.pending | judged).sum()) >= n_startup_trials

    @cached_property
    def power_transform(self) -> PowerTransform:
        """The map of a single objective's numbers. Several, of which a hypervolume is computed, keep their units."""
        return fit_power_transform(self.numbers.numpy()) if self.numbers.shape[-1] == 1 else PowerTransform()

    def observed(self, objective: int = 0) -> Observed | None:
        """The data about an objective on the scale of its model; `None` without."""
        numbers, transform = self.numbers[:, objective], self.power_transform
        bounds = torch.stack([*map(torch.from_numpy, transform.bounds(*self.bounds.numpy()))])
        values = torch.from_numpy(transform(numbers.numpy()))
        return observed(self.X, values, bounds=bounds, judgements=self.judgements)


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
    refused = {number for entry in records.judgements if entry.or_none for number in entry.items}
    ignored = (internals.skipped_in(system_attrs, trials) - records.unusable - refused).union(leave_out)
    read = [trial for trial in trials if trial.number not in ignored]
    unreadable: list[Unreadable] = []
    tried_again = _tried_again(trials, unreadable)
    limits = {trial.number: _constraints(trial, unreadable) for trial in read}
    warn_of(unreadable, f"Study {study.study_name!r}: the trial counts as if it had no such entry.")
    names = sorted({name for own in limits.values() for name in own})
    judged = {number for entry in records.judgements for number in entry.items}
    losers = {number for entry in records.judgements for number in entry.losers}
    rows: dict[int, tuple[Any, ...]] = {}
    for trial in read:
        number, own = trial.number, with_relative_params(trial, space)
        if trial.state == TrialState.WAITING or not space.takes(own, {**space.distributions, **trial.distributions}):
            continue
        values, constraints = _numbers(study, trial, preferential, records), limits[number]
        says = _says(trial, records, number in tried_again, [*map(abs, values), *constraints.values()])
        fails = says is Says.FAILS
        valid = {Says.FAILS: 0.0 if failures == "constraint" else nan, Says.BOUND: 1.0, None: 1.0}.get(says, nan)
        tells = says is not Says.NOTHING and (not fails or failures == "constraint")
        if tells or number in judged:
            rows[number] = (
                own,
                [nan] * len(values) if fails else values,
                UNBOUNDED if fails else records.bounds.get(number, UNBOUNDED),
                [value if abs(value) <= LARGEST else nan for value in (constraints.get(name, nan) for name in names)],
                valid,
                says is Says.PENDING,
                preferential and number not in losers and not fails,
            )
    params, numbers, bounds, constraint_rows, labels, pending, shown = [*zip(*rows.values(), strict=True)] or [()] * 7
    as_tensor = functools.partial(torch.tensor, dtype=torch.double)
    return StudyData(
        X=space.points(params),
        numbers=as_tensor(numbers).reshape(len(rows), len(study.directions)),
        bounds=as_tensor(bounds).reshape(-1, 2).mT,
        constraints=as_tensor(constraint_rows).reshape(len(rows), len(names)),
        valid=as_tensor(labels),
        pending=torch.tensor(pending, dtype=torch.bool),
        shown=torch.tensor(shown, dtype=torch.bool),
        trials=tuple(rows),
        judgements=as_rows(records.judgements, {number: row for row, number in enumerate(rows)}),
        preferential=preferential,
        fits=tuple(fit for trial in trials for fit in _fits(trial)),
    )


def _fits(trial: FrozenTrial) -> list[StoredFit]:
    """The fits stored with a trial; whatever else stands in their place is no fit, and costs a start."""
    stored, found = trial.system_attrs.get(FITS), []
    for entry in stored if isinstance(stored, list | tuple) else ():
        match entry:
            case [str(function), str(data), [*values], int(num_points)] if None not in map(as_finite, values):
                found.append(StoredFit(function, data, values, num_points, trial.state.is_finished()))
    return found


def _says(trial: FrozenTrial, records: Records, was_tried_again: bool, sizes: Sequence[float]) -> Says | None:
    """What the end of a trial without a number says; `None` for one with a number, if sizes have a square."""
    if trial.number in records.unusable or any(size > LARGEST for size in sizes):
        return Says.FAILS
    if trial.number in records.bounds:
        return Says.BOUND
    if trial.state == TrialState.RUNNING:
        return Says.PENDING
    if trial.state == TrialState.PRUNED:
        return Says.FAILS
    if trial.state != TrialState.FAIL:
        return None
    if not (was_tried_again or trial.system_attrs.get(END) in (UNHEARD, INTERRUPT)):
        return Says.FAILS
    return None if trial.number in records.numbers else Says.NOTHING


def with_relative_params(trial: FrozenTrial, space: SearchSpace) -> dict[str, Any]:
    """A trial's parameters, with those that the sampler has chosen and the objective has not asked for yet."""
    if trial.state != TrialState.RUNNING:
        return trial.params
    chosen = {}
    for name, distribution in space.distributions.items():
        value = as_finite(trial.system_attrs.get(RELATIVE_PARAMS + name))
        if value is not None and internals.contains(distribution, value):
            chosen[name] = distribution.to_external_repr(value)
    return chosen | trial.params


def _numbers(study: Study, trial: FrozenTrial, preferential: bool, records: Records) -> list[float]:
    """The objectives of a trial, the larger the better."""
    none = [nan] * len(study.directions)
    if trial.number in records.numbers:
        return [records.numbers[trial.number]]
    if trial.state != TrialState.COMPLETE or trial.values is None or trial.number in records.bounds:
        return none
    if preferential and not any(trial.values):
        return none
    signs = (-1.0 if direction == StudyDirection.MINIMIZE else 1.0 for direction in study.directions)
    values = [sign * value for sign, value in zip(signs, trial.values, strict=True)]
    return none if any(value != value for value in values) else values


def _constraints(trial: FrozenTrial, unreadable: list[Unreadable]) -> dict[str, float]:
    """A trial's constraints by name; those that are no numbers, or whose size says nothing, are listed."""
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
