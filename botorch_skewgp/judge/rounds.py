"""Rounds of "which of these is the best, or are all bad?", of several judges, kept in one file."""

from __future__ import annotations

import json
import os
import random
import threading
import uuid
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning

from botorch_skewgp.checks import as_count
from botorch_skewgp.hosts.records import Judgement, judged

Shown = Path | str | bytes  # a file, a text, or a picture or sound as its file has it
MOST_SHOWN = 9  # a digit of the keyboard each
LONGEST_NAME = 80  # characters


class Source(Protocol):
    """What is judged; an item is a name, a number or a point, and is stored as JSON."""

    def __contains__(self, item: Any) -> bool:
        """Whether there is such an item."""

    def ask(self, num_shown: int, answers: Sequence[Judgement], pending: Sequence[Sequence[Any]]) -> Sequence[Any]:
        """The items of the next round, beside those of rounds that are open; answers so far are given in order."""

    def show(self, item: Any) -> Shown:
        """What the page shows of an item."""

    def report(self, key: str, judgement: Judgement) -> None:
        """Store an answer where the source keeps its own; another with the same key replaces it."""

    def withdraw(self, key: str) -> None:
        """Take an answer back."""


@dataclass(frozen=True)
class Round:
    """A question to one judge, and the answer.

    Args:
        judge: The judge's name.
        shown: The items.
        key: A name of this round for the source.
        is_answered: Whether there is an answer.
        best: The place of the best item; `None` without an answer, or if all are bad.
    """

    judge: str
    shown: tuple[Hashable, ...]
    key: str
    is_answered: bool = False
    best: int | None = None

    @property
    def judgement(self) -> Judgement:
        """The answer."""
        best = None if self.best is None else self.shown[self.best]
        others = [item for place, item in enumerate(self.shown) if place != self.best]
        return judged(best, others, or_none=True, judge=self.judge)


class Rounds:
    r"""The rounds on a page, stored in a file after every step, from which another process goes on.

    Example::

        rounds = Rounds(FolderItems("pictures"), "pictures/answers.json")
        number = rounds.open("ann")
        rounds.answer("ann", number, best=2)  # the third of rounds.all[number].shown

    Args:
        source: What is judged.
        path: The file; it is made by the first round.
        num_shown: The number of items in a round, 2 to 9.

    Raises:
        InputDataError: If the file is not one of rounds, or the number is out of its range.
    """

    def __init__(self, source: Source, path: str | os.PathLike[str], num_shown: int = 4) -> None:
        self.source, self._path = source, Path(path)
        self._num_shown = as_count(num_shown, "num_shown", most=MOST_SHOWN)
        self._turn = threading.RLock()
        self._stored = self._path.read_bytes() if self._path.exists() else None
        self.all = read_rounds(path) if self._stored is not None else []
        gone = {item for entry in self.all for item in entry.shown if item not in source}
        if gone:
            some = ", ".join(map(str, sorted(gone, key=str)[:5]))
            message = f"{self._path} has rounds about what is not there any more, and are left out as far: {some}."
            warnings.warn(message, InputDataWarning, stacklevel=2)

    def open(self, judge: Any) -> int:
        """The number of the first round that a judge has not answered, a new one if there is none.

        Raises:
            InputDataError: If the judge's name is not a text of 1 to 80 characters, or there is too little to show.
        """
        if not isinstance(judge, str) or not 0 < len(judge.strip()) <= LONGEST_NAME:
            raise InputDataError(f"A judge's name has 1 to {LONGEST_NAME} characters; got {judge!r}.")
        with self._turn:
            started = [(number, entry) for number, entry in enumerate(self.all) if not entry.is_answered]
            started = [(number, entry) for number, entry in started if all(item in self.source for item in entry.shown)]
            own = [number for number, entry in started if entry.judge == judge]
            if not own:
                answers = [entry.judgement for entry in self.all if entry.is_answered]
                shown = list(self.source.ask(self._num_shown, answers, [entry.shown for _, entry in started]))
                own = [len(self.all)]
                random.Random(own[0]).shuffle(shown)  # sources name the best first
                self._keep([*self.all, Round(judge, tuple(shown), uuid.uuid4().hex)])
            return own[0]

    def answer(self, judge: Any, number: Any, best: Any) -> None:
        """Store which place of a round is the best; `None` if all are bad.

        Raises:
            InputDataError: If it is not the judge's open round, or the place is none of it.
        """
        with self._turn:
            entry: Round | None = self.all[number] if type(number) is int and 0 <= number < len(self.all) else None
            if entry is None or entry.judge != judge or entry.is_answered:
                raise InputDataError("This round is not open any more; the next one is shown.")
            if not (best is None or (type(best) is int and 0 <= best < len(entry.shown))):
                raise InputDataError(f"best must be one of {len(entry.shown)} places, or none; got {best!r}.")
            self._change(number, replace(entry, is_answered=True, best=best))

    def undo(self, judge: Any) -> None:
        """Open the last round again that a judge has answered.

        Raises:
            InputDataError: If there is none.
        """
        with self._turn:
            answered = [n for n, entry in enumerate(self.all) if entry.judge == judge and entry.is_answered]
            if not answered:
                raise InputDataError("There is no answer to take back.")
            entry = self.all[answered[-1]]
            self._change(answered[-1], replace(entry, is_answered=False, best=None))

    def num_answered(self, judge: str) -> int:
        """The number of rounds that a judge has answered."""
        return sum(entry.judge == judge and entry.is_answered for entry in self.all)

    def _change(self, number: int, entry: Round) -> None:
        """Change a round, in the source first: a process that dies in between asks again, by the same key."""
        if entry.is_answered:
            self.source.report(entry.key, entry.judgement)
        else:
            self.source.withdraw(entry.key)
        self._keep([*self.all[:number], entry, *self.all[number + 1 :]])

    def _keep(self, rounds: list[Round]) -> None:
        """Store rounds in place of the file, which is the old or the new one at any time."""
        if (self._path.read_bytes() if self._path.exists() else None) != self._stored:
            raise InputDataError(f"Another process has changed {self._path}; stop one of them, and start again.")
        text = json.dumps({"rounds": [asdict(entry) for entry in rounds]}, indent=1).encode()
        new = self._path.with_name(f"{self._path.name}.{uuid.uuid4().hex}.new")
        try:
            with new.open("xb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
        finally:
            new.unlink(missing_ok=True)
        self._stored, self.all = text, rounds


def read_rounds(path: str | os.PathLike[str]) -> list[Round]:
    r"""The rounds in a file of answers.

    Example::

        [(entry.judge, entry.judgement.better) for entry in read_rounds("answers.json") if entry.is_answered]

    Raises:
        InputDataError: If it is not a file of answers.
    """
    try:
        entries = json.loads(Path(path).read_bytes())["rounds"]
        rounds = [Round(**{**entry, "shown": tuple(map(_hashable, entry["shown"]))}) for entry in entries]
    except (ValueError, TypeError, KeyError):
        raise InputDataError(f"{path} is not a file of answers; name another one.") from None
    return rounds


def _hashable(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item
