"""What a study knows, as points, numbers, comparisons and failures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_skewgp.hosts.data import LARGEST, ExperimentData, as_rows
from botorch_skewgp.hosts.outcomes import PowerTransform, fit_power_transform
from botorch_skewgp.hosts.records import Unreadable, as_number, warn_of
from botorch_skewgp.optuna.internals import (
    PREFERENTIAL,
    constraints_in,
    contains,
    skipped_in,
    system_attrs_of,
    trial_id_of,
)
from botorch_skewgp.optuna.judgements import Records, read_records
from botorch_skewgp.optuna.search_space import SearchSpace

Failures = Literal["constraint", "ignore"]
RELATIVE_PARAMS = "skewgp:relative_params:"
FITS = "skewgp:fits"  # an attribute of trials, of `StoredFit`s
END = "skewgp:end"  # an attribute of trials, which the sampler sets
UNHEARD, TOLD, INTERRUPT = "unheard", "told", "interrupted"
GROWTH = 1.2  # of the number of points, after which hyperparameters are fitted again


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

    def covers(self, num_points: int) -> bool:
        """Whether hyperparameters serve so many points."""
        return self.num_points <= num_points < GROWTH * self.num_points


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyData(ExperimentData):
    """What is known of a study's trials, one row for each that has all parameters of a search space.

    Numbers and bounds are those of objectives whose large values are good.
    """

    trials: tuple[int, ...]
    shown: Tensor
    preferential: bool
    fits: tuple[StoredFit, ...] = ()

    @cached_property
    def power_transform(self) -> PowerTransform:
        """The map of a single objective's numbers. Several, of which a hypervolume is computed, keep their units."""
        return fit_power_transform(self.numbers.numpy()) if self.numbers.shape[-1] == 1 else PowerTransform()

    def power_transformed(self) -> StudyData:
        """The data with numbers and bounds on the scale of models."""
        transform = self.power_transform
        bounds = map(torch.from_numpy, transform.bounds(*self.bounds.numpy()))
        return replace(self, numbers=torch.from_numpy(transform(self.numbers.numpy())), bounds=torch.stack([*bounds]))


