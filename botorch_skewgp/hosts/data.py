"""What is known of trials, as observations of models."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
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
    mask[sorted({row for judgement in judgements for row in judgement.items})] = True
    return mask


def _of_judgements(judgements: Sequence[Judgement], point: Tensor) -> list[Observation]:
    """One observation for all judgements of a kind, those of the worst and those with a judge for themselves."""
    groups: dict[tuple[type[Observation], bool, bool], list[Judgement]] = defaultdict(list)
    for judgement in judgements:
        is_of_pair = judgement.kind in (Preference, Tie)
        if is_of_pair and len(point[list(judgement.items)].unique()) == 1:
            continue  # a comparison of a point with itself is independent of the function
        groups[judgement.kind, judgement.names_worst, judgement.judge is not None].append(judgement)
    observations: list[Observation] = []
    kinds = itertools.product((Preference, Tie, Choice, ChoiceOrNone), (False, True), (False, True))
    for kind, names_worst, has_judge in kinds:
        group = groups.get((kind, names_worst, has_judge))
        if group is None:
            continue
        items = pad_sequence([point[list(judgement.items)] for judgement in group], True, -1)
        judge = torch.tensor([judgement.judge for judgement in group], device=point.device) if has_judge else None
        if kind is ChoiceOrNone:
            none = torch.tensor([not judgement.better for judgement in group], device=point.device)
            observation: Observation = ChoiceOrNone(items, none, judge=judge)
        else:
            observation = kind(items, judge=judge)
        observations.append(observation.reversed() if names_worst else observation)
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
    parts: list[Any] = [X]
    for observation in observations:
        for field in fields(observation):
            parts += [type(observation), field.name, getattr(observation, field.name)]
    parts += others
    return repr([part.tolist() if isinstance(part, Tensor) else part for part in parts])


def as_rows(judgements: Iterable[Judgement], rows: Mapping[Any, int]) -> tuple[Judgement, ...]:
    """Judgements of rows, as far as their trials or arms have one; judges are numbered in the order of their names."""
    judgements = list(judgements)
    names = sorted({judgement.judge for judgement in judgements} - {None}, key=str)
    of_rows = []
    for judgement in judgements:
        among_rows = judgement.among(rows)
        if among_rows is not None:
            judge = None if judgement.judge is None else names.index(judgement.judge)
            of_rows.append(replace(among_rows, judge=judge))
    return tuple(of_rows)
