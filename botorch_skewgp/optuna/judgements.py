"""What a person can say of trials beyond what optuna-dashboard's page has buttons for, in any study.

Pairs that the dashboard stores under one key are one answer, with one noise of the trial named, if that is in all.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Literal

from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from botorch_skewgp import checks
from botorch_skewgp.hosts import records
from botorch_skewgp.optuna import internals

JUDGEMENT, UNUSABLE, NUMBER, BOUNDS = "skewgp:judgement:", "skewgp:unusable:", "skewgp:number:", "skewgp:bounds:"
AnyTrial = Trial | FrozenTrial | int
Direction = Literal["maximize", "minimize"]


def report_comparison(
    study: Any, better: AnyTrial, worse: AnyTrial, tie: bool = False, judge: int | str | None = None
) -> None:
    r"""Record that one trial is better than another, as optuna-dashboard does, or as good as it.

    Example:
        >>> report_comparison(study, better=3, worse=1)
        >>> report_comparison(study, 4, 3, tie=True)

    Args:
        study: A study, preferential or not.
        better: A trial, or its number.
        worse: Another one.
        tie: Whether the two were judged equally good; their order does not matter then.
        judge: Who compared them, by a name or a number from 0 on; optuna-dashboard's page has one user, without a name.

    Raises:
        InputDataError: If the study does not have one of the trials, they are the same one, or `tie` or `judge` is of
            another kind. Nothing is stored then, as after the other errors of reports.
        UnsupportedError: If the study has several objectives.
    """
    checks.check_flags(tie=tie)
    _report(study, records.Judgement((better,), (worse,), tie, judge=judge))


def report_choice(
    study: Any,
    best: AnyTrial | None,
    others: Sequence[AnyTrial],
    judge: int | str | None = None,
    or_none: bool = False,
) -> None:
    r"""Record that one trial is the best of several, or that all of them are bad, in a single answer that says nothing
    of how the others compare.

    `withdraw_comparison` takes back that the best is better than one of them, `withdraw_reports` that one is bad.

    Example:
        >>> report_choice(study, best=3, others=[1, 4])
        >>> report_choice(study, best=None, others=[0, 2])  # all of these are bad

    Args:
        study: A study. In a preferential one the others leave the page, unless a judge is named.
        best: A trial, or its number; `None` if all are bad.
        others: The other ones.
        judge: Who chose, as in `report_comparison`.
        or_none: Whether "all are bad" was an answer too: the best is then good enough, one trial may be judged alone,
            and the answers tell the level of the utility (`ChoiceOrNone`).

    Raises:
        InputDataError: As `report_comparison`, or if there are no others.
        UnsupportedError: If the study has several objectives.
    """
    records.check_choice(best, others, or_none, "others")
    _report(study, records.judged(best, others, or_none=or_none, judge=judge))


def _report(study: Any, judgement: records.Judgement) -> None:
    """Store a judgement of some trials, where optuna-dashboard does if it can show it."""
    study = internals.study_of(study)
    check_single_objective(study)
    judgement = judgement.of(numbers_of(study, *judgement.better, *judgement.worse))
    records.check_judge(judgement.judge)
    trials = study.get_trials(deepcopy=False)
    on_page = judgement.judge is None and bool(internals.system_attrs_of(study).get(internals.PREFERENTIAL))
    if on_page and not (judgement.tie or judgement.or_none):
        from optuna_dashboard.preferential import PreferentialStudy

        best, *others = (trials[number] for number in judgement.items)
        PreferentialStudy(study).report_preference(best, others)
        return
    study.set_user_attr(f"{JUDGEMENT}{uuid.uuid4()}", records.as_value(judgement))
    for number in judgement.losers if on_page else ():  # the dashboard knows no "all are bad"
        internals.skip_trial(study, trials[number])


def report_unusable(study: Any, trial: AnyTrial) -> None:
    r"""Record that a trial does not work: the model learns where not to go.

    In a preferential study the trial is not shown any more; say it of both trials where neither works.

    Example:
        >>> report_unusable(study, 4)

    Args:
        study: A study, preferential or not.
        trial: A trial, or its number.

    Raises:
        InputDataError: If the study does not have the trial.
    """
    study = internals.study_of(study)
    (number,) = numbers_of(study, trial)
    study.set_user_attr(f"{UNUSABLE}{number}", True)
    frozen = study.get_trials(deepcopy=False)[number]
    if frozen.state == TrialState.RUNNING:
        study.tell(number, state=TrialState.FAIL)
    elif internals.system_attrs_of(study).get(internals.PREFERENTIAL):
        internals.skip_trial(study, frozen)


def report_number(
    study: Any, trial: AnyTrial, value: float, direction: Direction | None = None, noise: float | None = None
) -> None:
    r"""Record a number of a trial that is compared, such as a measured quality, beside its comparisons, or a number
    whose error is known, in any study: it takes the place of the trial's value.

    Optuna's values cannot be used beside comparisons: the dashboard gives every trial that is compared the value 0. A
    second number replaces the first.

    Example:
        >>> report_number(study, 3, 0.71, direction="maximize")
        >>> report_number(study, 4, 0.65, noise=0.02**2)  # measured to two hundredths

    Args:
        study: A study with one objective, preferential or not.
        trial: A trial, or its number.
        value: The number.
        direction: Whether large or small numbers are good: the study's own by default. A preferential study has none.
        noise: The known variance of the number's error, as of `Numeric`; learned, one for all such numbers, if `None`.

    Raises:
        InputDataError: If the study does not have the trial, the trial failed or was pruned, the number is not finite,
            the noise is negative, or the direction is neither, or missing in a preferential study.
        UnsupportedError: If the study has several objectives.
    """
    study, number, sign = _checked(study, trial, direction)
    value = sign * checks.as_number(value, f"The number of trial {number}")
    state = study.get_trials(deepcopy=False)[number].state
    if state in (TrialState.FAIL, TrialState.PRUNED):
        raise InputDataError(f"Trial {number} is {state.name}: it gave no number. Leave it as it is.")
    stored = value if noise is None else [value, checks.as_number(noise, "noise", least=0.0)]
    study.set_user_attr(f"{NUMBER}{number}", stored)


def report_censored(
    study: Any,
    trial: AnyTrial,
    lower: float | None = None,
    upper: float | None = None,
    direction: Direction | None = None,
) -> None:
    r"""Record a censored reading: a trial's number lies between bounds, and is otherwise unknown.

    It takes the place of the trial's value and state, whether the trial still runs, has a value, or failed or was
    pruned before or afterwards; an objective may report a bound and return it. A second call replaces the first.

    Example:
        >>> report_censored(study, 3, lower=100.0)  # still running after 100 seconds
        >>> report_censored(study, 4, upper=0.01)  # below the detection limit

    Args:
        study: A study with one objective, preferential or not.
        trial: A trial, or its number.
        lower: The lower bound; `None` if unknown.
        upper: The upper bound; `None` if unknown.
        direction: As in `report_number`.

    Raises:
        InputDataError: If the study does not have the trial, there is no finite bound, the lower bound is not below the
            upper one, or the direction is neither, or missing in a preferential study.
        UnsupportedError: If the study has several objectives.
    """
    study, number, sign = _checked(study, trial, direction)
    bounds = records.checked_bounds(lower, upper)
    ends = [bounds.get("lower"), bounds.get("upper")]
    if sign < 0:
        ends = [None if end is None else -end for end in reversed(ends)]
    study.set_user_attr(f"{BOUNDS}{number}", ends)


def withdraw_comparison(study: Any, first: AnyTrial, second: AnyTrial) -> None:
    r"""Take back all comparisons of two trials, or their numbers, in either order, including ties and those of choices.

    What a choice says of other trials stays.

    Example:
        >>> withdraw_comparison(study, 3, 1)

    Raises:
        InputDataError: If the two were not compared.
    """
    study = internals.study_of(study)
    pair = [_as_number(entry) for entry in (first, second)]
    if not _keep(study, lambda judgement: judgement.without(set(pair))):
        raise InputDataError(f"Trials {pair[0]} and {pair[1]} were not compared; there is nothing to take back.")


def withdraw_reports(study: Any, trial: AnyTrial) -> None:
    r"""Take back what was reported of a single trial: its number, its bounds, that it is unusable, and that all that
    were shown with it are bad.

    What `report_unusable` did to a running trial, which it failed, stays.

    Example:
        >>> withdraw_reports(study, 3)

    Raises:
        InputDataError: If nothing was reported of the trial.
    """
    study = internals.study_of(study)
    number = _as_number(trial)
    keys = [key for prefix in (NUMBER, BOUNDS, UNUSABLE) if (key := f"{prefix}{number}") in study.user_attrs]
    others = {i: i for i in range(len(study.get_trials(deepcopy=False))) if i != number}
    changed = _keep(study, lambda judgement: judgement if judgement.better else judgement.among(others))
    if not changed and not any(study.user_attrs[key] is not None for key in keys):
        raise InputDataError(f"Nothing was reported of trial {number}; there is nothing to take back.")
    for key in keys:
        study.set_user_attr(key, None)


def withdraw_unreadable(study: Any) -> None:
    r"""Take back all entries of the study that cannot be read; the sampler warns of them.

    Example:
        >>> withdraw_unreadable(study)

    Raises:
        InputDataError: If it is no study.
    """
    study = internals.study_of(study)
    known = range(len(study.get_trials(deepcopy=False)))
    for key in {entry.key for entry in read_records(study).unreadable}:
        if key in study.user_attrs:
            study.set_user_attr(key, None)
        else:
            left = [entry for entry in _lists(study)[key] if records.read_judgement(entry, known)]
            internals.set_study_system_attr(study, key, left)


def _lists(study: Study) -> dict[str, list[Any]]:
    """The entries of judgements, by the keys of attributes: the dashboard's, of the study, then those of users."""
    lists = {}
    for key, value in internals.preferences_in(internals.system_attrs_of(study)).items():
        lists[key] = list(value) if isinstance(value, list | tuple) else [value]
    for key, value in study.user_attrs.items():
        if key.startswith(JUDGEMENT) and value is not None:
            lists[key] = [value]
    return lists


