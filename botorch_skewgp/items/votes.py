r"""Votes in a data frame, and as observations of numbered items."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.frames.columns import column, is_empty, pandas, sorted_names
from botorch_skewgp.observations import Observation, Preference, Tie, Vote
from botorch_skewgp.observations.checks import check_names
from botorch_skewgp.observations.duels import BOTH_BAD, BOTH_GOOD, BUTTONS, FIRST, SECOND, TIE

if TYPE_CHECKING:
    from pandas import DataFrame

OTHER_WORDS = {
    "bothbad": BOTH_BAD,
    "both_bad": BOTH_BAD,
    "tie (bothbad)": BOTH_BAD,
    "bothgood": BOTH_GOOD,
    "both_good": BOTH_GOOD,
}


@dataclass(frozen=True, eq=False)
class Votes:
    r"""Votes between named items, perhaps by named judges.

    Args:
        observations: The votes as observations; their indices are places in `items`.
        items: The names of the items.
        judges: The names of the judges, in the order of their numbers; `None` without judges.
    """

    observations: tuple[Observation, ...]
    items: tuple[Any, ...]
    judges: tuple[Any, ...] | None = None

    def to_frame(self) -> DataFrame:
        r"""The votes as a data frame with columns `winner`, `loser`, `outcome`, and `judge`.

        The outcome is `"winner"`, or for a vote without a winner `"tie"`, `"both bad"` or `"both good"`; its first two
        columns are then the items shown. `read_votes` reads the frame back.
        """
        frame: dict[str, list[Any]] = {"winner": [], "loser": [], "outcome": []}
        judge: list[Any] = []
        for entry in self.observations:
            for (first, second), answer in zip(*_pairs_and_answers(entry), strict=True):
                winner, loser = (second, first) if answer == SECOND else (first, second)
                frame["winner"].append(self.items[winner])
                frame["loser"].append(self.items[loser])
                frame["outcome"].append(BUTTONS[answer] if answer > SECOND else "winner")
            if self.judges is not None and entry.judge is not None:
                judge += [self.judges[number] for number in entry.judge.tolist()]
        if self.judges is not None:
            frame["judge"] = judge
        return pandas().DataFrame(frame)


def read_votes(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    first: str = "winner",
    second: str = "loser",
    outcome: str | None = None,
    judge: str | None = None,
    items: Sequence[Hashable] | None = None,
    both_alike: Literal["level", "tie", "drop"] = "level",
) -> Votes:
    r"""Read votes from a data frame with a row for each.

    Example:
        >>> votes = read_votes({"winner": ["a", "c"], "loser": ["b", "a"]})
        >>> model = item_model(len(votes.items), votes.observations)
        >>> arena = {"model_a": ["x", "y"], "model_b": ["y", "x"], "winner": ["model_a", "tie"]}
        >>> votes = read_votes(arena, "model_a", "model_b", outcome="winner")

    Args:
        frame: A data frame, or a dictionary of columns.
        first: The name of the column of the first item; of the winner if there is no column of outcomes.
        second: The name of the column of the second item; likewise of the loser.
        outcome: The name of the column of outcomes: the *name of the column* of the winner, `"tie"`, `"both bad"` or
            `"both good"` (also `"tie (bothbad)"`); if `None`, the column `outcome`, as `Votes.to_frame` writes it.
            Without such a column the first item won.
        judge: The name of the column of judges; if `None`, the column `judge` if there is one.
        items: The names of all items, in the wanted order, including items without votes; those in the votes, sorted,
            if `None`.
        both_alike: The meaning of votes for both or against both: `"level"` for a tie with both items above or below a
            threshold; `"tie"` for a tie; `"drop"` to leave them out.

    Returns:
        Wins and ties, or one `Vote` of all if some tell the level.

    Raises:
        InputDataError: If a column is missing, a cell is empty, an item is compared with itself or is not among
            `items`, two names are of different types but equal (`1` and `True`) or of the same text (`3` and `"3"`), or
            an outcome is unknown.
    """
    a, b = (column(frame, name) for name in (first, second))
    outcome = "outcome" if outcome is None and "outcome" in frame else outcome
    judge = "judge" if judge is None and "judge" in frame else judge
    m = len(a)
    if len(b) != m:
        raise InputDataError(f"Columns {first!r} and {second!r} have {m} and {len(b)} votes.")
    for name in (outcome, judge):
        if name is not None and len(column(frame, name)) != m:
            raise InputDataError(f"Column {name!r} has {len(column(frame, name))} entries for {m} votes.")
    check_names([*a, *b, *(items if isinstance(items, list | tuple) else ())], "items")
    alone = [i for i in range(m) if a[i] == b[i]]
    if alone:
        raise InputDataError(f"An item is compared with itself in rows {alone[:5]} ({a[alone[0]]!r}); leave these out.")
    if items is None:
        names: Sequence[Any] = sorted_names({*a, *b})
    else:
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise InputDataError(f"items must be a list of names; got {items!r}.")
        names = list(items)
        wrong = [name for name in names if not isinstance(name, Hashable) or is_empty(name)]
        if wrong:
            raise InputDataError(f"items must hold names, none of them empty; got {wrong[:2]}.")
        if len(set(names)) < len(names):
            raise InputDataError("items must name each item once.")
    number = {name: i for i, name in enumerate(names)}
    unknown = sorted_names({*a, *b} - number.keys())
    if unknown:
        raise InputDataError(f"items must name all items of votes; {unknown[:5]} are missing.")
    pairs = torch.tensor([[number[x] for x in a], [number[x] for x in b]], dtype=torch.long).mT
    code = torch.zeros(m, dtype=torch.long) if outcome is None else _outcomes(column(frame, outcome), first, second)
    if both_alike not in ("level", "tie", "drop"):
        raise InputDataError(f"both_alike must be 'level', 'tie' or 'drop'; got {both_alike!r}.")
    known = code <= TIE if both_alike == "drop" else torch.ones_like(code, dtype=torch.bool)
    who, judges = None, None
    if judge is not None:
        said_by = column(frame, judge)
        check_names(said_by, judge)
        judges = tuple(sorted_names(set(said_by)))
        place = {name: i for i, name in enumerate(judges)}
        who = torch.tensor([place[name] for name in said_by], dtype=torch.long)
    if both_alike == "level" and bool((code > TIE).any()):
        return Votes((Vote(pairs, code, buttons=_buttons(code), judge=who),), tuple(names), judges)
    pairs = torch.where((code == SECOND).unsqueeze(-1), pairs.flip(-1), pairs)
    won, tied = code < TIE, (code >= TIE) & known
    observations: list[Observation] = [Preference(pairs[won], judge=_chosen(who, won))]
    if bool(tied.any()):
        observations.append(Tie(pairs[tied], judge=_chosen(who, tied)))
    return Votes(tuple(observations), tuple(names), judges)


def _pairs_and_answers(entry: Observation) -> tuple[list[list[int]], list[int]]:
    """The pairs and the numbers of the answers of votes, as in a `Vote`."""
    if isinstance(entry, Vote):
        return entry.pairs.tolist(), torch.as_tensor(entry.answers).tolist()
    pairs = torch.cat([entry.duels, entry.ties])
    return pairs.tolist(), [FIRST] * len(entry.duels) + [TIE] * len(entry.ties)


def _buttons(code: Tensor) -> tuple[str, ...]:
    """The buttons of the page: the answers given and 'tie'."""
    return tuple(BUTTONS[number] for number in sorted({FIRST, SECOND, TIE, *code.unique().tolist()}))


def _chosen(who: Tensor | None, which: Tensor) -> Tensor | None:
    return None if who is None else who[which]


def _outcomes(said: list[Any], first: str, second: str) -> Tensor:
    """The numbers of answers, as in a `Vote`."""
    code: dict[Any, int] = {**OTHER_WORDS, **{BUTTONS[number]: number for number in (TIE, BOTH_BAD, BOTH_GOOD)}}
    code |= {first: FIRST, second: SECOND}
    unknown = sorted_names({word for word in said if word not in code})
    if unknown:
        raise InputDataError(
            f"Outcomes must be {first!r} or {second!r}, the column of the item that won, 'tie', 'both bad' or "
            f"'both good'; got {unknown[:5]}."
        )
    return torch.tensor([code[word] for word in said], dtype=torch.long)
