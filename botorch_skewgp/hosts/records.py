"""Judgements and reports of people, as experiments store them: anyone may write, and unreadable ones are left out."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning

from botorch_skewgp import checks
from botorch_skewgp.observations import Choice, ChoiceOrNone, Observation, Preference, Tie

UNREADABLE = (
    "does not name a winner and losers, different trials or arms of the experiment, or a judge by a name or a number"
)
SHOWN = 80  # characters of an entry in a warning
SEVERAL_OBJECTIVES = (
    "Comparisons need a single objective, since they say which trial is better overall; this experiment has several"
)


@dataclass(frozen=True)
class Judgement:
    """An answer about different trials or arms: some are better than others, or two tie.

    One side is of a single item, the best or the worst. Where "none is good enough" was an answer too (`or_none`), a
    side may be empty: the better one if that was the answer, the worse one of an item that was judged alone.
    """

    better: tuple[Any, ...]
    worse: tuple[Any, ...]
    tie: bool = False
    or_none: bool = False
    judge: int | str | None = None

    @property
    def items(self) -> tuple[Any, ...]:
        """The trials or arms, the best or the worst first."""
        return (*self.worse, *self.better) if self.names_worst else (*self.better, *self.worse)

    @property
    def names_worst(self) -> bool:
        """Whether the single item is the worst of several."""
        return len(self.better) > 1

    @property
    def losers(self) -> tuple[Any, ...]:
        """Those that something is better than, or that are not good enough."""
        return () if self.tie else self.worse

    @property
    def kind(self) -> type[Observation]:
        """The kind of observation."""
        if self.tie:
            return Tie
        if self.or_none:
            return ChoiceOrNone
        return Preference if len(self.items) == 2 else Choice

    def of(self, items: Sequence[Any]) -> Judgement:
        """The same of other trials or arms, in their order, the better ones first."""
        count = len(self.better)
        return replace(self, better=tuple(items[:count]), worse=tuple(items[count:]))

    def among(self, names: Mapping[Any, Any]) -> Judgement | None:
        """The judgement of trials or arms with other names, some of which may be missing; `None` if nothing."""
        better = tuple(names[item] for item in self.better if item in names)
        worse = tuple(names[item] for item in self.worse if item in names)
        if not (better and worse) and not (self.or_none and (better or (worse and not self.better))):
            return None
        return replace(self, better=better, worse=worse)

    def without(self, pair: set[Any]) -> Judgement | None:
        """The judgement without that of two trials or arms against each other; `None` if nothing."""
        first = self.items[0]
        if not self.better or first not in pair or not pair <= set(self.items):
            return self
        return self.among({item: item for item in self.items if item == first or item not in pair})


class Unreadable(NamedTuple):
    """An entry that is left out: its key, its value and the reason."""

    key: str
    value: Any
    reason: str


class Records(NamedTuple):
    """What people reported.

    Args:
        judgements: Their judgements.
        bounds: Lower and upper bounds, by trial.
        unreadable: The entries that are left out.
        numbers: Numbers, by trial, and the known variances of their errors, or `None`.
        unusable: The trials that do not work.
    """

    judgements: list[Judgement]
    bounds: dict[Any, tuple[float, float]]
    unreadable: list[Unreadable]
    numbers: Mapping[int, tuple[float, float | None]] = {}
    unusable: frozenset[int] = frozenset()


def read_judgements(
    reports: Iterable[Sequence[tuple[str, Any]]], known: Container[Any], objectives: Sequence[str]
) -> tuple[list[Judgement], list[Unreadable]]:
    """Judgements of known trials or arms, of a single objective, in reports of entries by key, and other entries."""
    judgements: list[Judgement] = []
    unreadable: list[Unreadable] = []
    for report in reports:
        of_report = []
        for key, value in report:
            judgement = read_judgement(value, known)
            if judgement is None:
                unreadable.append(Unreadable(key, value, UNREADABLE))
            elif len(objectives) > 1:
                unreadable.append(Unreadable(key, value, f"is no use. {SEVERAL_OBJECTIVES}"))
            else:
                of_report.append(judgement)
        judgements += _joined(of_report)
    return judgements, unreadable


def read_judgement(value: Any, known: Container[Any]) -> Judgement | None:
    """The judgement of known trials or arms that an entry is; `None` if it is none."""
    judgement = _read(value)
    return judgement if judgement and all(item in known for item in judgement.items) else None


def _read(value: Any) -> Judgement | None:
    """The judgement of a pair, the better one first, or of a mapping as `as_value` makes it."""
    if isinstance(value, list | tuple) and len(value) == 2:
        return Judgement((value[0],), (value[1],)) if _are_different(value) else None
    if not isinstance(value, Mapping):
        return None
    winner, losers, judge = (value.get(name) for name in ("winner", "losers", "judge"))
    tie, or_none = (value.get(name, False) for name in ("tie", "or_none"))
    if not (isinstance(tie, bool) and isinstance(or_none, bool) and (judge is None or _is_judge(judge))):
        return None
    if not isinstance(losers, list | tuple) or not (losers or (or_none and winner is not None)):
        return None
    if tie and (or_none or winner is None or len(losers) != 1):
        return None
    judgement = judged(winner, losers, tie, or_none, judge)
    return judgement if _are_different(judgement.items) else None


def left_of(lists: Mapping[str, list[Any]], change: Callable[[Judgement], Judgement | None]) -> dict[str, list[Any]]:
    """What is left of lists of entries whose judgements are changed, `None` for nothing: of those lists that change."""
    changed = {}
    for key, entries in lists.items():
        left = []
        for value in entries:
            judgement = _read(value)
            rest = judgement and change(judgement)
            if rest == judgement:
                left.append(value)
            elif rest is not None:
                left.append(as_value(rest))
        if left != entries:
            changed[key] = left
    return changed


def judged(
    best: Any, others: Sequence[Any], tie: bool = False, or_none: bool = False, judge: int | str | None = None
) -> Judgement:
    """The judgement that one trial or arm is the best or as good as another, or that all are bad (`None`)."""
    better = () if best is None else (best,)
    return Judgement(better, tuple(others), tie, or_none or (best is None and not tie), judge)


def as_value(judgement: Judgement) -> dict[str, Any]:
    """The entry of a judgement of the best or of none."""
    return {
        "winner": next(iter(judgement.better), None),
        "losers": list(judgement.worse),
        "tie": judgement.tie,
        "or_none": judgement.or_none,
        "judge": judgement.judge,
    }


def _joined(judgements: list[Judgement]) -> list[Judgement]:
    """Judgements reported at once: comparisons with one trial in common are one choice, of the best or the worst."""
    judges = {judgement.judge for judgement in judgements}
    if len(judgements) < 2 or len(judges) > 1 or any(judgement.kind is not Preference for judgement in judgements):
        return judgements
    better = tuple(dict.fromkeys(judgement.better[0] for judgement in judgements))
    worse = tuple(dict.fromkeys(judgement.worse[0] for judgement in judgements))
    if sorted((len(better), len(worse))) != [1, len(judgements)]:
        return judgements
    return [Judgement(better, worse, judge=judges.pop())]


def check_choice(best: Any, others: Any, or_none: Any, named: str) -> None:
    """Raise `InputDataError` unless the others are a list of trials or arms that were not chosen."""
    checks.check_flags(or_none=or_none)
    may_be_empty = or_none and best is not None
    if not isinstance(others, Sequence) or isinstance(others, str | bytes) or not (others or may_be_empty):
        raise InputDataError(f"{named} must be a list of the trials that were not chosen; got {others!r}.")


def check_judge(value: Any) -> None:
    """Raise `InputDataError` unless a value names a judge, or none."""
    if value is not None and not _is_judge(value):
        raise InputDataError(f"judge must be a name, or a number from 0 on; got {value!r}.")


def check_one_objective(objectives: list[str], error: Callable[[str], Exception], advice: str = "") -> None:
    """Raise an error, with a further sentence, if there are several objectives: a comparison is about a single one."""
    if len(objectives) > 1:
        raise error(f"{SEVERAL_OBJECTIVES}: {', '.join(objectives)}.{advice and ' ' + advice}")


def _is_judge(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (type(value) is int and value >= 0)


def _are_different(items: Sequence[Any]) -> bool:
    """Whether values are numbers of trials, or names of arms, and all different."""
    are_names = all(isinstance(item, int | str) and not isinstance(item, bool) for item in items)
    return are_names and len(items) == len(set(items))


def as_number(value: Any) -> float | None:
    """A stored number, which may be infinite; `None` for anything else, NaN and truth values included."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    try:
        return float(value)
    except OverflowError:  # of JSON's whole numbers
        return math.inf if value > 0 else -math.inf


