"""What a person can say of trials beyond what optuna-dashboard's page has buttons for.

The page asks which trial is the worst of those shown; it can skip a trial and take back an answer. These functions add
ties, trials that do not work, numbers beside comparisons, and comparisons in studies that are not preferential. They
take studies of Optuna and preferential ones of its dashboard.
"""

from __future__ import annotations

import math
import operator
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from botorch_skewgp.optuna.internals import (
    PREFERENTIAL,
    preferences_in,
    set_study_system_attr,
    skip_trial,
    study_of,
    system_attrs_of,
)

BETTER, TIE, UNUSABLE, NUMBER = "skewgp:better:", "skewgp:tie:", "skewgp:unusable:", "skewgp:number:"
AnyTrial = Trial | FrozenTrial | int


def report_comparison(study: Any, better: AnyTrial, worse: AnyTrial) -> None:
    r"""Record that one trial is better than another, as optuna-dashboard does.

    Example:
        >>> report_comparison(study, better=3, worse=1)

    Args:
        study: A study, preferential or not.
        better: A trial, or its number.
        worse: Another one.

    Raises:
        InputDataError: If the study does not have one of the trials, or they are the same one. Nothing is stored then.
        UnsupportedError: If the study has several objectives. Nothing is stored then.
    """
    study = study_of(study)
    check_one_objective(study)
    numbers = _numbers(study, better, worse)
    if system_attrs_of(study).get(PREFERENTIAL):
        from optuna_dashboard.preferential import PreferentialStudy

        trials = study.get_trials(deepcopy=False)
        PreferentialStudy(study).report_preference(*(trials[number] for number in numbers))
    else:
        study.set_user_attr(f"{BETTER}{uuid.uuid4()}", numbers)


def report_tie(study: Any, first: AnyTrial, second: AnyTrial) -> None:
    r"""Record that two trials are as good as each other.

    Example:
        >>> report_tie(study, 3, 1)

    Args:
        study: A study, preferential or not.
        first: A trial, or its number.
        second: Another one.

    Raises:
        InputDataError: If the study does not have one of the trials, or they are the same one. Nothing is stored then.
        UnsupportedError: If the study has several objectives. Nothing is stored then.
    """
    study = study_of(study)
    check_one_objective(study)
    study.set_user_attr(f"{TIE}{uuid.uuid4()}", _numbers(study, first, second))


def report_unusable(study: Any, trial: AnyTrial) -> None:
    r"""Record that a trial does not work: the model learns where not to go.

    In a preferential study the trial is not shown any more; say it of both trials where neither works.

    Example:
        >>> report_unusable(study, 4)

    Args:
        study: A study, preferential or not.
        trial: A trial, or its number.

    Raises:
        InputDataError: If the study does not have the trial. Nothing is stored then.
    """
    study = study_of(study)
    (number,) = _numbers(study, trial)
    study.set_user_attr(f"{UNUSABLE}{number}", True)
    frozen = study.get_trials(deepcopy=False)[number]
    if frozen.state == TrialState.RUNNING:
        study.tell(number, state=TrialState.FAIL)
    elif system_attrs_of(study).get(PREFERENTIAL):
        skip_trial(study, frozen)


def report_number(study: Any, trial: AnyTrial, value: float, direction: Literal["maximize", "minimize"]) -> None:
    r"""Record a number of a trial that is compared, such as a measured quality, beside its comparisons.

    Optuna's values cannot be used for this: the dashboard gives every trial that is compared the value 0. A second
    number replaces the first.

    Example:
        >>> report_number(study, 3, 0.71, direction="maximize")

    Args:
        study: A study with one objective, preferential or not.
        trial: A trial, or its number.
        value: The number.
        direction: Whether large or small numbers are good.

    Raises:
        InputDataError: If the study does not have the trial, the trial failed or was pruned, the number is not finite,
            or the direction is neither. Nothing is stored then.
        UnsupportedError: If the study has several objectives. Nothing is stored then.
    """
    study = study_of(study)
    check_one_objective(study)
    (number,) = _numbers(study, trial)
    if direction not in ("maximize", "minimize"):
        raise InputDataError(f"direction must be 'maximize' or 'minimize'; got {direction!r}.")
    if not math.isfinite(value):
        raise InputDataError(f"The number of trial {number} must be finite; got {value}.")
    state = study.get_trials(deepcopy=False)[number].state
    if state in (TrialState.FAIL, TrialState.PRUNED):
        raise InputDataError(f"Trial {number} is {state.name}: it gave no number. Leave it as it is.")
    study.set_user_attr(f"{NUMBER}{number}", float(value) if direction == "maximize" else -float(value))


