"""What is known of trials, as observations of models."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from botorch_skewgp.hosts.records import Judgement
from botorch_skewgp.observations import Censored, Choice, ChoiceOrNone, Numeric, Observation, Preference, Tie

LARGEST = sys.float_info.max**0.5  # beyond it squares overflow, and an objective counts as a failure


class Observed(NamedTuple):
    """The data about one function: `n x d` distinct points, observations at them, the first row of the data at each
    point, and the point of each row, -1 for rows without data about the function.
    """

    X: Tensor
    observations: list[Observation]
    rows: Tensor
    point: Tensor


def observed(
    X: Tensor,
    values: Tensor,
    kind: Callable[..., Observation] = Numeric,
    variances: Tensor | None = None,
    bounds: Tensor | None = None,
    judgements: Sequence[Judgement] = (),
) -> Observed | None:
    """The data about one function at rows of points, `n x d`: values of a kind and their variances, `n`, NaN where
    there is none, bounds, `2 x n`, infinite where there is none, and judgements of the rows. `None` without data.

    Rows of equal points are one point of a model with several observations, as equal points make its covariance
    singular.
    """
    known = ~values.isnan()
    bounded = torch.zeros_like(known) if bounds is None else bounds.isfinite().any(0)
    rows, point = _points(X, known | bounded | compared(judgements, X))
    observations: list[Observation] = []
    if variances is not None and (measured := known & ~variances.isnan()).any():
        observations.append(Numeric(values[measured], variances[measured], index=point[measured]))
        known = known & ~measured
    if known.any():
        observations.append(kind(values[known], index=point[known]))
    if bounds is not None and bounded.any():
        lower, upper = bounds[:, bounded]
        observations.append(Censored(lower, upper, index=point[bounded]))
    observations += _of_judgements(judgements, point)
    return Observed(X[rows], observations, rows, point) if observations else None


def compared(judgements: Sequence[Judgement], X: Tensor) -> Tensor:
    """Whether each row of points, `n x d`, was compared, `n`."""
    mask = torch.zeros(len(X), dtype=torch.bool, device=X.device)
    mask[sorted({row for entry in judgements for row in entry.items})] = True
    return mask


def _of_judgements(judgements: Sequence[Judgement], point: Tensor) -> list[Observation]:
    observations: list[Observation] = []
    kinds = itertools.product((Preference, Tie, Choice, ChoiceOrNone), (False, True), (False, True))
    for kind, worst, named in kinds:
        told = [
            entry
            for entry in judgements
            if (entry.kind, entry.names_worst, entry.judge is not None) == (kind, worst, named)
            # a point compared with itself tells nothing of the function
            and (kind in (Choice, ChoiceOrNone) or len(point[list(entry.items)].unique()) > 1)
        ]
        if not told:
            continue
        items = pad_sequence([point[list(entry.items)] for entry in told], True, -1)
        judge = torch.tensor([entry.judge for entry in told], device=point.device) if named else None
        none = torch.tensor([not entry.better for entry in told], device=point.device)
        made = ChoiceOrNone(items, none, judge=judge) if kind is ChoiceOrNone else kind(items, judge=judge)
        observations.append(made.reversed() if worst else made)
    return observations


def _points(X: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """The first of the rows to keep at each distinct point, and the point of every row."""
    place: dict[tuple[float, ...], int] = {}
    first, point = list[int](), [-1] * len(X)
    coordinates = X.tolist()
    for row in keep.nonzero().squeeze(-1).tolist():
        point[row] = place.setdefault(tuple(coordinates[row]), len(place))
        if point[row] == len(first):
            first.append(row)
    return torch.tensor(first, dtype=torch.long, device=X.device), torch.tensor(point, device=X.device)


def text_of(X: Tensor, observations: Iterable[Observation], *others: Any) -> str:
    """All values of data, and others, as text, in which NaN equals itself."""
    told = [(type(entry), field.name, getattr(entry, field.name)) for entry in observations for field in fields(entry)]
    return repr([part.tolist() if isinstance(part, Tensor) else part for part in (X, *sum(told, ()), *others)])


def as_rows(judgements: Iterable[Judgement], rows: Mapping[Any, int]) -> tuple[Judgement, ...]:
    """Judgements of rows, as far as their trials or arms have one; judges are numbered in the order of their names."""
    judgements = list(judgements)
    names = sorted({entry.judge for entry in judgements} - {None}, key=str)
    number = {None: None} | {name: i for i, name in enumerate(names)}
    found = [entry.among(rows) for entry in judgements]
    return tuple(replace(entry, judge=number[entry.judge]) for entry in found if entry is not None)
