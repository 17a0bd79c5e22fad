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
        if isinstance(tie, bool) and _is_pair(pair, known) and (judge is None or is_judge(judge)):
            found.append(Comparison(pair[0], pair[1], tie, judge))
        else:
            unreadable.append(Unreadable(key, value, NO_COMPARISON))
    return found, unreadable


def is_judge(value: Any) -> bool:
    """Whether a value names a judge: a text, or a number from 0 on."""
    return (isinstance(value, str) and value != "") or (type(value) is int and value >= 0)


def _is_pair(value: Any, known: Container[Any]) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(entry, int | str) and not isinstance(entry, bool) and entry in known for entry in value)
        and value[0] != value[1]
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
