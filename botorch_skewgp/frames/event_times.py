"""Times of events, known up to intervals, in a data frame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.frames.answers import Answers, cells_in, check_attributes, read_points, rows_beside
from botorch_skewgp.frames.columns import columns_of_one_length, numbered_if_any, numbers
from botorch_skewgp.observations import Censored, Numeric, Observation

if TYPE_CHECKING:
    from pandas import DataFrame


def read_event_times(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    earliest: str,
    latest: str,
    attributes: Sequence[str],
    person: str | None = None,
) -> Answers:
    r"""Read times of events, each between two inspections, as natural logarithms: an accelerated failure time model.

    An empty cell of `latest` is an event that had not happened at the time `earliest`; an empty cell, or 0, of
    `earliest` one that happened at any time before `latest`; equal cells an exact time. Rows where both are empty are
    left out.

    Example:
        >>> frame = {"from": [2.0, 5.0, None, 3.0], "to": [3.0, None, 4.0, 3.0], "dose": [0.1, 0.9, 0.5, 0.3]}
        >>> answers = read_event_times(frame, "from", "to", ["dose"])
        >>> model = SkewGP(answers.train_X, answers.observations)

    Args:
        frame: A data frame, or a dictionary of columns.
        earliest: The name of the column of times at which the event had not yet happened.
        latest: The name of the column of times at which it had happened.
        attributes: The names of the columns that become inputs, see `read_choices`.
        person: The name of the column of people; `None` if there are no repeated events of people.

    Raises:
        InputDataError: If a column is missing, a time is negative or no number, or `earliest` is after `latest`; the
            rows are named.
    """
    check_attributes(attributes)
    low, high, people = columns_of_one_length(frame, [earliest, latest, person], [earliest, latest])
    used = [i for i in range(len(low)) if low[i] is not None or high[i] is not None]
    lower = _logarithms([low[i] for i in used], earliest, used, -math.inf)
    upper = _logarithms([high[i] for i in used], latest, used, math.inf)
    late = [used[i] for i in range(len(used)) if lower[i] > upper[i]]
    if late:
        raise InputDataError(f"Column {earliest!r} is after column {latest!r} in rows {late[:5]}.")
    X, index, levels = read_points(frame, attributes, cells_in(frame, attributes, used, earliest), used)
    judge, known = numbered_if_any([people[i] for i in used], person)
    exact = lower == upper
    of_exact, of_others = (None if judge is None else judge[which] for which in (exact, ~exact))
    observations: list[Observation] = []
    if bool(exact.any()):
        observations.append(Numeric(lower[exact], index=index[exact], judge=of_exact))
    if not bool(exact.all()):
        observations.append(Censored(lower[~exact], upper[~exact], index=index[~exact], judge=of_others))
    unused = rows_beside(len(low), used)
    return Answers(X, tuple(observations), tuple(attributes), levels, known, unused=unused)


def _logarithms(cells: Sequence[Any], name: str, rows: Sequence[int], empty: float) -> Tensor:
    """Logarithms of times, those of empty cells as given."""
    told = [i for i, value in enumerate(cells) if value is not None]
    times = numbers([cells[i] for i in told], name, [rows[i] for i in told])
    negative = [rows[i] for i, time in zip(told, times, strict=True) if time < 0]
    if negative:
        raise InputDataError(f"Column {name!r} must hold times that are not negative; see rows {negative[:5]}.")
    logarithms = torch.full((len(cells),), empty, dtype=torch.float64)
    logarithms[told] = torch.tensor(times, dtype=torch.float64).log()
    return logarithms
