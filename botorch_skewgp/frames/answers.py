"""What every reader returns, and the points that attributes in a frame are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.frames.columns import codes, columns_of_one_length, names_of_levels, numbers
from botorch_skewgp.observations import Observation

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Answers:
    r"""What every reader returns: answers of named people about points, as `fit_panel` and `item_model` take them.

    Args:
        train_X: The different points, `n x d` in double precision: a column for each attribute. Attributes that are
            names are the numbers of these, in the order of `levels`.
        observations: The answers; their indices are rows of `train_X`.
        attributes: The names of the columns of `train_X`.
        levels: The names of the values of each attribute that is no number.
        people: The names of the people, in the order of their numbers; `None` without people.
        none: The alternative that stands for "none of these"; `None` if there is none.
        items: The names of items, where rows of `train_X` are items; `None` otherwise.
        circumstances: The `advantages`, `categories` and `times` of votes, in the order of `observations`, as
            `item_model` takes them.
        category_names: The names of the categories of votes, in the order of their numbers; `None` without these.
        unused: The rows of the frame that are in no observation, such as those of situations to come.
    """

    train_X: Tensor
    observations: tuple[Observation, ...]
    attributes: tuple[str, ...]
    levels: Mapping[str, tuple[Any, ...]]
    people: tuple[Any, ...] | None = None
    none: Hashable | None = None
    items: tuple[Any, ...] | None = None
    circumstances: Mapping[str, Tensor] = field(default_factory=dict)
    category_names: tuple[Any, ...] | None = None
    unused: tuple[int, ...] = ()

    @property
    def categories(self) -> list[int]:
        """The columns of `train_X` that are numbers of names."""
        return [i for i, name in enumerate(self.attributes) if name in self.levels]

    def points(self, frame: DataFrame | Mapping[str, Sequence[Any]]) -> Tensor:
        """The rows of another frame with the same attributes as points, `n x d`, for predictions.

        Raises `InputDataError` if an attribute is missing or empty, no number, or an unknown name.
        """
        return _points(columns_of_one_length(frame, self.attributes), self.attributes, self.levels)

    def judge(self, person: Hashable) -> int | str:
        """The number of a person, given by name, for `judge=`; `"new"` for others."""
        return self.people.index(person) if self.people is not None and person in self.people else "new"


def read_points(
    frame: Any, attributes: Sequence[str], cells: Sequence[Sequence[Any]], rows: Sequence[int]
) -> tuple[Tensor, Tensor, dict[str, tuple[Any, ...]]]:
    """The different points of some rows, that of each row, and the names of values that are no numbers.

    Args:
        frame: The frame, which knows the order of categories.
        attributes: The names of columns.
        cells: Their cells in the rows.
        rows: The numbers of the rows, for errors.
    """
    levels = {}
    for name, values in zip(attributes, cells, strict=True):
        empty = [row for row, value in zip(rows, values, strict=True) if value is None]
        if empty:
            raise InputDataError(f"Column {name!r} is empty in rows {empty[:5]}; fill these cells.")
        names = names_of_levels(frame, name, values, rows)
        if names is not None:
            levels[name] = names
    return *_points(cells, attributes, levels, rows).unique(dim=0, return_inverse=True), levels


def check_attributes(attributes: Any) -> None:
    """Raise `InputDataError` unless there is a list of names of columns."""
    if isinstance(attributes, str) or not isinstance(attributes, Sequence) or not attributes:
        raise InputDataError(f"attributes must be a list of names of columns; got {attributes!r}.")


def cells_in(frame: Any, names: Sequence[str], rows: Sequence[int], beside: str) -> list[list[Any]]:
    """Cells of columns in some rows, `None` where empty; columns must be as long as another one."""
    columns = columns_of_one_length(frame, [beside, *names], [beside, *names])[1:]
    return [[values[i] for i in rows] for values in columns]


def rows_beside(num_rows: int, used: Iterable[int]) -> tuple[int, ...]:
    """The rows of a frame that are in no observation."""
    return tuple(sorted(set(range(num_rows)) - set(used)))


def rows_of_situations(people: Sequence[Any], situations: Sequence[Any]) -> dict[tuple[Any, Any], list[int]]:
    """The rows of each situation of each person, in the order of time."""
    rows: dict[tuple[Any, Any], list[int]] = {}
    for row, key in enumerate(zip(people, situations, strict=True)):
        rows.setdefault(key, []).append(row)
    return rows


def _points(
    cells: Sequence[Sequence[Any]],
    attributes: Sequence[str],
    levels: Mapping[str, tuple],
    rows: Sequence[int] | None = None,
) -> Tensor:
    """Columns of cells as points, `n x d`."""
    columns = []
    for name, values in zip(attributes, cells, strict=True):
        if name in levels:
            columns.append(codes(values, levels[name], name, rows).double())
        else:
            columns.append(torch.tensor(numbers(values, name, rows), dtype=torch.float64))
    return torch.stack(columns, dim=-1)
