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
    who = [None] * num_rows if person is None else cells[person]
    event: dict[Any, list[int]] = {}
    for i, key in enumerate(zip(who, cells[situation], strict=True)):
        event.setdefault(key, []).append(i)
    outside = [False] * num_rows
    if none is not None and alternative is not None:
        outside = [value == none for value in cells[alternative]]
    rows, refused, people = _chosen_first(event, cells[chosen], chosen, outside)
    used = [i for i in range(num_rows) if not outside[i]]
    X, index, levels = _read_points(frame, attributes, used, chosen)
    at = dict(zip(used, index.tolist(), strict=True))
    options: Any = [[at[i] for i in row] for row in rows]
    none_of_these = torch.tensor(refused, dtype=torch.bool)
    judge, known = (None, None) if person is None else numbered(people, person)
    observation = Choice(options, judge=judge) if none is None else ChoiceOrNone(options, none_of_these, judge=judge)
    return Answers(X, (observation,), tuple(attributes), levels, known)


def _chosen_first(
    event: Mapping[Any, list[int]], chosen: list[Any], name: str, outside: list[bool]
) -> tuple[list[list[int]], list[bool], list[Any]]:
    """The rows of each situation, the chosen one first, without "none"; whether none was chosen; who chose."""
    rows, refused, people = [], [], []
    for (who, _), of_event in event.items():
        said = [chosen[i] for i in of_event]
        real = [i for i in of_event if not outside[i]]
        if all(value is None for value in said) or not real or len(of_event) < 2:
            continue
        if None in said:
            empty = of_event[said.index(None)]
            raise InputDataError(f"Column {name!r} is empty in row {empty}, not in all rows of its situation; fill it.")
        best = [i for i, flag in zip(of_event, flags(said, name, of_event), strict=True) if flag]
        if len(best) != 1:
            raise InputDataError(
                f"A situation must have one chosen alternative; that of rows {of_event[:10]} has {len(best)}."
            )
        refused.append(outside[best[0]])
        rows.append(real if outside[best[0]] else [best[0], *(i for i in real if i != best[0])])
        people.append(who)
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
    said, *who = columns_of_one_length(frame, [grade] if person is None else [grade, person], [grade])
    used = [i for i, value in enumerate(said) if value is not None]
    given = [said[i] for i in used]
    known_grades = _grades_of(given, used, grade, grades)
    values = codes(given, known_grades, grade, used)
    X, index, levels = _read_points(frame, attributes, used, grade)
    judge, known = (None, None) if person is None else numbered([who[0][i] for i in used], person)
    observation = Ordinal(values, len(known_grades), index, judge=judge)
    return Answers(X, (observation,), tuple(attributes), levels, known)


def _grades_of(
    said: Sequence[Any], rows: Sequence[int], name: str, grades: Sequence[Hashable] | None
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
    require(said, name, what, lambda value: is_number(value) and value % 1 == 0, rows)
    if not said:
        return range(2)
    low, high = int(min(said)), int(max(said))
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
    found = []
    for name, values in zip(attributes, cells, strict=True):
        if name in levels:
            found.append(codes(values, levels[name], name).double())
        else:
            require(values, name, "finite numbers", is_finite, rows)
            found.append(torch.tensor([float(value) for value in values], dtype=torch.float64))
    return torch.stack(found, dim=-1)


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
    who, when, what, said = columns_of_one_length(frame, [person, situation, alternative, chosen], [chosen])
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