def _keep(study: Study, change: Callable[[records.Judgement], records.Judgement | None]) -> bool:
    """Store what is left of judgements that are changed, `None` for nothing; whether there is a change."""
    left = records.left_of(_lists(study), change)
    for key, entries in left.items():
        if key in study.user_attrs:
            study.set_user_attr(key, next(iter(entries), None))
        else:
            internals.set_study_system_attr(study, key, entries)
    return bool(left)


def read_records(study: Study) -> records.Records:
    """What people reported of a study's trials, by number; numbers and bounds are of the larger-is-better kind."""
    lists, user_attrs = _lists(study), study.user_attrs  # before the trials, which then have those compared
    trials = range(len(study.get_trials(deepcopy=False)))
    reports = [[(key, value) for value in values] for key, values in lists.items()]
    judgements, unreadable = records.read_judgements(reports, trials, _objectives(study))
    values: dict[str, dict[int, Any]] = {prefix: {} for prefix in _READ}
    for key, stored in user_attrs.items():
        prefix = next((prefix for prefix in _READ if key.startswith(prefix)), None)
        if prefix is None or stored is None:
            continue
        read, wanted = _READ[prefix]
        name, value = key.removeprefix(prefix), read(stored)
        if not (name.isdecimal() and len(name) < 16 and int(name) in trials):
            unreadable.append(records.Unreadable(key, stored, "is about no trial of the study"))
        elif value is None:
            unreadable.append(records.Unreadable(key, stored, f"is not {wanted}"))
        else:
            values[prefix][int(name)] = value
    unusable = frozenset(number for number, is_unusable in values[UNUSABLE].items() if is_unusable)
    return records.Records(judgements, values[BOUNDS], unreadable, values[NUMBER], unusable)


