r"""Votes in a data frame, and as observations of numbered items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import check_names
from botorch_skewgp.frames.answers import Answers
from botorch_skewgp.frames.columns import (
    columns_of_one_length,
    distinct_names,
    numbered_if_any,
    numbers,
    sorted_names,
)
from botorch_skewgp.observations import Observation, Preference, Tie, Vote
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
) -> Answers:
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
        Answers whose points are the items; wins and ties, or one `Vote` of all if some tell the level.

    Raises:
        InputDataError: If a column is missing, a cell is empty, an item is compared with itself or is not among
            `items`, two names are of different types but equal (`1` and `True`) or of the same text (`3` and `"3"`), or
            an outcome is unknown.
    """
    outcome = "outcome" if outcome is None and "outcome" in frame else outcome
    judge = "judge" if judge is None and "judge" in frame else judge
    if isinstance(advantages, str):
        raise InputDataError(f"advantages must be a list of names of columns; got {advantages!r}.")
    names = [first, second, outcome, judge, category, time]
    a, b, outcomes, people, of_category, of_time = columns_of_one_length(frame, names)
    having = columns_of_one_length(frame, [first, *advantages], advantages)[1:]
    check_names([*a, *b, *(items if isinstance(items, list | tuple) else ())], "items")
    alone = [i for i, (one, other) in enumerate(zip(a, b, strict=True)) if one == other]
    if alone:
        raise InputDataError(f"An item is compared with itself in rows {alone[:5]} ({a[alone[0]]!r}); leave these out.")
    known = sorted_names({*a, *b}) if items is None else distinct_names(items, "items")
    number = {name: i for i, name in enumerate(known)}
    unknown = sorted_names({*a, *b} - number.keys())
    if unknown:
        raise InputDataError(f"items must name all items of votes; {unknown[:5]} are missing.")
    pairs = torch.tensor([[number[x] for x in a], [number[x] for x in b]], dtype=torch.long).mT
    code = torch.zeros(len(a), dtype=torch.long) if outcome is None else _outcomes(outcomes, first, second)
    if both_alike not in ("level", "tie", "drop"):
        raise InputDataError(f"both_alike must be 'level', 'tie' or 'drop'; got {both_alike!r}.")
    who, judges = numbered_if_any(people, judge)
    observations: list[Observation] = []
    if both_alike == "level" and bool((code > TIE).any()):
        order = torch.arange(len(code))
        buttons = tuple(BUTTONS[number] for number in sorted({FIRST, SECOND, TIE, *code.unique().tolist()}))
        observations.append(Vote(pairs, code, buttons=buttons, judge=who))
    else:
        pairs = torch.where((code == SECOND).unsqueeze(-1), pairs.flip(-1), pairs)
        won = (code < TIE).nonzero().squeeze(-1)
        tied = (code == TIE if both_alike == "drop" else code >= TIE).nonzero().squeeze(-1)
        order = torch.cat([won, tied])
        of_won, of_tied = (None if who is None else who[which] for which in (won, tied))
        observations.append(Preference(pairs[won], judge=of_won))
        if len(tied):
            observations.append(Tie(pairs[tied], judge=of_tied))
    circumstances: dict[str, Tensor] = {}
    if having:
        item = torch.tensor([[number.get(value, -1) for value in values] for values in having]).mT
        circumstances["advantages"] = (item.unsqueeze(-2) == pairs.unsqueeze(-1)).double()[order]
    kind, kinds = numbered_if_any(of_category, category)
    if kind is not None:
        circumstances["categories"] = kind[order]
    if time is not None:
        circumstances["times"] = torch.tensor(numbers(of_time, time), dtype=torch.float64)[order]
    return Answers(
        torch.arange(len(known), dtype=torch.float64).unsqueeze(-1),
        tuple(observations),
        ("item",),
        {"item": tuple(known)},
        judges,
        items=tuple(known),
        circumstances=circumstances,
        category_names=kinds,
    )


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
