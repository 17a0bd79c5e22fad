r"""Columns of history: what people chose before, and where alternatives stood, for predictions one step ahead.

.. [Guadagni1983logit] P. M. Guadagni, J. D. C. Little. A logit model of brand choice calibrated on scanner data.
   Marketing Science 2, 1983.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.frames.columns import codes, columns_of_one_length, flags, sorted_names
from botorch_skewgp.observations.checks import as_probability

if TYPE_CHECKING:
    from pandas import DataFrame


def habits(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    situation: str,
    chosen: str,
    alternative: str,
    person: str,
    smoothing: float = 0.8,
) -> dict[str, list[float]]:
    r"""Columns of what each person chose in earlier situations, and of the order in which alternatives were shown.

    Rows are in the order of time. A row knows only what the person chose in situations before its own, so that columns
    of held-out rows make predictions one step ahead. The chosen cells of situations to come are empty.

    Loyalty is exponential smoothing of earlier choices ([Guadagni1983logit]_): it starts at one over the number of
    alternatives, and after each choice is `smoothing` of what it was, plus `1 - smoothing` for the one chosen.

    Example:
        >>> frame = {
        ...     "id": ["ann"] * 6,
        ...     "trip": [1, 1, 2, 2, 3, 3],
        ...     "brand": ["north", "south"] * 3,
        ...     "chosen": [1, 0, 0, 1, None, None],
        ... }
        >>> frame |= habits(frame, "trip", "chosen", "brand", "id")  # of pandas: frame.assign(**habits(...))
        >>> answers = read_choices(frame, "trip", "chosen", ["brand", "last", "loyalty"], "id")

    Args:
        frame: A data frame in long format, or a dictionary of columns; see `read_choices`.
        situation: The name of the column of situations.
        chosen: The name of the column of 1 for the alternative chosen, and 0; empty for situations to come.
        alternative: The name of the column of alternatives.
        person: The name of the column of people.
        smoothing: What is kept of a loyalty after a choice.

    Returns:
        A dictionary of columns with an entry for each row. They are `last`, 1 for the alternative that the person chose
        last; `loyalty`; `position`, the place of the alternative among the rows of its situation, from 0. In a duel the
        latter is the order of the two.

    Raises:
        InputDataError: If a column is missing, a cell is empty or of a wrong type, or a situation has several chosen
            alternatives; the rows are named.
    """
    smoothing = as_probability(smoothing, "smoothing")
    who, when, what = columns_of_one_length(frame, [person, situation, alternative])
    said = columns_of_one_length(frame, [person, chosen], may_be_empty=True)[1]
    is_chosen = torch.tensor(flags([value or 0 for value in said], chosen), dtype=torch.bool)
    people, kinds = (sorted_names(set(values)) for values in (who, what))
    by, kind = codes(who, people, person), codes(what, kinds, alternative)
    place: dict[Any, int] = {}  # the number of each situation, in the order of time
    event = torch.tensor([place.setdefault(key, len(place)) for key in zip(who, when, strict=True)], dtype=torch.long)
    num = len(place)
    twice = (torch.zeros(num, dtype=torch.long).index_add(0, event, is_chosen.long()) > 1).nonzero().flatten()
    if len(twice):
        rows = (event == twice[0]).nonzero().flatten().tolist()
        raise InputDataError(f"A situation must have one chosen alternative; that of rows {rows[:10]} has several.")
    choice = torch.zeros(num, len(kinds), dtype=torch.float64).index_put(
        (event[is_chosen], kind[is_chosen]), torch.ones(int(is_chosen.sum()), dtype=torch.float64)
    )
    owner = torch.zeros(num, dtype=torch.long).scatter(0, event, by)
    step = _ranks(owner)
    loyalty = torch.full((len(people), len(kinds)), 1 / max(len(kinds), 1), dtype=torch.float64)
    last = torch.zeros_like(loyalty)
    before = torch.empty(2, num, len(kinds), dtype=torch.float64)
    for number in range(int(step.max()) + 1 if num else 0):
        now = (step == number).nonzero().flatten()
        mine, picked = owner[now], choice[now]
        before[:, now] = torch.stack([last[mine], loyalty[mine]])
        told = picked.sum(-1, keepdim=True)
        last[mine] = torch.where(told > 0, picked, last[mine])
        loyalty[mine] = torch.where(told > 0, smoothing * loyalty[mine] + (1 - smoothing) * picked, loyalty[mine])
    found = before[:, event, kind]
    return {"last": found[0].tolist(), "loyalty": found[1].tolist(), "position": _ranks(event).double().tolist()}


def _ranks(label: Tensor) -> Tensor:
    """The number of earlier entries with the same label."""
    order = label.argsort(stable=True)
    size = label.bincount()
    rank = torch.empty_like(label)
    rank[order] = torch.arange(len(label)) - (size.cumsum(0) - size)[label[order]]
    return rank
