"""What Optuna and its dashboard have no public name for; the only file that reads their names with an underscore."""

from __future__ import annotations

from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

PREFERENTIAL = "preference:is_preferential"
_PREFERENCES = "preference:values"
_SKIPPED = "preference:skip_trial:"


def study_of(study: Any) -> Study:
    """The study inside a preferential study of optuna-dashboard or a bracket of `HyperbandPruner`; a study itself as it
    is.
    """
    return getattr(study, "_study", study)


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


def trial_id_of(trial: FrozenTrial) -> int:
    """The number of a trial in its storage, which is not its number in the study."""
    return trial._trial_id


def preferences_in(attrs: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """The comparisons that optuna-dashboard has stored, by key: pairs of trial numbers, the better one first."""
    return {
        key: [(better, worse) for better, worse in value]
        for key, value in attrs.items()
        if key.startswith(_PREFERENCES)
    }


def skipped_in(attrs: dict[str, Any]) -> set[int]:
    """The storage's numbers of the trials that were skipped in optuna-dashboard."""
    return {int(key.removeprefix(_SKIPPED)) for key in attrs if key.startswith(_SKIPPED)}
