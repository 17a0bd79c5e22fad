"""What Optuna and its dashboard have no public name for; the only file that reads their names with an underscore."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

from botorch.exceptions.errors import InputDataError
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.storages._heartbeat import is_heartbeat_enabled
from optuna.study import _optimize
from optuna.trial import FrozenTrial

PREFERENTIAL = "preference:is_preferential"
_PREFERENCES = "preference:values"
NUM_SHOWN = "preference:n_generate"
_SKIPPED = "preference:skip_trial:"
_CONSTRAINTS = "constraints"


def study_of(study: Any) -> Study:
    """The study inside one of optuna-dashboard or a bracket of `HyperbandPruner`, or a study itself."""
    found = getattr(study, "_study", study)
    if not isinstance(found, Study):
        raise InputDataError(f"study must be a study of Optuna or its dashboard; got {study!r}.")
    return found


def system_attrs_of(study: Study) -> dict[str, Any]:
    """What others than the user have stored with a study."""
    return study._storage.get_study_system_attrs(study._study_id)


def set_study_system_attr(study: Study, key: str, value: Any) -> None:
    """Store something with a study."""
    study._storage.set_study_system_attr(study._study_id, key, value)


def set_trial_system_attr(study: Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Store something with a running trial."""
    study._storage.set_trial_system_attr(trial._trial_id, key, value)


def skip_trial(study: Study, trial: FrozenTrial) -> None:
    """Leave a trial out of what optuna-dashboard shows, as its own button does."""
    set_study_system_attr(study, f"{_SKIPPED}{trial._trial_id}", True)


def preferences_in(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The dashboard's comparisons by key: lists of pairs of trial numbers, the better one first."""
    return {key: value for key, value in attrs.items() if key.startswith(_PREFERENCES)}


def skipped_in(attrs: Mapping[str, Any], trials: Iterable[FrozenTrial]) -> set[int]:
    """The numbers of the trials that were skipped in optuna-dashboard, which stores those of its storage."""
    return {trial.number for trial in trials if f"{_SKIPPED}{trial._trial_id}" in attrs}


def constraints_in(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """A trial's constraints by name, also those in the list of former versions of Optuna."""
    old = attrs.get(_CONSTRAINTS, [])
    listed = {str(i): value for i, value in enumerate(old if isinstance(old, list | tuple) else [old])}
    prefix = f"{_CONSTRAINTS}:"
    return listed | {key.removeprefix(prefix): value for key, value in attrs.items() if key.startswith(prefix)}


def contains(distribution: BaseDistribution, value: float) -> bool:
    """Whether a distribution has a value, in Optuna's internal representation."""
    return distribution._contains(value)


def may_be_failed_by_others(study: Study) -> bool:
    """Whether a storage with a heartbeat fails the trial of `Study.optimize` that begins now, should its worker die."""
    return is_heartbeat_enabled(study._storage) and _frame_of_optimize() is not None


def was_interrupted() -> bool:
    """Whether Ctrl-C ended the trial that `Study.optimize` will store as failed; a local variable has the reason."""
    frame = _frame_of_optimize()
    return frame is not None and isinstance(frame.f_locals.get("func_err"), KeyboardInterrupt)


def _frame_of_optimize() -> FrameType | None:
    """The call of Optuna that runs the trial of this thread; `None` for trials that are asked and told by hand."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not _optimize._run_trial.__code__:
        frame = frame.f_back
    return frame
