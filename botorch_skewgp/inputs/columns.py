"""Columns of inputs by what names them: the one door for all arguments that name inputs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from botorch.exceptions.errors import InputDataError
from torch import Tensor


def as_column(value: Any, dim: int, name: str, names: Sequence[str] = ()) -> int:
    """The column, from 0, of an input named by its number or name, where -1 is the last of `dim` inputs.

    Args:
        value: A whole number from `-dim` to `dim - 1`, or one of the names.
        dim: The number of inputs.
        name: The argument, for messages.
        names: The names of the inputs, where they have any.

    Raises:
        InputDataError: If there is no such input.
    """
    if isinstance(value, str) and value in names:
        return list(names).index(value)
    try:
        number = dim if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = dim
    if not -dim <= number < dim:
        among = f", {', '.join(names)}" if names else ""
        raise InputDataError(f"{name} is about inputs 0 to {dim - 1}{among}; got {value!r}.")
    return number % dim


def as_columns(values: Any, dim: int, name: str, names: Sequence[str] = ()) -> list[int]:
    """The columns of several different inputs, or of one, in the order given; see `as_column`."""
    if isinstance(values, Tensor) or hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        values = [values]
    columns = [as_column(value, dim, name, names) for value in values]
    repeated = [column for column in columns if columns.count(column) > 1]
    if repeated:
        raise InputDataError(f"{name} names input {repeated[0]} more than once.")
    return columns
