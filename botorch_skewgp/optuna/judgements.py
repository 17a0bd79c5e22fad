"""What a person can say of trials beyond what optuna-dashboard's page has buttons for.

The page asks which trial is the worst of those shown; it can skip a trial and take back an answer. These functions add
the best of several, ties, trials that do not work, numbers and bounds beside comparisons, and comparisons in studies
that are not preferential. They take studies of Optuna and preferential ones of its dashboard.

An answer about several trials is one observation: its comparisons share the noise of the trial that was named. What the
dashboard stores under one key is one answer if one trial is in all of its pairs.
"""

from __future__ import annotations

import math
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from botorch.exceptions.errors import InputDataError, UnsupportedError
from optuna import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from botorch_skewgp.hosts.entries import (
    SEVERAL_OBJECTIVES,
    Comparison,
    Judgement,
    Selected,
    Unreadable,
    as_number,
    as_one_judgement,
    as_value,
    check_judge,
    check_one_objective,
    check_others,
    readable,
    selected,
    without_pair,
)
from botorch_skewgp.observations import checks
from botorch_skewgp.optuna.internals import (
    PREFERENTIAL,
    preferences_in,
    set_study_system_attr,
    skip_trial,
    study_of,
    system_attrs_of,
)

BETTER, TIE, UNUSABLE, NUMBER = "skewgp:better:", "skewgp:tie:", "skewgp:unusable:", "skewgp:number:"
LOWER, UPPER, CHOICE = "skewgp:lower:", "skewgp:upper:", "skewgp:choice:"
AnyTrial = Trial | FrozenTrial | int
Direction = Literal["maximize", "minimize"]