def _as_flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _as_bounds(value: Any) -> tuple[float, float] | None:
    return records.as_bounds(*value) if isinstance(value, list | tuple) and len(value) == 2 else None


def _as_number_and_noise(value: Any) -> tuple[float, float | None] | None:
    """A stored number, alone or with the variance of its error."""
    match value:
        case [number, noise]:
            value, noise = map(records.as_finite, (number, noise))
            return None if value is None or noise is None or noise < 0 else (value, noise)
    value = records.as_finite(value)
    return None if value is None else (value, None)


_READ: dict[str, tuple[Callable[[Any], Any], str]] = {  # how to read an attribute, and what it must be
    UNUSABLE: (_as_flag, "true or false"),
    NUMBER: (_as_number_and_noise, "a finite number, nor one with the variance of its error"),
    BOUNDS: (_as_bounds, "a lower and an upper bound"),
}


def _objectives(study: Study) -> list[str]:
    return [direction.name.lower() for direction in study.directions]


def check_single_objective(study: Study) -> None:
    """Raise `UnsupportedError` if a study has several objectives."""
    records.check_one_objective(_objectives(study), UnsupportedError)


def _checked(study: Any, trial: AnyTrial, direction: Direction | None) -> tuple[Study, int, float]:
    """A study, the number of a trial, and the sign that makes large values good."""
    study = internals.study_of(study)
    check_single_objective(study)
    (number,) = numbers_of(study, trial)
    own = None if internals.system_attrs_of(study).get(internals.PREFERENTIAL) else study.direction.name.lower()
    if direction is None and own is None:
        raise InputDataError("A preferential study has no direction; give direction='maximize' or 'minimize'.")
    if direction not in (None, "maximize", "minimize"):
        raise InputDataError(f"direction must be 'maximize' or 'minimize'; got {direction!r}.")
    return study, number, 1.0 if (direction or own) == "maximize" else -1.0


def _as_number(trial: AnyTrial) -> int:
    if isinstance(trial, Trial | FrozenTrial):
        return trial.number
    if not checks.is_whole(trial):
        raise InputDataError(f"{trial!r} is neither a trial nor the number of one.")
    return int(trial)


def numbers_of(study: Study, *entries: AnyTrial) -> list[int]:
    """The numbers of trials, checked."""
    numbers, num_trials = [_as_number(entry) for entry in entries], len(study.get_trials(deepcopy=False))
    for number in numbers:
        if not 0 <= number < num_trials:
            known = f"whose trials are 0 to {num_trials - 1}" if num_trials else "which has none yet"
            raise InputDataError(f"There is no trial {number} in the study, {known}.")
    for number in numbers:
        if numbers.count(number) > 1:
            raise InputDataError(f"Trial {number} is named twice; name different ones.")
    return numbers
