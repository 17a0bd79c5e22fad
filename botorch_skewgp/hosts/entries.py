"""Judgements in an experiment's storage, where anyone may write: unreadable entries are left out, with one warning."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from botorch.exceptions.warnings import InputDataWarning

UNREADABLE = (
    "does not name a winner and a loser or losers, different trials or arms of the experiment, or a judge by a name or "
    "a number"
)
SHOWN = 80  # characters of an entry in a warning
SEVERAL_OBJECTIVES = (
    "Comparisons need a single objective, since they say which trial is better overall; this experiment has several"
)


@dataclass(frozen=True)
class Comparison:
    """A judgement that one trial or arm is better than another, or that they tie; with the judge, if known."""

    winner: Any
    loser: Any
    tie: bool = False
    judge: int | str | None = None

    @property
    def items(self) -> tuple[Any, ...]:
        """The trials or arms."""
        return self.winner, self.loser

    @property
    def losers(self) -> tuple[Any, ...]:
        """Those that something is better than."""
        return () if self.tie else (self.loser,)

    @property
    def refused(self) -> tuple[Any, ...]:
        """Those that are not good enough."""
        return ()

    def among(self, names: Mapping[Any, Any]) -> Comparison | None:
        """What it says of trials or arms with other names; `None` if nothing."""
        if self.winner not in names or self.loser not in names:
            return None
        return replace(self, winner=names[self.winner], loser=names[self.loser])


@dataclass(frozen=True)
class Selected:
    """A judgement that one trial or arm is the best of several, or the worst, or that none is good enough (`item` is
    `None`), perhaps where that was an answer too; with the judge, if known.
    """

    item: Any
    others: tuple[Any, ...]
    worst: bool = False
    or_none: bool = False
    judge: int | str | None = None

    @property
    def items(self) -> tuple[Any, ...]:
        """The trials or arms, the chosen one first."""
        return self.others if self.item is None else (self.item, *self.others)

    @property
    def losers(self) -> tuple[Any, ...]:
        """Those that something is better than."""
        return (self.item,) if self.worst else self.others

    @property
    def refused(self) -> tuple[Any, ...]:
        """Those that are not good enough."""
        return self.others if self.item is None else ()

    def among(self, names: Mapping[Any, Any]) -> Selected | None:
        """What it says of trials or arms with other names, some of which may be missing; `None` if nothing."""
        others = tuple(names[other] for other in self.others if other in names)
        if self.item is None:
            return replace(self, others=others) if others else None
        if self.item not in names or not (others or self.or_none):
            return None
        return replace(self, item=names[self.item], others=others)


Judgement = Comparison | Selected


class Unreadable(NamedTuple):
    """An entry that is left out: its key, its value and the reason."""

    key: str
    value: Any
    reason: str


def readable(
    entries: Iterable[tuple[str, Any, bool]], known: Container[Any]
) -> tuple[list[Judgement], list[Unreadable]]:
    """Judgements of different known trials or arms, and the other entries: of each entry its key, its value, and
    whether it is a tie. A value is a pair, the better one first, or a mapping with `winner`, `loser` or `losers`, and
    perhaps `tie`, `or_none` and `judge`.
    """
    found: list[Judgement] = []
    unreadable = []
    for key, value, tie in entries:
        judgement = _read(value, tie)
        if judgement is not None and _are_different(judgement.items, known):
            found.append(judgement)
        else:
            unreadable.append(Unreadable(key, value, UNREADABLE))
    return found, unreadable


def _read(value: Any, tie: bool) -> Judgement | None:
    if isinstance(value, list | tuple) and len(value) == 2:
        return Comparison(value[0], value[1], tie)
    if not isinstance(value, Mapping):
        return None
    judge, tie, or_none = (
        value.get(name, default) for name, default in (("judge", None), ("tie", tie), ("or_none", False))
    )
    if not (isinstance(tie, bool) and isinstance(or_none, bool) and (judge is None or is_judge(judge))):
        return None
    winner, losers = value.get("winner"), value.get("losers")
    if losers is None:
        return Comparison(winner, value.get("loser"), tie, judge)
    if not isinstance(losers, list | tuple) or not (losers or or_none):
        return None
    return selected(winner, losers, or_none, judge)


def selected(best: Any, others: Sequence[Any], or_none: bool, judge: int | str | None) -> Judgement:
    """The judgement that one trial or arm is the best, or that all are bad (`None`)."""
    if len(others) == 1 and best is not None and not or_none:
        return Comparison(best, others[0], judge=judge)
    return Selected(best, tuple(others), or_none=or_none or best is None, judge=judge)


def check_others(value: Any, name: str, best: Any, or_none: bool, error: type[Exception]) -> None:
    """Raise an error unless a value is a list of trials or arms that were not chosen."""
    may_be_empty = or_none and best is not None
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not (value or may_be_empty):
        raise error(f"{name} must be a list of the trials that were not chosen; got {value!r}.")


def as_value(judgement: Judgement) -> dict[str, Any]:
    """The value of an entry that is read as a judgement, of the best or of none."""
    judge = {} if judgement.judge is None else {"judge": judgement.judge}
    if isinstance(judgement, Comparison):
        return {"winner": judgement.winner, "loser": judgement.loser, "tie": judgement.tie, **judge}
    or_none = {"or_none": True} if judgement.or_none else {}
    return {"winner": judgement.item, "losers": list(judgement.others), **or_none, **judge}


def as_one_judgement(comparisons: Sequence[Judgement]) -> Selected | None:
    """The choice of the best or the worst of several that comparisons reported at once are; `None` if they are none."""
    given = [entry for entry in comparisons if isinstance(entry, Comparison)]
    winners, losers = {entry.winner for entry in given}, {entry.loser for entry in given}
    judges, ties = {entry.judge for entry in given}, any(entry.tie for entry in given)
    is_one = sorted((len(winners), len(losers))) == [1, len(comparisons)]  # and all comparisons differ
    if len(given) < 2 or not is_one or ties or len(judges) > 1:
        return None
    first, worst = given[0], len(losers) == 1
    others = tuple(entry.winner if worst else entry.loser for entry in given)
    return Selected(first.loser if worst else first.winner, others, worst, judge=first.judge)


def without_pair(judgement: Judgement, pair: set[Any]) -> Judgement | None:
    """What a judgement says but of two trials or arms against each other; `None` if nothing is left."""
    if isinstance(judgement, Comparison):
        return None if set(judgement.items) == pair else judgement
    if judgement.item not in pair:
        return judgement
    return judgement.among({item: item for item in judgement.items if item not in pair - {judgement.item}})


def is_judge(value: Any) -> bool:
    """Whether a value names a judge: a text, or a number from 0 on."""
    return (isinstance(value, str) and value != "") or (type(value) is int and value >= 0)


def check_judge(value: Any, error: type[Exception]) -> None:
    """Raise an error unless a value names a judge, or none."""
    if value is not None and not is_judge(value):
        raise error(f"judge must be a name, or a number from 0 on; got {value!r}.")


def _are_different(items: tuple[Any, ...], known: Container[Any]) -> bool:
    """Whether trials or arms are known and all different."""
    are_names = all(isinstance(item, int | str) and not isinstance(item, bool) and item in known for item in items)
    return are_names and 0 < len(items) == len(set(items))


def as_number(value: Any) -> float | None:
    """A stored number, which may be infinite; `None` for anything else, NaN and truth values included."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    try:
        return float(value)
    except OverflowError:  # of JSON's whole numbers
        return math.inf if value > 0 else -math.inf


def warn_of(unreadable: Iterable[Unreadable], advice: str) -> None:
    """Warn that entries are left out, once in a process for each of them, with how to take them back."""
    for key, value, reason in unreadable:
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."
        _warn_once(f"{key} is left out: {shown} {reason}. {advice}")


@functools.lru_cache(maxsize=4096)
def _warn_once(message: str) -> None:
    warnings.warn(message, InputDataWarning, stacklevel=3)


def check_one_objective(objectives: list[str], error: Callable[[str], Exception], advice: str = "") -> None:
    """Raise an error, with a further sentence, if there are several objectives: a comparison is about a single one."""
    if len(objectives) > 1:
        raise error(f"{SEVERAL_OBJECTIVES}: {', '.join(objectives)}.{advice and ' ' + advice}")
