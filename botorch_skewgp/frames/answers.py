r"""Answers of people in a data frame in long format, as points and observations of numbered people, and their habits.

.. [Guadagni1983logit] Guadagni, Little. A logit model of brand choice calibrated on scanner data. 1983.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import MAX_CATEGORIES, as_probability
from botorch_skewgp.frames.columns import (
    codes,
    columns_of_one_length,
    flags,
    is_finite,
    is_number,
    numbered,
    require,
    sorted_names,
)
from botorch_skewgp.observations import Choice, ChoiceOrNone, Observation, Ordinal

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Answers:
    r"""Answers of named people about points, as `fit_panel` takes them.

    Args:
        train_X: The different points, `n x d` in double precision: a column for each attribute. Attributes that are
            names are the numbers of these, in the order of `levels`.
        observations: The answers; their indices are rows of `train_X`.
        attributes: The names of the columns of `train_X`.
        levels: The names of the values of each attribute that is no number.
        people: The names of the people, in the order of their numbers; `None` without people.
    """

    train_X: Tensor
    observations: tuple[Observation, ...]
    attributes: tuple[str, ...]
    levels: Mapping[str, tuple[Any, ...]]
    people: tuple[Any, ...] | None = None

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


def read_choices(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    situation: str,
    chosen: str,
    attributes: Sequence[str],
    person: str | None = None,
    alternative: str | None = None,
    none: Hashable | None = None,
) -> Answers:
    r"""Read choices from a frame in long format: a row for each alternative of each situation.

    Situations may have different numbers of alternatives. Those in which nothing is said of what was chosen (all cells
    empty) are left out, as are situations with a single alternative.

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

    Args:
        frame: A data frame, or a dictionary of columns.
        situation: The name of the column of situations; numbers may repeat between people.
        chosen: The name of the column of 1 for the alternative chosen, and 0.
        attributes: The names of the columns that become inputs: numbers, or names such as brands.
        person: The name of the column of people; `None` if it is not known who chose.
        alternative: The name of the column of alternatives, for `none`.
        none: The alternative that stands for "none of these", which has no attributes; `None` if there is none.

    Raises:
        InputDataError: If a column is missing, a cell is empty or of a wrong type, or a situation has no chosen
            alternative or several; the rows are named.
    """
    if none is not None and alternative is None:
        raise InputDataError("none is an alternative; give the name of the column of alternatives.")
    names = [name for name in (situation, chosen, person, alternative) if name is not None]
    may_be_empty = {chosen, alternative} - {situation, person, None}
    cells = dict(zip(names, columns_of_one_length(frame, names, may_be_empty), strict=True))
    num_rows = len(cells[chosen])
    people = [None] * num_rows if person is None else cells[person]
    event = _rows_of_situations(people, cells[situation])
    outside = [False] * num_rows
    if none is not None and alternative is not None:
        outside = [value == none for value in cells[alternative]]
    rows, refused, by = _chosen_first(event, cells[chosen], chosen, outside)
    used = [i for i in range(num_rows) if not outside[i]]
    X, index, levels = _read_points(frame, attributes, used, chosen)
    point = dict(zip(used, index.tolist(), strict=True))
    options: Any = [[point[i] for i in row] for row in rows]
    judge, known = (None, None) if person is None else numbered(by, person)
    observation: Observation
    if none is None:
        observation = Choice(options, judge=judge)
    else:
        observation = ChoiceOrNone(options, torch.tensor(refused, dtype=torch.bool), judge=judge)
    return Answers(X, (observation,), tuple(attributes), levels, known)


def _chosen_first(
    event: Mapping[Any, list[int]], chosen: list[Any], name: str, outside: list[bool]
) -> tuple[list[list[int]], list[bool], list[Any]]:
    """The rows of each situation, the chosen one first, without "none"; whether none was chosen; who chose."""
    rows, refused, people = [], [], []
    for (person, _), of_event in event.items():
        cells = [chosen[i] for i in of_event]
        real = [i for i in of_event if not outside[i]]
        if all(value is None for value in cells) or not real or len(of_event) < 2:
            continue
        if None in cells:
            empty = of_event[cells.index(None)]
            raise InputDataError(f"Column {name!r} is empty in row {empty}, not in all rows of its situation; fill it.")
        is_chosen = flags(cells, name, of_event)
        if sum(is_chosen) != 1:
            raise InputDataError(
                f"A situation must have one chosen alternative; that of rows {of_event[:10]} has {sum(is_chosen)}."
            )
        best = of_event[is_chosen.index(True)]
        refused.append(outside[best])
        rows.append(real if outside[best] else [best, *(i for i in real if i != best)])
        people.append(person)
    return rows, refused, people


def read_grades(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    grade: str,
    attributes: Sequence[str],
    person: str | None = None,
    grades: Sequence[Hashable] | None = None,
) -> Answers:
    r"""Read grades, or answers to a questionnaire, from a frame with a row for each.

    `grade` is the name of the column of grades, and rows without one are left out; `grades` are all grades from the
    lowest up, by default the whole numbers between those in the column. Other arguments are as for `read_choices`.

    Example:
        >>> frame = {"id": ["ann", "ann", "bob"], "item": ["q1", "q2", "q1"], "answer": ["no", "yes", "perhaps"]}
        >>> answers = read_grades(frame, "answer", ["item"], "id", grades=["no", "perhaps", "yes"])
        >>> model = fit_panel(answers.train_X, answers.observations, answers.categories)

    Raises:
        InputDataError: If a column is missing, a cell is empty or of a wrong type, or a grade is none of `grades`; the
            rows are named.
    """
    names = [grade] if person is None else [grade, person]
    cells, *people = columns_of_one_length(frame, names, [grade])
    used = [i for i, value in enumerate(cells) if value is not None]
    given = [cells[i] for i in used]
    known_grades = _grades_of(given, used, grade, grades)
    values = codes(given, known_grades, grade, used)
    X, index, levels = _read_points(frame, attributes, used, grade)
    judge, known = (None, None) if person is None else numbered([people[0][i] for i in used], person)
    observation = Ordinal(values, len(known_grades), index, judge=judge)
    return Answers(X, (observation,), tuple(attributes), levels, known)


def _grades_of(
    cells: Sequence[Any], rows: Sequence[int], name: str, grades: Sequence[Hashable] | None
) -> Sequence[Hashable]:
    """All grades from the lowest to the highest, of a column's rows if none are given; raises `InputDataError`."""
    if grades is not None:
        given = [] if isinstance(grades, str) or not isinstance(grades, Iterable) else list(grades)
        if len(given) < 2 or not all(isinstance(level, Hashable) for level in given) or len(set(given)) < len(given):
            raise InputDataError(
                f"grades must be a list of different grades, two or more, from the lowest up; got {grades!r}."
            )
        return given
    what = "whole numbers, or give grades, a list from the lowest to the highest"
    require(cells, name, what, lambda value: is_number(value) and value % 1 == 0, rows)
    if not cells:
        return range(2)
    low, high = int(min(cells)), int(max(cells))
    if not 1 <= high - low < MAX_CATEGORIES:
        raise InputDataError(
            f"Column {name!r} has grades from {low} to {high}; give grades, a list of 2 to {MAX_CATEGORIES} from the "
            "lowest to the highest."
        )
    return range(low, high + 1)