def read_study(
    study: Study, space: SearchSpace, failures: Failures = "constraint", leave_out: Iterable[int] = ()
) -> StudyData:
    """Read what a study knows. The dashboard's zeros for trials that were compared are no numbers; entries that cannot
    be read are left out with a warning.
    """
    records = read_records(study)
    warn_of(records.unreadable, f"Study {study.study_name!r}: take it back by withdraw_unreadable(study).")
    system_attrs, trials = system_attrs_of(study), study.get_trials(deepcopy=False)
    preferential = bool(system_attrs.get(PREFERENTIAL, False))
    skipped = skipped_in(system_attrs)
    refused = {number for entry in records.judgements if entry.or_none for number in entry.items}
    ignored = {trial.number for trial in trials if trial_id_of(trial) in skipped} - records.unusable - refused
    unreadable: list[Unreadable] = []
    tried_again = _tried_again(trials, unreadable)
    ignored |= set(leave_out)
    compared = {number for entry in records.judgements for number in entry.items}
    constraints_of = {trial.number: _constraints(trial, unreadable) for trial in trials if trial.number not in ignored}
    names = sorted({name for constraints in constraints_of.values() for name in constraints})
    kept: list[FrozenTrial] = []
    said: list[Says | None] = []
    params: list[dict[str, Any]] = []
    numbers, constraints = [], []
    for trial in trials:
        own = with_relative_params(trial, space)
        if trial.state == TrialState.WAITING or trial.number in ignored:
            continue
        if not space.takes(own, {**space.distributions, **trial.distributions}):
            continue
        values, limits = _numbers(study, trial, preferential, records), constraints_of[trial.number]
        says = _says(trial, records, trial.number in tried_again, [*map(abs, values), *limits.values()])
        tells = says is not Says.NOTHING and (says is not Says.FAILS or failures == "constraint")
        if not (tells or trial.number in compared):
            continue
        kept.append(trial)
        said.append(says)
        params.append(own)
        numbers.append([math.nan] * len(values) if says is Says.FAILS else values)
        row = [limits.get(name, math.nan) for name in names]
        constraints.append([value if abs(value) <= LARGEST else math.nan for value in row])
    warn_of(unreadable, f"Study {study.study_name!r}: the trial counts as if it had no such entry.")
    numbers_of = {trial.number: row for row, trial in enumerate(kept)}
    losers = {number for entry in records.judgements for number in entry.losers}
    valid = {Says.FAILS: 0.0 if failures == "constraint" else math.nan, Says.BOUND: 1.0, None: 1.0}
    works = [says is not Says.FAILS for says in said]
    shown = [preferential and trial.number not in losers and ok for trial, ok in zip(kept, works, strict=True)]
    shape = (len(kept), len(study.directions))
    none = (-math.inf, math.inf)
    bounds = [records.bounds.get(trial.number, none) if ok else none for trial, ok in zip(kept, works, strict=True)]
    return StudyData(
        X=space.points(params),
        numbers=torch.tensor(numbers, dtype=torch.double).reshape(shape),
        bounds=torch.tensor(bounds, dtype=torch.double).reshape(-1, 2).mT.unsqueeze(-1).expand(2, *shape),
        constraints=torch.tensor(constraints, dtype=torch.double).reshape(len(kept), len(names)),
        valid=torch.tensor([valid.get(says, math.nan) for says in said], dtype=torch.double),
        pending=torch.tensor([says is Says.PENDING for says in said], dtype=torch.bool),
        trials=tuple(trial.number for trial in kept),
        shown=torch.tensor(shown, dtype=torch.bool),
        judgements=as_rows(records.judgements, numbers_of),
        preferential=preferential,
        fits=tuple(fit for trial in trials for fit in _fits(trial)),
    )


def _fits(trial: FrozenTrial) -> list[StoredFit]:
    """The fits stored with a trial; whatever else stands in their place is no fit, and costs a start."""
    stored, found = trial.system_attrs.get(FITS), []
    for entry in stored if isinstance(stored, list | tuple) else ():
        if isinstance(entry, list | tuple) and len(entry) == 4 and isinstance(entry[2], list | tuple):
            numbers = [
                number for value in entry[2] if (number := as_number(value)) is not None and math.isfinite(number)
            ]
            if len(numbers) == len(entry[2]) and type(entry[3]) is int:
                found.append(StoredFit(str(entry[0]), str(entry[1]), numbers, entry[3], trial.state.is_finished()))
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
        value = as_number(trial.system_attrs.get(RELATIVE_PARAMS + name))
        if value is not None and math.isfinite(value) and contains(distribution, value):
            chosen[name] = distribution.to_external_repr(value)
    return chosen | trial.params


def _numbers(study: Study, trial: FrozenTrial, preferential: bool, records: Records) -> list[float]:
    """The objectives of a trial, the larger the better."""
    none = [math.nan] * len(study.directions)
    if trial.number in records.numbers:
        return [records.numbers[trial.number]]
    if trial.state != TrialState.COMPLETE or trial.values is None or trial.number in records.bounds:
        return none
    if preferential and not any(trial.values):
        return none
    signs = (-1.0 if direction == StudyDirection.MINIMIZE else 1.0 for direction in study.directions)
    values = [sign * value for sign, value in zip(signs, trial.values, strict=True)]
    return none if any(map(math.isnan, values)) else values


def _constraints(trial: FrozenTrial, unreadable: list[Unreadable]) -> dict[str, float]:
    """A trial's constraints by name; those that are no numbers, or whose size says nothing, are listed."""
    found = {}
    for name, value in constraints_in(trial.system_attrs).items():
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