def withdraw_comparison(study: Any, first: AnyTrial, second: AnyTrial) -> None:
    r"""Take back everything that was said of a pair of trials, in any order, ties included.

    Example:
        >>> withdraw_comparison(study, 3, 1)

    Args:
        study: A study, preferential or not.
        first: A trial, or its number.
        second: Another one.

    Raises:
        InputDataError: If the two were not compared.
    """
    study = study_of(study)
    numbers = {_as_number(entry) for entry in (first, second)}
    user_attrs, changes = study.user_attrs, 0
    for key, pairs in preferences_in(system_attrs_of(study)).items():
        kept = [list(pair) for pair in pairs if set(pair) != numbers]
        if len(kept) < len(pairs):
            set_study_system_attr(study, key, kept)
            changes += 1
    for key, pair in (better_in(user_attrs) | ties_in(user_attrs)).items():
        if set(pair) == numbers:
            study.set_user_attr(key, None)
            changes += 1
    if not changes:
        raise InputDataError(f"Trials {sorted(numbers)} were not compared; there is nothing to take back.")


# What was recorded, in the attributes of a study


def better_in(user_attrs: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Comparisons by key: pairs of trial numbers, the better one first."""
    return _recorded(user_attrs, BETTER)


def ties_in(user_attrs: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Ties by key: pairs of trial numbers."""
    return _recorded(user_attrs, TIE)


def unusable_in(user_attrs: Mapping[str, Any]) -> set[int]:
    """The numbers of the trials that do not work."""
    return {int(key.removeprefix(UNUSABLE)) for key in user_attrs if key.startswith(UNUSABLE)}


def numbers_in(user_attrs: Mapping[str, Any]) -> dict[int, float]:
    """What was measured of trials, the larger the better, by their numbers."""
    return {int(key.removeprefix(NUMBER)): value for key, value in user_attrs.items() if key.startswith(NUMBER)}


def check_one_objective(study: Study) -> None:
    r"""Raise `UnsupportedError` if the study has several objectives: a comparison is about a single one."""
    if len(study.directions) > 1:
        raise UnsupportedError(
            "Comparisons say which trial is better all in all, for which there must be one objective; the study has "
            f"{len(study.directions)}."
        )


def _recorded(user_attrs: Mapping[str, Any], prefix: str) -> dict[str, tuple[int, int]]:
    pairs = {key: value for key, value in user_attrs.items() if key.startswith(prefix) and value is not None}
    return {key: (first, second) for key, (first, second) in pairs.items()}


def _as_number(trial: AnyTrial) -> int:
    if isinstance(trial, Trial | FrozenTrial):
        return trial.number
    try:
        return operator.index(trial)
    except TypeError:
        raise InputDataError(f"{trial!r} is neither a trial nor the number of one.") from None


def _numbers(study: Study, *entries: AnyTrial) -> list[int]:
    """The numbers of trials, checked."""
    numbers, num_trials = [_as_number(entry) for entry in entries], len(study.get_trials(deepcopy=False))
    for number in numbers:
        if not 0 <= number < num_trials:
            known = f"whose trials are 0 to {num_trials - 1}" if num_trials else "which has none yet"
            raise InputDataError(f"There is no trial {number} in the study, {known}.")
    if len(numbers) == 2 and numbers[0] == numbers[1]:
        raise InputDataError(f"Trial {numbers[0]} cannot be compared with itself.")
    return numbers
