"""Columns of a data frame, or of a mapping of columns, as lists of values; errors name the rows.

pandas is not imported unless a table is returned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import check_names


def column(frame: Any, name: str, may_be_empty: bool) -> list[Any]:
    """A column as a list, with `None` for empty cells if these are allowed; raises `InputDataError`."""
    try:
        cells = frame[name]
    except KeyError:
        raise InputDataError(f"There is no column {name!r}; there are {[str(known) for known in frame]}.") from None
    except (TypeError, IndexError):
        raise InputDataError(
            f"frame must be a data frame or a dictionary of columns; got {type(frame).__name__}."
        ) from None
    if isinstance(cells, str) or not isinstance(cells, Iterable):
        raise InputDataError(f"Column {name!r} must be a list with an entry for each row; got {cells!r}.")
    if getattr(cells, "ndim", 1) != 1:
        raise InputDataError(f"There are several columns {name!r}; keep one of them.")
    values = cells.tolist() if hasattr(cells, "tolist") else list(cells)
    empty = [i for i, value in enumerate(values) if is_empty(value)]
    if empty and not may_be_empty:
        raise InputDataError(f"Column {name!r} is empty in rows {empty[:5]}; fill these cells or leave the rows out.")
    for i in empty:
        values[i] = None
    require(values, name, "names", lambda value: isinstance(value, Hashable))
    return values


def require(
    values: Sequence[Any], name: str, what: str, is_right: Callable[[Any], bool], rows: Sequence[int] | None = None
) -> None:
    """Raise `InputDataError` for the first cell of a column, or of its `rows`, that is not right."""
    wrong = next((i for i, value in enumerate(values) if not is_right(value)), None)
    if wrong is not None:
        row = wrong if rows is None else rows[wrong]
        raise InputDataError(f"Column {name!r} must hold {what}; got {values[wrong]!r} in row {row}.")


def columns_of_one_length(
    frame: Any, names: Sequence[str | None], may_be_empty: Collection[str | None] = ()
) -> list[list[Any]]:
    """Several columns, of which some may have empty cells, as have those without a name, but for the first; raises
    `InputDataError` if their lengths differ.
    """
    columns: list[list[Any]] = []
    for name in names:
        columns.append([None] * len(columns[0]) if name is None else column(frame, name, name in may_be_empty))
    for name, values in zip(names, columns, strict=True):
        if len(values) != len(columns[0]):
            raise InputDataError(
                f"Columns {names[0]!r} and {name!r} must have one length; got {len(columns[0])} and {len(values)}."
            )
    return columns


def is_empty(value: Any) -> bool:
    """Whether a value is `None`, NaN, or pandas' missing value."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def sorted_names(names: set[Any]) -> list[Any]:
    """Sorted names; by their text if they are of several types, which must differ."""
    try:
        return sorted(names)
    except TypeError:
        ordered = sorted(names, key=str)
        alike = [pair for pair in pairwise(ordered) if str(pair[0]) == str(pair[1])]
        if alike:
            raise InputDataError(
                f"{alike[0][0]!r} and {alike[0][1]!r} have the same text; convert the columns to one type."
            ) from None
        return ordered


def distinct_names(names: Any, what: str) -> list[Any]:
    """A list of names that differ, none of them empty; raises `InputDataError`."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputDataError(f"{what} must be a list of names; got {names!r}.")
    distinct = list(names)
    wrong = [name for name in distinct if not isinstance(name, Hashable) or is_empty(name)]
    if wrong:
        raise InputDataError(f"{what} must hold names, none of them empty; got {wrong[:2]}.")
    if len(set(distinct)) < len(distinct):
        raise InputDataError(f"{what} must name each once; got {distinct[:5]}.")
    return distinct


def flags(values: Sequence[Any], name: str, rows: Sequence[int] | None = None) -> list[bool]:
    """Cells of 0 and 1 as booleans, of all rows or of `rows`; raises `InputDataError` for others."""
    require(values, name, "0 or 1", lambda value: as_number_cell(value) in (0.0, 1.0), rows)
    return [bool(as_number_cell(value)) for value in values]


def numbers(values: Sequence[Any], name: str, rows: Sequence[int] | None = None) -> list[float]:
    """Cells as finite numbers, also those of text or decimals; raises `InputDataError` for others."""
    require(values, name, "finite numbers", lambda value: is_finite(as_number_cell(value)), rows)
    return [float(as_number_cell(value)) for value in values]


def as_number_cell(value: Any) -> Any:
    """A cell as a number where it is one, also as text or a decimal (of a file, or of a data base); `None` if not."""
    if isinstance(value, Real):
        return value
    if not isinstance(value, str | Decimal):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def categories_of_column(frame: Any, name: str) -> list[Any] | None:
    """The categories, in their order, of a column that pandas holds as a `Categorical`; `None` for other columns."""
    accessor = getattr(frame[name], "cat", None) if name in frame else None
    return None if accessor is None else accessor.categories.tolist()


def names_of_levels(frame: Any, name: str, values: Sequence[Any], rows: Sequence[int]) -> tuple[Any, ...] | None:
    """The names that a column's rows hold, in order; `None` if all are numbers.

    A `Categorical` of pandas holds names in the order of its categories. Raises `InputDataError` for names among cells
    that mostly are numbers.
    """
    ordered = categories_of_column(frame, name)
    if ordered is not None:
        held = set(values)
        return tuple(value for value in ordered if value in held)
    odd = [i for i, value in enumerate(values) if as_number_cell(value) is None]
    if not odd:
        return None
    if 2 * len(odd) < len(values) or any(isinstance(value, Real) for value in values):
        raise InputDataError(
            f"Column {name!r} holds numbers beside {values[odd[0]]!r} in rows {[rows[i] for i in odd[:5]]}; correct "
            "these cells, or make the column a pandas Categorical if all of its cells are names."
        )
    return tuple(sorted_names(set(values)))


def codes(values: Sequence[Any], names: Sequence[Any], name: str, rows: Sequence[int] | None = None) -> Tensor:
    """The place of each value in a list of names; raises `InputDataError` for others."""
    place = {entry: i for i, entry in enumerate(names)}
    require(values, name, f"one of {list(names)[:10]}", place.__contains__, rows)
    return torch.tensor([place[value] for value in values], dtype=torch.long)


def numbered_if_any(values: Sequence[Any], name: str | None) -> tuple[Tensor | None, tuple[Any, ...] | None]:
    """As `numbered`; `None` for a column without a name."""
    return (None, None) if name is None else numbered(values, name)


def numbered(values: Sequence[Any], name: str) -> tuple[Tensor, tuple[Any, ...]]:
    """The numbers of names in a column, and these names in the order of their numbers."""
    check_names(values, name)
    names = tuple(sorted_names(set(values)))
    return codes(values, names, name), names


def is_finite(value: Any) -> bool:
    """Whether a value is a number that floating point can hold."""
    return isinstance(value, Real) and bool(abs(value) <= sys.float_info.max)  # type: ignore[operator]


def pandas() -> Any:
    """Import pandas, an optional dependency."""
    try:
        import pandas as module
    except ImportError as error:
        raise ImportError("Tables need pandas: pip install pandas.") from error
    return module
