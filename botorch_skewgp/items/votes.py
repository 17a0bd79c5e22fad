r"""Votes in a data frame, and as observations of numbered items."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.frames.columns import codes, column, is_empty, is_number, numbered, sorted_names
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
        circumstances: The `advantages`, `categories` and `times` of the votes, in the order of `observations`, as
            `item_model` takes them.
        categories: The names of the categories, in the order of their numbers; `None` without categories.
    """

    observations: tuple[Observation, ...]
    items: tuple[Any, ...]
    judges: tuple[Any, ...] | None = None
    circumstances: Mapping[str, Tensor] = field(default_factory=dict)
    categories: tuple[Any, ...] | None = None


def read_votes(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    first: str = "winner",
    second: str = "loser",
    outcome: str | None = None,
    judge: str | None = None,
    items: Sequence[Hashable] | None = None,
    both_alike: Literal["level", "tie", "drop"] = "level",
    advantages: Sequence[str] = (),
    category: str | None = None,
    time: str | None = None,
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
            `"both good"` (also `"tie (bothbad)"`); if `None`, the column `outcome` if there is one. Without such a
            column the first item won.
        judge: The name of the column of judges; if `None`, the column `judge` if there is one.
        items: The names of all items, in the wanted order, including items without votes; those in the votes, sorted,
            if `None`.
        both_alike: The meaning of votes for both or against both: `"level"` for a tie with both items above or below a
            threshold; `"tie"` for a tie; `"drop"` to leave them out.
        advantages: The names of columns that name the item with an advantage in each vote, such as the one at home or
            the one shown first; other cells (empty, or of no item of the vote) are of votes without it.
        category: The name of the column of categories.
        time: The name of the column of times, which are numbers.

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
        who, judges = numbered(column(frame, judge), judge)
    told, kinds = _circumstances(frame, advantages, category, time, m)
    if both_alike == "level" and bool((code > TIE).any()):
        found = (Vote(pairs, code, buttons=_buttons(code), judge=who),)
        return Votes(found, tuple(names), judges, told(pairs, names, torch.arange(m)), kinds)
    pairs = torch.where((code == SECOND).unsqueeze(-1), pairs.flip(-1), pairs)
    won, tied = code < TIE, (code >= TIE) & known
    observations: list[Observation] = [Preference(pairs[won], judge=_chosen(who, won))]
    if bool(tied.any()):
        observations.append(Tie(pairs[tied], judge=_chosen(who, tied)))
    order = torch.cat([won.nonzero(), tied.nonzero()]).squeeze(-1)
    return Votes(tuple(observations), tuple(names), judges, told(pairs[order], names, order), kinds)


def _circumstances(
    frame: Any, advantages: Sequence[str], category: str | None, time: str | None, m: int
) -> tuple[Callable[[Tensor, Sequence[Any], Tensor], dict[str, Tensor]], tuple[Any, ...] | None]:
    """A function of pairs, names and the rows of these pairs that returns what was the case; names of categories."""
    if isinstance(advantages, str):
        raise InputDataError(f"advantages must be a list of names of columns; got {advantages!r}.")
    having = [column(frame, name, may_be_empty=True) for name in advantages]
    said = None if category is None else column(frame, category)
    when = None if time is None else column(frame, time)
    for name, values in [*zip(advantages, having, strict=True), (category, said), (time, when)]:
        if values is not None and len(values) != m:
            raise InputDataError(f"Column {name!r} has {len(values)} entries for {m} votes.")
    wrong = [i for i, value in enumerate(when or ()) if not is_number(value)]
    if wrong and when is not None:
        raise InputDataError(f"Column {time!r} must hold numbers; got {when[wrong[0]]!r} in row {wrong[0]}.")
    kinds = None if said is None else tuple(sorted_names(set(said)))

    def told(pairs: Tensor, names: Sequence[Any], rows: Tensor) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        if having:
            number = {name: i for i, name in enumerate(names)}
            item = torch.tensor([[number.get(value, -1) for value in values] for values in having]).mT[rows]
            found["advantages"] = (item.unsqueeze(-2) == pairs.unsqueeze(-1)).double()
        if said is not None and kinds is not None and category is not None:
            found["categories"] = codes(said, kinds, category)[rows]
        if when is not None:
            found["times"] = torch.tensor([float(value) for value in when], dtype=torch.float64)[rows]
        return found

    return told, kinds


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
