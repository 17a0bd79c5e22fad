"""Grades, or answers to a questionnaire, in a data frame."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botorch.exceptions.errors import InputDataError

from botorch_skewgp.checks import MAX_CATEGORIES
from botorch_skewgp.frames.answers import Answers, cells_in, check_attributes, read_points, rows_beside
from botorch_skewgp.frames.columns import (
    as_number_cell,
    categories_of_column,
    codes,
    columns_of_one_length,
    numbered_if_any,
)
from botorch_skewgp.observations import Ordinal

if TYPE_CHECKING:
    from pandas import DataFrame


def read_grades(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    grade: str,
    attributes: Sequence[str],
    person: str | None = None,
    grades: Sequence[Hashable] | None = None,
) -> Answers:
    r"""Read grades, or answers to a questionnaire, from a frame with a row for each.

    `grade` is the name of the column of grades, and rows without one are left out; `grades` are all grades from the
    lowest up, by default the categories of an ordered `Categorical` of pandas, or the whole numbers between those in
    the column. Other arguments are as for `read_choices`.

    Example:
        >>> frame = {"id": ["ann", "ann", "bob"], "item": ["q1", "q2", "q1"], "answer": ["no", "yes", "perhaps"]}
        >>> answers = read_grades(frame, "answer", ["item"], "id", grades=["no", "perhaps", "yes"])
        >>> model = fit_panel(answers.train_X, answers.observations, answers.categories)

    Raises:
        InputDataError: If a column is missing, a cell is empty or of a wrong type, or a grade is none of `grades`; the
            rows are named.
    """
    check_attributes(attributes)
    cells, people = columns_of_one_length(frame, [grade, person], [grade])
    used = [i for i, value in enumerate(cells) if value is not None]
    given = [cells[i] for i in used]
    if grades is None and getattr(getattr(frame[grade], "cat", None), "ordered", False):
        grades = categories_of_column(frame, grade)
    if grades is None:
        grades = _whole_numbers(given, used, grade)
        given = [as_number_cell(value) for value in given]
    else:
        grades = _checked(grades)
    values = codes(given, grades, grade, used)
    X, index, levels = read_points(frame, attributes, cells_in(frame, attributes, used, grade), used)
    judge, known = numbered_if_any([people[i] for i in used], person)
    observation = Ordinal(values, len(grades), index, judge=judge)
    return Answers(X, (observation,), tuple(attributes), levels, known, unused=rows_beside(len(cells), used))


def _checked(grades: Any) -> list[Hashable]:
    """Grades given as a list; raises `InputDataError` unless there are two or more that differ."""
    given = [] if isinstance(grades, str) or not isinstance(grades, Iterable) else list(grades)
    if len(given) < 2 or not all(isinstance(level, Hashable) for level in given) or len(set(given)) < len(given):
        raise InputDataError(
            f"grades must be a list of different grades, two or more, from the lowest up; got {grades!r}."
        )
    return given


def _whole_numbers(cells: Sequence[Any], rows: Sequence[int], name: str) -> range:
    """The whole numbers from the lowest to the highest of a column's rows; raises `InputDataError`."""
    values = [as_number_cell(value) for value in cells]
    wrong = next((i for i, value in enumerate(values) if value is None or value % 1 != 0), None)
    if wrong is not None:
        raise InputDataError(
            f"Column {name!r} must hold whole numbers, or give grades, a list from the lowest to the highest; got "
            f"{cells[wrong]!r} in row {rows[wrong]}."
        )
    if not cells:
        return range(2)
    low, high = int(min(values)), int(max(values))
    if not 1 <= high - low < MAX_CATEGORIES:
        raise InputDataError(
            f"Column {name!r} has grades from {low} to {high}; give grades, a list of 2 to {MAX_CATEGORIES} from the "
            "lowest to the highest."
        )
    return range(low, high + 1)