def _read_points(
    frame: Any, attributes: Sequence[str], used: Sequence[int], answer: str
) -> tuple[Tensor, Tensor, dict[str, tuple]]:
    """The different points of some rows, that of each row, and the names of values that are no numbers."""
    if isinstance(attributes, str) or not attributes:
        raise InputDataError(f"attributes must be a list of names of columns; got {attributes!r}.")
    columns = [answer, *attributes]
    cells = [[values[i] for i in used] for values in columns_of_one_length(frame, columns, columns)[1:]]
    levels = {}
    for name, values in zip(attributes, cells, strict=True):
        empty = [row for row, value in zip(used, values, strict=True) if value is None]
        if empty:
            raise InputDataError(f"Column {name!r} is empty in rows {empty[:5]}; fill these cells.")
        if not all(is_number(value) for value in values):
            levels[name] = tuple(sorted_names(set(values)))
    return *_points(cells, attributes, levels, used).unique(dim=0, return_inverse=True), levels


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
            columns.append(codes(values, levels[name], name).double())
        else:
            require(values, name, "finite numbers", is_finite, rows)
            columns.append(torch.tensor([float(value) for value in values], dtype=torch.float64))
    return torch.stack(columns, dim=-1)


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
    for (name, _), rows in _rows_of_situations(people, situations).items():
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


def _rows_of_situations(people: Sequence[Any], situations: Sequence[Any]) -> dict[tuple[Any, Any], list[int]]:
    """The rows of each situation of each person, in the order of time."""
    rows: dict[tuple[Any, Any], list[int]] = {}
    for row, key in enumerate(zip(people, situations, strict=True)):
        rows.setdefault(key, []).append(row)
    return rows