def report_comparison(study: Any, better: AnyTrial, worse: AnyTrial, judge: int | str | None = None) -> None:
    r"""Record that one trial is better than another, as optuna-dashboard does.

    Example:
        >>> report_comparison(study, better=3, worse=1)

    Args:
        study: A study, preferential or not.
        better: A trial, or its number.
        worse: Another one.
        judge: Who compared them, by a name or a number from 0 on; optuna-dashboard's page has one user,
            without a name.

    Raises:
        InputDataError: If the study does not have one of the trials, they are the same one, or the judge is no name or
            number. Nothing is stored then.
        UnsupportedError: If the study has several objectives. Nothing is stored then.
    """
    _report(study, [better, worse], judge, lambda pair: Comparison(pair[0], pair[1], judge=judge))


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
        study: A study, preferential or not. In a preferential one the others leave the page, unless a judge
            is named.
        best: A trial, or its number; `None` if all are bad.
        others: The other ones.
        judge: Who chose, as in `report_comparison`.
        or_none: Whether "all are bad" was an answer too: the best is then good enough, one trial may be judged alone,
            and the answers tell the level of the utility (`ChoiceOrNone`).

    Raises:
        InputDataError: If the study does not have one of the trials, one is named twice, there are no others, or the
            judge is no name or number. Nothing is stored then.
        UnsupportedError: If the study has several objectives. Nothing is stored then.
    """
    checks.check_flags(or_none=or_none)
    check_others(others, "others", best, or_none, InputDataError)

    def judged(numbers: list[int]) -> Judgement:
        chosen, left = (None, numbers) if best is None else (numbers[0], numbers[1:])
        return selected(chosen, left, or_none, judge)

    _report(study, [*others] if best is None else [best, *others], judge, judged)


def report_tie(study: Any, first: AnyTrial, second: AnyTrial, judge: int | str | None = None) -> None:
    r"""Record that two trials are as good as each other.

    Example:
        >>> report_tie(study, 3, 1)

    Args:
        study: A study, preferential or not.
        first: A trial, or its number.
        second: Another one.
        judge: Who compared them, as in `report_comparison`.

    Raises:
        InputDataError: As `report_comparison`.
        UnsupportedError: As `report_comparison`.
    """
    _report(study, [first, second], judge, lambda pair: Comparison(pair[0], pair[1], True, judge))


def _report(
    study: Any, trials: Sequence[AnyTrial], judge: int | str | None, judged: Callable[[list[int]], Judgement]
) -> None:
    """Store a judgement of some trials, where optuna-dashboard does if it can show it."""
    study = study_of(study)
    check_single_objective(study)
    numbers = _numbers(study, *trials)
    check_judge(judge, InputDataError)
    told, known = judged(numbers), study.get_trials(deepcopy=False)
    on_page = judge is None and bool(system_attrs_of(study).get(PREFERENTIAL))
    if on_page and told.losers and not (isinstance(told, Selected) and told.or_none):
        from optuna_dashboard.preferential import PreferentialStudy

        best, *others = (known[number] for number in numbers)
        PreferentialStudy(study).report_preference(best, others)
        return
    if isinstance(told, Comparison):
        value = numbers if judge is None else as_value(told)
        study.set_user_attr(f"{TIE if told.tie else BETTER}{uuid.uuid4()}", value)
        return
    study.set_user_attr(f"{CHOICE}{uuid.uuid4()}", as_value(told))
    for number in told.losers if on_page else ():  # the dashboard knows no "all are bad"
        skip_trial(study, known[number])


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


def report_number(study: Any, trial: AnyTrial, value: float, direction: Direction | None = None) -> None:
    r"""Record a number of a trial that is compared, such as a measured quality, beside its comparisons.

    Optuna's values cannot be used for this: the dashboard gives every trial that is compared the value 0. A second
    number replaces the first.

    Example:
        >>> report_number(study, 3, 0.71, direction="maximize")

    Args:
        study: A study with one objective, preferential or not.
        trial: A trial, or its number.
        value: The number.
        direction: Whether large or small numbers are good: the study's own by default. A preferential study has none.

    Raises:
        InputDataError: If the study does not have the trial, the trial failed or was pruned, the number is not finite,
            or the direction is neither, or missing in a preferential study. Nothing is stored then.
        UnsupportedError: If the study has several objectives. Nothing is stored then.
    """
    study, number, value, _ = _checked(study, trial, value, direction)
    state = study.get_trials(deepcopy=False)[number].state
    if state in (TrialState.FAIL, TrialState.PRUNED):
        raise InputDataError(f"Trial {number} is {state.name}: it gave no number. Leave it as it is.")
    study.set_user_attr(f"{NUMBER}{number}", value)


def report_at_least(study: Any, trial: AnyTrial, bound: float, direction: Direction | None = None) -> None:
    r"""Record that a trial's number is at least as large as a bound, and otherwise unknown: a censored reading.

    It takes the place of the trial's value and state: the model reads the bound whether the trial still runs, has a
    value, or failed or was pruned before or afterwards. Optuna's state does not change; an objective may report the
    bound and return it. A second bound on this side replaces the first; with one on the other side it is an interval.

    Example:
        >>> report_at_least(study, 3, 100.0)  # still running after 100 seconds

    Args:
        study: A study with one objective, preferential or not.
        trial: A trial, or its number.
        bound: The bound.
        direction: Whether large or small numbers are good: the study's own by default. A preferential study has none.

    Raises:
        InputDataError: If the study does not have the trial, the bound is not finite or not below that on the other
            side, or the direction is neither, or missing in a preferential study. Nothing is stored then.
        UnsupportedError: If the study has several objectives. Nothing is stored then.
    """
    _report_bound(study, trial, bound, direction, LOWER, UPPER)


def report_at_most(study: Any, trial: AnyTrial, bound: float, direction: Direction | None = None) -> None:
    r"""Record that a trial's number is at most a bound, like `report_at_least`.

    Example:
        >>> report_at_most(study, 3, 0.01)  # below the detection limit

    Args:
        study: As all arguments, see `report_at_least`.
        trial: A trial, or its number.
        bound: The bound.
        direction: Whether large or small numbers are good: the study's own by default. A preferential study has none.

    Raises:
        InputDataError: As `report_at_least`.
        UnsupportedError: As `report_at_least`.
    """
    _report_bound(study, trial, bound, direction, UPPER, LOWER)


def _report_bound(
    study: Any, trial: AnyTrial, bound: float, direction: Direction | None, of_large: str, of_small: str
) -> None:
    """Store a bound as one of the larger-is-better kind: its side where large numbers are good, or where small ones."""
    study, number, value, sign = _checked(study, trial, bound, direction)
    side = of_large if sign > 0 else of_small
    other = as_number(study.user_attrs.get(f"{UPPER if side == LOWER else LOWER}{number}"))
    if other is not None and (value >= other if side == LOWER else value <= other):
        raise InputDataError(
            f"The bounds of trial {number} leave no number between them: {sign * value} and {sign * other}. Take back "
            "the other one by withdraw_reports."
        )
    study.set_user_attr(f"{side}{number}", value)


def withdraw_comparison(study: Any, first: AnyTrial, second: AnyTrial) -> None:
    r"""Take back all comparisons of a pair of trials in either order, including ties and those of choices.

    What a choice says of other trials stays.

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
    pair = [_as_number(entry) for entry in (first, second)]
    if not _keep(study, lambda judgement: without_pair(judgement, set(pair))):
        raise InputDataError(f"Trials {pair[0]} and {pair[1]} were not compared; there is nothing to take back.")