def as_finite(value: Any) -> float | None:
    """A stored number that is finite; `None` for anything else."""
    number = as_number(value)
    return None if number is None or math.isinf(number) else number


def as_bounds(lower: Any, upper: Any) -> tuple[float, float] | None:
    """Stored bounds, of which one may be `None`; `None` unless one is finite, and the lower below the upper."""
    low = -math.inf if lower is None else as_number(lower)
    high = math.inf if upper is None else as_number(upper)
    if low is None or high is None or not low < high:
        return None
    if math.isinf(low) and math.isinf(high):
        return None
    return low, high


def checked_bounds(lower: Any, upper: Any) -> dict[str, float]:
    """The given bounds, by their names; raises `InputDataError` as `as_bounds` returns `None`."""
    bounds = {}
    for name, value in (("lower", lower), ("upper", upper)):
        if value is not None:
            bounds[name] = checks.as_number(value, name)
    if as_bounds(bounds.get("lower"), bounds.get("upper")) is None:
        raise InputDataError(f"Give finite bounds, lower below upper; got lower={lower}, upper={upper}.")
    return bounds


def warn_of(unreadable: Iterable[Unreadable], advice: str) -> None:
    """Warn that entries are left out, once in a process for each of them, with how to take them back."""
    for key, value, reason in unreadable:
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."
        _warn_once(f"{key} is left out: {shown} {reason}. {advice}")


@functools.lru_cache(maxsize=4096)
def _warn_once(message: str) -> None:
    warnings.warn(message, InputDataWarning, stacklevel=3)
