r"""Votes as people have them, in a data frame, and as observations of numbered items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.observations import Observation, Preference, Tie

if TYPE_CHECKING:
    from pandas import DataFrame

TIES = ("tie",)
BOTH_BAD = ("both bad", "bothbad", "both_bad", "tie (bothbad)")
BOTH_GOOD = ("both good", "bothgood", "both_good")


@dataclass(frozen=True, eq=False)
class Votes:
    r"""Votes between named items, perhaps by named judges.

    Args:
        observations: The votes as observations; their indices are places in `items`.
        items: The names of the items.
        judges: The names of the judges, in the order of their numbers; `None` if none are known.
    """

    observations: tuple[Observation, ...]
    items: tuple[Any, ...]
    judges: tuple[Any, ...] | None = None

    def to_frame(self) -> DataFrame:
        r"""The votes as a data frame with columns `winner`, `loser`, `outcome` (`"winner"` or `"tie"`), and `judge`.

        Wins come before ties; a tie has its two items in either column. `read_votes` reads it back.
        """
        frame: dict[str, list[Any]] = {"winner": [], "loser": [], "outcome": []}
        judge: list[Any] = []
        for entry in self.observations:
            tied = len(entry.ties) > 0
            for first, second in (entry.ties if tied else entry.duels).tolist():
                frame["winner"].append(self.items[first])
                frame["loser"].append(self.items[second])
                frame["outcome"].append("tie" if tied else "winner")
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
    both_alike: Literal["tie", "drop"] = "tie",
) -> Votes:
    r"""Votes of a data frame, a row for each.

    Example:
        >>> votes = read_votes(pandas.DataFrame({"winner": ["a", "c"], "loser": ["b", "a"]}))
        >>> model = item_model(len(votes.items), votes.observations)
        >>> votes = read_votes(arena, "model_a", "model_b", outcome="winner", judge="judge")

    Args:
        frame: A data frame, or a dictionary of columns.
        first: The name of the column of the first item; of the winner if there is no column of outcomes.
        second: The name of the column of the second item; likewise of the loser.
        outcome: The name of a column that says how each vote ended: the *name of the column* of the item that won,
            `"tie"`, `"both bad"` or `"both good"` (also as `"tie (bothbad)"`). Without it the first item won.
        judge: The name of the column of those who voted.
        items: The names of all items, in the order wanted; those in the votes, sorted, if `None`. Name those that no
            vote is about here.
        both_alike: What votes for both or against both say: `"tie"`, that the two are about as good, or `"drop"`,
            nothing. That both are bad, and not merely alike, needs a threshold, which votes of this form do not have.

    Returns:
        The votes, of which wins come first and ties second.

    Raises:
        InputDataError: If a column is missing, a cell is empty, an item plays against itself or is not among `items`,
            or an outcome is not known.
    """
    a, b = (_column(frame, name) for name in (first, second))
    m = len(a)
    if len(b) != m:
        raise InputDataError(f"Columns {first!r} and {second!r} have {m} and {len(b)} votes.")
    alone = [i for i in range(m) if a[i] == b[i]]
    if alone:
        raise InputDataError(
            f"An item is voted on against itself in rows {alone[:5]} ({a[alone[0]]!r}); leave these out."
        )
    if items is None:
        names: Sequence[Any] = _sorted({*a, *b})
    else:
        names = list(items)
        if len(set(names)) < len(names):
            raise InputDataError("items names an item twice.")
    number = {name: i for i, name in enumerate(names)}
    unknown = _sorted({*a, *b} - number.keys())
    if unknown:
        raise InputDataError(f"Votes are about items that are not in items: {unknown[:5]}.")
    pairs = torch.tensor([[number[x] for x in a], [number[x] for x in b]], dtype=torch.long).mT
    code = torch.zeros(m, dtype=torch.long) if outcome is None else _outcomes(_column(frame, outcome), first, second)
    if both_alike not in ("tie", "drop"):
        raise InputDataError(f"both_alike must be 'tie' or 'drop'; got {both_alike!r}.")
    known = code <= 2 if both_alike == "drop" else torch.ones_like(code, dtype=torch.bool)
    who, judges = None, None
    if judge is not None:
        said_by = _column(frame, judge)
        judges = tuple(_sorted(set(said_by)))
        place = {name: i for i, name in enumerate(judges)}
        who = torch.tensor([place[name] for name in said_by], dtype=torch.long)
    pairs = torch.where((code == 1).unsqueeze(-1), pairs.flip(-1), pairs)
    won, tied = code < 2, (code >= 2) & known
    observations: list[Observation] = [Preference(pairs[won], judge=_chosen(who, won))]
    if bool(tied.any()):
        observations.append(Tie(pairs[tied], judge=_chosen(who, tied)))
    return Votes(tuple(observations), tuple(names), judges)


def _chosen(who: Tensor | None, which: Tensor) -> Tensor | None:
    return None if who is None else who[which]


def _outcomes(said: list[Any], first: str, second: str) -> Tensor:
    """0 and 1 for the items that won, 2 for ties, 3 for both bad, 4 for both good."""
    code: dict[Any, int] = dict.fromkeys(TIES, 2)
    code |= dict.fromkeys(BOTH_BAD, 3) | dict.fromkeys(BOTH_GOOD, 4) | {first: 0, second: 1}
    unknown = _sorted({word for word in said if word not in code})
    if unknown:
        raise InputDataError(
            f"Outcomes must be {first!r} or {second!r}, the column of the item that won, 'tie', 'both bad' or "
            f"'both good'; got {unknown[:5]}."
        )
    return torch.tensor([code[word] for word in said], dtype=torch.long)


def _column(frame: Any, name: str) -> list[Any]:
    """A column as a list without empty cells."""
    try:
        column = frame[name]
    except KeyError:
        raise InputDataError(f"There is no column {name!r}; there are {[str(known) for known in frame]}.") from None
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    empty = [i for i, value in enumerate(values) if _is_empty(value)]
    if empty:
        raise InputDataError(f"Column {name!r} is empty in rows {empty[:5]}; fill these cells or leave the rows out.")
    return values


def _is_empty(value: Any) -> bool:
    """Whether it is `None`, NaN, which differs from itself, or pandas' missing value, which does not tell."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _sorted(names: set[Any]) -> list[Any]:
    """Sorted names; by their text if they are of several types."""
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=str)


def pandas() -> Any:
    """The module, which is an extra.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import pandas as module
    except ImportError as error:
        raise ImportError("Tables need pandas: pip install pandas.") from error
    return module