def withdraw_reports(study: Any, trial: AnyTrial) -> None:
    r"""Take back what was reported of a single trial: its number, its bounds, that it is unusable, and that
    it is bad as all that were shown with it.

    What `report_unusable` did to a running trial, which it failed, stays.

    Example:
        >>> withdraw_reports(study, 3)

    Args:
        study: A study, preferential or not.
        trial: A trial, or its number.

    Raises:
        InputDataError: If nothing was reported of the trial.
    """
    study = study_of(study)
    number = _as_number(trial)
    keys = [key for prefix in (NUMBER, LOWER, UPPER, UNUSABLE) if (key := f"{prefix}{number}") in study.user_attrs]
    others = {i: i for i in range(len(study.get_trials(deepcopy=False))) if i != number}
    changes = _keep(
        study, lambda told: told.among(others) if isinstance(told, Selected) and told.item is None else told
    )
    if not changes and not any(study.user_attrs[key] is not None for key in keys):
        raise InputDataError(f"Nothing was reported of trial {number}; there is nothing to take back.")
    for key in keys:
        study.set_user_attr(key, None)


def withdraw_unreadable(study: Any) -> None:
    r"""Take back all entries of the study that cannot be read; the sampler warns of them.

    Example:
        >>> withdraw_unreadable(study)

    Args:
        study: A study, preferential or not.

    Raises:
        InputDataError: If it is no study.
    """
    study = study_of(study)
    _keep(study, lambda judgement: judgement, drops_unreadable=True)
    for entry in read_records(study).unreadable:
        if entry.key in study.user_attrs:
            study.set_user_attr(entry.key, None)


def _keep(study: Study, kept: Callable[[Judgement], Judgement | None], drops_unreadable: bool = False) -> int:
    """Store what is kept of each judgement; the number of changes."""
    known = range(len(study.get_trials(deepcopy=False)) if drops_unreadable else sys.maxsize)
    changes = 0

    def left(value: Any) -> Any:
        found, _ = readable([("", value, False)], known)
        if not found:
            return None if drops_unreadable else value
        rest = kept(found[0])
        return value if rest == found[0] else None if rest is None else as_value(rest)

    for key, entries in preferences_in(system_attrs_of(study)).items():
        before = entries if isinstance(entries, list | tuple) else []
        after = [entry for entry in before if left(entry) is not None]
        if after != list(before) or before is not entries:
            set_study_system_attr(study, key, after)
            changes += 1
    for key, value in study.user_attrs.items():
        if key.startswith((BETTER, TIE, CHOICE)) and value is not None and (rest := left(value)) != value:
            study.set_user_attr(key, rest)
            changes += 1
    return changes


class Records(NamedTuple):
    """What people said of a study's trials, by number. Numbers and bounds are of the larger-is-better kind."""

    judgements: list[Judgement]
    unusable: set[int]
    numbers: dict[int, float]
    lower: dict[int, float]
    upper: dict[int, float]
    unreadable: list[Unreadable]


