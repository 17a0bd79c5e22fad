"""An experiment's data as tensors, and the observations of models."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from botorch_skewgp.hosts.records import Judgement
from botorch_skewgp.observations import (
    Binary,
    Censored,
    Choice,
    ChoiceOrNone,
    Numeric,
    Observation,
    Preference,
    Tie,
    Validity,
)

LARGEST = sys.float_info.max**0.5  # beyond it squares overflow, and an objective counts as a failure


class Observed(NamedTuple):
    """The data about one function: `n x d` distinct points, observations at them, the first row of the data at each
    point, and the point of each row, -1 for rows without data about the function.
    """

    X: Tensor
    observations: list[Observation]
    rows: Tensor
    point: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class ExperimentData:
    """The data of an experiment: a row for each trial, or each arm of a trial.

    Rows of equal points are one point of a model with several observations, as equal points make its covariance
    singular. Numbers are `n x m`, NaN where there is none, and bounds `2 x n x m`, infinite where there is none.
    """

    X: Tensor
    numbers: Tensor
    variances: Tensor | None = None
    bounds: Tensor
    constraints: Tensor
    valid: Tensor
    pending: Tensor
    judgements: tuple[Judgement, ...] = ()
    labels: bool = False

    @property
    def compared(self) -> Tensor:
        """Whether each row was compared, `n`."""
        mask = torch.zeros_like(self.pending)
        mask[sorted({row for entry in self.judgements for row in entry.items})] = True
        return mask

    @property
    def censored(self) -> Tensor:
        """Whether each number has bounds, `n x m`."""
        return self.bounds.isfinite().any(0)

    @property
    def known(self) -> Tensor:
        """Whether each row has data about every objective, `n`."""
        return self.compared | (~self.numbers.isnan() | self.censored).all(-1)

    @property
    def feasible(self) -> Tensor:
        """Whether each trial neither failed nor violates a constraint, `n`."""
        return (self.valid != 0) & ~(self.constraints > 0).any(-1)

    @property
    def num_known(self) -> int:
        """The number of trials that are not running, or were judged."""
        return int((~self.pending | self.compared).sum())

    def observed(self, objective: int = 0) -> Observed | None:
        """The data about an objective: numbers or labels, bounds, and judgements (of a single one); `None` without."""
        numbers = self.numbers[:, objective]
        bounded = self.censored[:, objective]
        keep = ~numbers.isnan() | bounded | self.compared
        rows, point = self._points(keep)
        observations = self._of_numbers(objective, point)
        if bounded.any():
            lower, upper = self.bounds[:, bounded, objective]
            observations.append(Censored(lower, upper, index=point[bounded]))
        observations += self._of_judgements(point)
        return Observed(self.X[rows], observations, rows, point) if observations else None

    def observed_validity(self) -> Observed | None:
        """The validity of trials; `None` without such data."""
        known = ~self.valid.isnan()
        rows, point = self._points(known)
        observations: list[Observation] = [Validity(self.valid[known], index=point[known])]
        return Observed(self.X[rows], observations, rows, point) if len(rows) else None

    def observed_constraint(self, constraint: int) -> Observed | None:
        """The numbers of a constraint; `None` if there are none."""
        values = self.constraints[:, constraint]
        known = ~values.isnan()
        rows, point = self._points(known)
        return Observed(self.X[rows], [Numeric(values[known], index=point[known])], rows, point) if len(rows) else None

    def _of_numbers(self, objective: int, point: Tensor) -> list[Observation]:
        numbers = self.numbers[:, objective]
        known = ~numbers.isnan()
        if self.labels:
            return [Binary(numbers[known], index=point[known])] if known.any() else []
        variances = numbers * math.nan if self.variances is None else self.variances[:, objective]
        measured, unknown = known & ~variances.isnan(), known & variances.isnan()
        observations: list[Observation] = []
        if measured.any():
            observations.append(Numeric(numbers[measured], variances[measured], index=point[measured]))
        if unknown.any():
            observations.append(Numeric(numbers[unknown], index=point[unknown]))
        return observations

    def _of_judgements(self, point: Tensor) -> list[Observation]:
        observations: list[Observation] = []
        kinds = itertools.product((Preference, Tie, Choice, ChoiceOrNone), (False, True), (False, True))
        for kind, worst, named in kinds:
            told = [
                entry
                for entry in self.judgements
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

    def _points(self, keep: Tensor) -> tuple[Tensor, Tensor]:
        """The first of the rows to keep at each distinct point, and the point of every row."""
        place: dict[tuple[float, ...], int] = {}
        first, point = list[int](), [-1] * len(self.X)
        coordinates = self.X.tolist()
        for row in keep.nonzero().squeeze(-1).tolist():
            point[row] = place.setdefault(tuple(coordinates[row]), len(place))
            if point[row] == len(first):
                first.append(row)
        device = self.X.device
        return torch.tensor(first, dtype=torch.long, device=device), torch.tensor(point, device=device)


def as_rows(judgements: Iterable[Judgement], rows: Mapping[Any, int]) -> tuple[Judgement, ...]:
    """Judgements of the rows of trials or arms, as far as these have one; judges are numbered in the order of their
    names.
    """
    judgements = list(judgements)
    names = sorted({entry.judge for entry in judgements} - {None}, key=str)
    number = {None: None} | {name: i for i, name in enumerate(names)}
    found = [entry.among(rows) for entry in judgements]
    return tuple(replace(entry, judge=number[entry.judge]) for entry in found if entry is not None)
