"""Choices in a data frame: in long format, a row for each alternative, or wide, a row for each situation."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning

from botorch_skewgp.frames.answers import Answers, check_attributes, read_points, rows_of_situations
from botorch_skewgp.frames.columns import (
    as_number_cell,
    columns_of_one_length,
    distinct_names,
    flags,
    numbered_if_any,
    require,
)
from botorch_skewgp.observations import Choice, ChoiceOrNone, Observation

if TYPE_CHECKING:
    from pandas import DataFrame

SEPARATORS = ".", "_", ":"  # between attribute and alternative in the name of a column


class _Long(NamedTuple):
    """A table in long format, an entry for each alternative of each situation.

    Args:
        event: The entries of each situation, by person and situation.
        chosen: What is said of each.
        is_none: Whether it stands for "none of these".
        cells: The cells of each attribute.
        rows: The row of the frame.
    """

    event: Mapping[tuple[Any, Any], list[int]]
    chosen: list[Any]
    is_none: list[bool]
    cells: list[list[Any]]
    rows: list[int]


def read_choices(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    situation: str | None,
    chosen: str,
    attributes: Sequence[str],
    person: str | None = None,
    alternative: str | None = None,
    none: Hashable | None = None,
    alternatives: Sequence[Hashable] | None = None,
) -> Answers:
    r"""Read choices: a row for each alternative of each situation, or, with `alternatives`, a row for each situation.

    Situations may have different numbers of alternatives. Those in which nothing is said of what was chosen (all cells
    empty) are left out, as are those of a single alternative, with a warning; `Answers.unused` has their rows.
    Numbers may come as text or decimals. A `Categorical` of pandas holds names, also of numbers, in the order of its
    categories; models do not use that order.

    Example:
        >>> frame = {
        ...     "id": ["ann"] * 4 + ["bob"] * 3,
        ...     "trip": [1, 1, 2, 2, 1, 1, 1],
        ...     "mode": ["bus", "car", "bus", "car", "bus", "car", "none"],
        ...     "price": [2.0, 5.0, 3.0, 4.0, 2.0, 6.0, None],
        ...     "chosen": [1, 0, 0, 1, 0, 0, 1],
        ... }
        >>> answers = read_choices(frame, "trip", "chosen", ["price", "mode"], "id", alternative="mode", none="none")
        >>> model = fit_panel(answers.train_X, answers.observations, answers.categories)
        >>> wide = {"id": ["ann", "bob"], "choice": ["bus", "car"], "price.bus": [2.0, 3.0], "price.car": [5.0, 4.0]}
        >>> answers = read_choices(
        ...     wide, None, "choice", ["price", "mode"], "id", alternative="mode", alternatives=["bus", "car"]
        ... )

    Args:
        frame: A data frame, or a dictionary of columns.
        situation: The name of the column of situations; numbers may repeat between people. Not used for wide tables,
            whose rows are situations.
        chosen: The name of the column of 1 for the alternative chosen, and 0; in wide tables of its name.
        attributes: The names of the columns that become inputs: numbers, or names such as brands. In wide tables the
            attribute `price` of the alternative `bus` is in column `price.bus` (or `price_bus`, `price:bus`), and in
            column `price` if it is that of all.
        person: The name of the column of people; `None` if it is not known who chose.
        alternative: The name of the column of alternatives, for `none`; in wide tables the attribute that is the
            alternative's name.
        none: The alternative that stands for "none of these", which has no attributes; `None` if there is none.
        alternatives: The names of all alternatives of a wide table, without `none`. Those whose attributes are all
            empty in a row were not available there.

    Raises:
        InputDataError: If a column is missing, a cell is empty or of a wrong type, numbers and names are mixed, or a
            situation has no chosen alternative or several; column and rows are named.

    Warns:
        InputDataWarning: If situations have a single alternative.
    """
    check_attributes(attributes)
    if alternatives is not None:
        table = _of_wide(frame, chosen, attributes, person, alternative, none, alternatives)
    else:
        table = _of_long(frame, situation, chosen, attributes, person, alternative, none)
    options, refused, by, situations = _chosen_first(table, chosen)
    used = [i for i in range(len(table.rows)) if not table.is_none[i]]  # also of situations to come
    cells = [[values[i] for i in used] for values in table.cells]
    X, index, levels = read_points(frame, attributes, cells, [table.rows[i] for i in used])
    point = dict(zip(used, index.tolist(), strict=True))
    points: Any = [[point[i] for i in row] for row in options]
    judge, known = numbered_if_any(by, person)
    observation: Observation
    if none is None:
        observation = Choice(points, judge=judge)
    else:
        observation = ChoiceOrNone(points, torch.tensor(refused, dtype=torch.bool), judge=judge)
    told = {table.rows[i] for entries in situations for i in entries}
    unused = tuple(sorted(set(table.rows) - told))
    return Answers(X, (observation,), tuple(attributes), levels, known, none, unused=unused)


def _of_long(
    frame: Any,
    situation: str | None,
    chosen: str,
    attributes: Sequence[str],
    person: str | None,
    alternative: str | None,
    none: Hashable | None,
) -> _Long:
    """A frame with a row for each alternative."""
    if situation is None:
        raise InputDataError("situation must be the name of a column, or give alternatives for a wide table.")
    if none is not None and alternative is None:
        raise InputDataError("none is an alternative; give the name of the column of alternatives.")
    may_be_empty = {chosen, alternative} - {situation, person}
    names = [situation, chosen, person, alternative]
    situations, told, people, options = columns_of_one_length(frame, names, may_be_empty)
    rows = list(range(len(told)))
    named = [i for i in rows if told[i] is not None and as_number_cell(told[i]) is None]
    if named:
        raise InputDataError(
            f"Column {chosen!r} must hold 0 or 1; got {told[named[0]]!r} in row {named[0]}. For a table with "
            "a row for each situation give alternatives=, the list of their names."
        )
    is_none = [none is not None and value == none for value in options]
    if none is not None and not any(is_none):
        empty = [i for i in rows if options[i] is None]
        if empty:
            raise InputDataError(
                f"Column {alternative!r} is empty in rows {empty[:5]} and nowhere {none!r}. pandas.read_csv takes the "
                "word None for an empty cell: give it keep_default_na=False and na_values=[''], or use another name."
            )
    of_attributes = columns_of_one_length(frame, [chosen, *attributes], [chosen, *attributes])[1:]
    return _Long(rows_of_situations(people, situations), told, is_none, of_attributes, rows)


def _of_wide(
    frame: Any,
    chosen: str,
    attributes: Sequence[str],
    person: str | None,
    alternative: str | None,
    none: Hashable | None,
    alternatives: Sequence[Hashable],
) -> _Long:
    """A frame with a row for each situation."""
    offered = distinct_names(alternatives, "alternatives")
    if none in offered:
        raise InputDataError(f"alternatives must not name {none!r}, which is none of them; leave it out there.")
    said, people = columns_of_one_length(frame, [chosen, person], [chosen])
    every = [*offered, *([none] if none is not None else [])]
    require(said, chosen, f"one of {every[:10]}", {None, *every}.__contains__)
    columns = {}
    for name in attributes:
        for option in offered:
            if name != alternative:
                column = _column_of(frame, name, option)
                columns[name, option] = columns_of_one_length(frame, [chosen, column], [chosen, column])[1]
    table = _Long({}, [], [], [[] for _ in attributes], [])
    for row, best in enumerate(said):
        entries = []
        for option in every:
            told = {name: columns[name, option][row] for name in attributes if (name, option) in columns}
            if option != none and told and all(value is None for value in told.values()) and option != best:
                continue  # not available
            entries.append(len(table.rows))
            table.rows.append(row)
            table.is_none.append(none is not None and option == none)
            table.chosen.append(None if best is None else int(option == best))
            for name, cells in zip(attributes, table.cells, strict=True):
                cells.append(option if name == alternative else told.get(name))
        table.event[people[row], row] = entries  # type: ignore[index]
    return table


def _column_of(frame: Any, attribute: str, option: Hashable) -> str:
    """The column of an alternative's attribute in a wide table, or of all alternatives'."""
    candidates = [f"{attribute}{separator}{option}" for separator in SEPARATORS]
    found = next((name for name in [*candidates, attribute] if name in frame), None)
    if found is None:
        raise InputDataError(
            f"There is no column {candidates[0]!r} or {attribute!r}; there are {[str(name) for name in frame]}."
        )
    return found


def _chosen_first(table: _Long, name: str) -> tuple[list[list[int]], list[bool], list[Any], list[list[int]]]:
    """The options of each situation, the chosen one first, without "none"; whether none was chosen; who chose; and
    all entries of each.
    """
    options, refused, people, situations = [], [], [], []
    single = False
    for (person, _), entries in table.event.items():
        cells = [table.chosen[i] for i in entries]
        rows = [table.rows[i] for i in entries]
        if all(value is None for value in cells):
            continue
        if None in cells:
            empty = rows[cells.index(None)]
            raise InputDataError(f"Column {name!r} is empty in row {empty}, not in all rows of its situation; fill it.")
        is_chosen = flags(cells, name, rows)
        if sum(is_chosen) != 1:
            raise InputDataError(
                f"A situation must have one chosen alternative; that of rows {rows[:10]} has {sum(is_chosen)} in "
                f"column {name!r}. Is a person or a situation mistyped?"
            )
        best = entries[is_chosen.index(True)]
        real = [i for i in entries if not table.is_none[i]]
        if not real or len(entries) < 2:
            single = True
            continue
        refused.append(table.is_none[best])
        options.append(real if table.is_none[best] else [best, *(i for i in real if i != best)])
        people.append(person)
        situations.append(entries)
    if single:
        warnings.warn(
            "Situations of a single alternative say nothing and are left out; `unused` of the answers has their rows.",
            InputDataWarning,
            stacklevel=3,
        )
    return options, refused, people, situations