def read_records(study: Study) -> Records:
    """What people said of a study's trials; entries that cannot be read are listed."""
    attrs, user_attrs = system_attrs_of(study), study.user_attrs  # before the trials, which then have those compared
    known = range(len(study.get_trials(deepcopy=False)))
    present = {key: value for key, value in user_attrs.items() if value is not None}
    judgements: list[Judgement] = []
    unreadable: list[Unreadable] = []
    for report in _reports(attrs, present):
        told, others = readable(report, known)
        unreadable += others
        choice = as_one_judgement(told)
        judgements += [choice] if choice else told
    if len(study.directions) > 1:
        entries = [entry[:2] for report in _reports(attrs, present) for entry in report]
        unreadable += [Unreadable(key, value, f"is no use. {SEVERAL_OBJECTIVES}") for key, value in entries]
        judgements = []
    found: dict[str, dict[int, Any]] = {prefix: {} for prefix in (UNUSABLE, NUMBER, LOWER, UPPER)}
    for key, value in present.items():
        prefix = next((prefix for prefix in found if key.startswith(prefix)), None)
        if prefix is None:
            continue
        name = key.removeprefix(prefix)
        number = as_number(value)
        if not (name.isdecimal() and len(name) < 16 and int(name) in known):
            unreadable.append(Unreadable(key, value, "is about no trial of the study"))
        elif prefix == UNUSABLE and isinstance(value, bool):
            found[prefix][int(name)] = value
        elif prefix == UNUSABLE or number is None or not math.isfinite(number):
            kind = "true or false" if prefix == UNUSABLE else "a finite number"
            unreadable.append(Unreadable(key, value, f"is not {kind}"))
        else:
            found[prefix][int(name)] = number
    for number in [i for i in found[LOWER] if found[LOWER][i] >= found[UPPER].get(i, math.inf)]:
        unreadable.append(Unreadable(f"{LOWER}{number}", found[LOWER].pop(number), "is not below the upper bound"))
    unusable = {number for number, is_unusable in found[UNUSABLE].items() if is_unusable}
    return Records(judgements, unusable, found[NUMBER], found[LOWER], found[UPPER], unreadable)


def _reports(attrs: Mapping[str, Any], user_attrs: Mapping[str, Any]) -> list[list[tuple[str, Any, bool]]]:
    """The entries of each report: those of the dashboard, and one for each of this package's functions."""
    reports = [
        [(key, pair, False) for pair in (pairs if isinstance(pairs, list | tuple) else [pairs])]
        for key, pairs in preferences_in(attrs).items()
    ]
    own = [(key, value) for key, value in user_attrs.items() if key.startswith((BETTER, TIE, CHOICE))]
    return reports + [[(key, value, key.startswith(TIE))] for key, value in own]


def check_single_objective(study: Study) -> None:
    """Raise `UnsupportedError` if a study has several objectives."""
    check_one_objective([direction.name.lower() for direction in study.directions], UnsupportedError)


def _checked(study: Any, trial: AnyTrial, value: float, direction: Direction | None) -> tuple[Study, int, float, float]:
    """A study, the number of a trial, a value, the larger the better, and the sign that made it so."""
    study = study_of(study)
    check_single_objective(study)
    (number,) = _numbers(study, trial)
    own = None if system_attrs_of(study).get(PREFERENTIAL) else study.direction.name.lower()
    if direction is None and own is None:
        raise InputDataError("A preferential study has no direction; give direction='maximize' or 'minimize'.")
    if direction not in (None, "maximize", "minimize"):
        raise InputDataError(f"direction must be 'maximize' or 'minimize'; got {direction!r}.")
    sign = 1.0 if (direction or own) == "maximize" else -1.0
    return study, number, sign * checks.as_number(value, f"The number of trial {number}"), sign


def _as_number(trial: AnyTrial) -> int:
    if isinstance(trial, Trial | FrozenTrial):
        return trial.number
    if not checks.is_whole(trial):
        raise InputDataError(f"{trial!r} is neither a trial nor the number of one.")
    return int(trial)


def _numbers(study: Study, *entries: AnyTrial) -> list[int]:
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
