"""Comparisons in an experiment's storage, where anyone may write: unreadable entries are left out, with one warning."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from botorch.exceptions.warnings import InputDataWarning

NO_COMPARISON = "does not name two different trials or arms of the experiment, or a judge by a name or a number"
NO_CHOICE = "does not name a winner and losers, different trials of the experiment, or a judge by a name or a number"
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


@dataclass(frozen=True)
class Selected:
    """A judgement that one trial or arm is the best of several, or the worst; with the judge, if known."""

    item: Any
    others: tuple[Any, ...]
    worst: bool = False
    judge: int | str | None = None


class Unreadable(NamedTuple):
    """An entry that is left out: its key, its value and the reason."""

    key: str
    value: Any
    reason: str


def readable_comparisons(
    entries: Iterable[tuple[str, Any, bool]], known: Container[Any]
) -> tuple[list[Comparison], list[Unreadable]]:
    r"""Comparisons of two different known trials or arms, and the other entries.

    Args:
        entries: The key of each entry, its value, and whether it is a tie. A value is a pair, the better one first, or
            a mapping with `winner`, `loser` and perhaps `tie` and `judge`.
        known: The trials or arms.
    """
    found, unreadable = [], []
    for key, value, tie in entries:
        pair, judge = value, None
        if isinstance(value, Mapping):
            pair, tie = (value.get("winner"), value.get("loser")), value.get("tie", tie)
            judge = value.get("judge")
        if isinstance(tie, bool) and _are_different(pair, known) and len(pair) == 2 and _may_judge(judge):
            found.append(Comparison(pair[0], pair[1], tie, judge))
        else:
            unreadable.append(Unreadable(key, value, NO_COMPARISON))
    return found, unreadable


def readable_choices(
    entries: Iterable[tuple[str, Any]], known: Container[Any]
) -> tuple[list[Selected], list[Unreadable]]:
    r"""Choices of the best among different known trials or arms, and the other entries.

    Args:
        entries: The key of each entry, and its value: a mapping with `winner`, a list of `losers` and perhaps `judge`.
        known: The trials or arms.
    """
    found, unreadable = [], []
    for key, value in entries:
        entry = value if isinstance(value, Mapping) else {}
        losers, judge = entry.get("losers"), entry.get("judge")
        options = [entry.get("winner"), *losers] if isinstance(losers, list | tuple) else []
        if _are_different(options, known) and _may_judge(judge):
            found.append(Selected(options[0], tuple(options[1:]), judge=judge))
        else:
            unreadable.append(Unreadable(key, value, NO_CHOICE))
    return found, unreadable


def as_one_judgement(comparisons: list[Comparison]) -> Selected | None:
    r"""The choice of the best or the worst of several that some comparisons are; `None` if they are no choice.

    Args:
        comparisons: What was reported at once.
    """
    winners, losers = {entry.winner for entry in comparisons}, {entry.loser for entry in comparisons}
    judges, ties = {entry.judge for entry in comparisons}, any(entry.tie for entry in comparisons)
    is_one = sorted((len(winners), len(losers))) == [1, len(comparisons)]  # and all comparisons differ
    if len(comparisons) < 2 or not is_one or ties or len(judges) > 1:
        return None
    first, worst = comparisons[0], len(losers) == 1
    others = tuple(entry.winner if worst else entry.loser for entry in comparisons)
    return Selected(first.loser if worst else first.winner, others, worst, first.judge)


def _may_judge(value: Any) -> bool:
    """Whether a value names a judge, or none."""
    return value is None or is_judge(value)


def is_judge(value: Any) -> bool:
    """Whether a value names a judge: a text, or a number from 0 on."""
    return (isinstance(value, str) and value != "") or (type(value) is int and value >= 0)


def _are_different(value: Any, known: Container[Any]) -> bool:
    """Whether a value is a list of two or more known trials or arms, all different."""
    return (
        isinstance(value, list | tuple)
        and all(isinstance(entry, int | str) and not isinstance(entry, bool) and entry in known for entry in value)
        and 2 <= len(value) == len(set(value))
    )


def as_number(value: Any) -> float | None:
    """A stored number, which may be infinite; `None` for anything else, NaN and truth values included."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    try:
        return float(value)
    except OverflowError:  # of JSON's whole numbers
        return math.inf if value > 0 else -math.inf


def warn_of(unreadable: Iterable[Unreadable], advice: str) -> None:
    r"""Warn that entries are left out, once in a process for each of them.

    Args:
        unreadable: The entries.
        advice: How to take them back.
    """
    for key, value, reason in unreadable:
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."
        _warn_once(f"{key} is left out: {shown} {reason}. {advice}")


@functools.lru_cache(maxsize=4096)
def _warn_once(message: str) -> None:
    warnings.warn(message, InputDataWarning, stacklevel=3)


def check_one_objective(objectives: list[str], error: type[Exception], advice: str = "") -> None:
    r"""Raise an error if there are several objectives: a comparison is about a single one.

    Args:
        objectives: The names of the objectives.
        error: The class of the error.
        advice: A further sentence of the message.
    """
    if len(objectives) > 1:
        raise error(f"{SEVERAL_OBJECTIVES}: {', '.join(objectives)}.{advice and ' ' + advice}")
