r"""Columns of what people chose before.

.. [Guadagni1983logit] Guadagni, Little. A logit model of brand choice calibrated on scanner data. 1983.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botorch.exceptions.errors import InputDataError

from botorch_skewgp.checks import as_probability
from botorch_skewgp.frames.answers import rows_of_situations
from botorch_skewgp.frames.columns import columns_of_one_length, flags, sorted_names

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
    names = [person, situation, alternative, chosen]
    people, situations, alternatives, answers = columns_of_one_length(frame, names, [chosen])
    is_chosen = flags([value or 0 for value in answers], chosen)
    kinds = sorted_names(set(alternatives))
    sorted_names(set(people))  # raises where two would be confused
    loyalties: dict[Any, dict[Any, float]] = {}
    last: dict[Any, Any] = {}
    columns = {name: [0.0] * len(people) for name in ("last", "loyalty", "position")}
    for (name, _), rows in rows_of_situations(people, situations).items():
        loyalty = loyalties.setdefault(name, dict.fromkeys(kinds, 1 / len(kinds)))
        for position, row in enumerate(rows):
            columns["last"][row] = float(name in last and last[name] == alternatives[row])
            columns["loyalty"][row] = loyalty[alternatives[row]]
            columns["position"][row] = float(position)
        picked = [alternatives[row] for row in rows if is_chosen[row]]
        if len(picked) > 1:
            raise InputDataError(f"A situation must have one chosen alternative; that of rows {rows[:10]} has several.")
        if picked:  # where the choice is not known, nothing changes
            last[name] = picked[0]
            for kind in kinds:
                loyalty[kind] *= smoothing
            loyalty[picked[0]] += 1 - smoothing
    return columns
