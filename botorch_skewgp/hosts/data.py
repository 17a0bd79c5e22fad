"""An experiment's data as tensors, and the observations of models."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from botorch_skewgp.hosts.entries import Comparison, Selected
from botorch_skewgp.observations import Binary, Censored, Choice, Numeric, Observation, Preference, Tie, Validity

LARGEST = sys.float_info.max**0.5  # beyond it squares overflow, and an objective counts as a failure
Pairs = tuple[tuple[int, int], ...]


class Observed(NamedTuple):
    """The data about one function.

    Args:
        X: An `n x d` tensor of distinct points.
        observations: Observations at these points.
        rows: The first row of the data at each point.
        point: The point of each row of the data; -1 for rows without data about the function.
    """

    X: Tensor
    observations: list[Observation]
    rows: Tensor
    point: Tensor


class ChoiceOfRow(NamedTuple):
    """Rows, of which the first was called the best or the worst; and the judge, by number, -1 if none is named."""

    rows: tuple[int, ...]
    worst: bool
    judge: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ExperimentData:
    r"""The data of an experiment: a row for each trial, or each arm of a trial.

    Rows of equal points are one point of a model with several observations, as equal points make its covariance
    singular.

    Args:
        X: An `n x d` tensor of points.
        numbers: An `n x m` tensor of the objectives' numbers, or labels 0 and 1; NaN where there is none.
        variances: An `n x m` tensor of the numbers' noise variances, NaN where unknown; `None` if all are unknown.
        lower: An `n x m` tensor: lower bounds of numbers, `-inf` or NaN where unknown. `None` for none.
        upper: The same for upper bounds, `inf` or NaN where unknown.
        constraints: An `n x c` tensor of constraints, at most 0 where they are met, NaN where unknown.
        valid: An `n`-dim tensor: 1 for valid trials, 0 for failed ones, NaN where unknown.
        pending: Whether each trial is running, `n`.
        preferences: Pairs of rows, the better one first.
        ties: Pairs of rows that are equally good.
        preference_judges: The number of the judge of each preference, -1 for none. Empty without judges.
        tie_judges: The same for ties.
        choices: The best, or the worst, of several rows.
        labels: Whether numbers are labels.
    """

    X: Tensor
    numbers: Tensor
    variances: Tensor | None = None
    lower: Tensor | None = None
    upper: Tensor | None = None
    constraints: Tensor
    valid: Tensor
    pending: Tensor
    preferences: Pairs = ()
    ties: Pairs = ()
    preference_judges: tuple[int, ...] = ()
    tie_judges: tuple[int, ...] = ()
    choices: tuple[ChoiceOfRow, ...] = ()
    labels: bool = False

    @property
    def compared(self) -> Tensor:
        """Whether each row was compared, `n`."""
        mask = torch.zeros_like(self.pending)
        judged = (*self.preferences, *self.ties, *(entry.rows for entry in self.choices))
        mask[sorted({row for rows in judged for row in rows})] = True
        return mask

    @property
    def bounds(self) -> Tensor:
        """The lower and the upper bounds of censored numbers, `2 x n x m`."""
        none = torch.full_like(self.numbers, math.inf)
        lower = -none if self.lower is None else self.lower.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
        upper = none if self.upper is None else self.upper.nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf)
        return torch.stack([lower, upper])

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
        """The number of trials that are not running."""
        return int((~self.pending).sum())

    def observed(self, objective: int = 0, with_validity: bool = False) -> Observed | None:
        r"""The data about an objective: numbers or labels, bounds, and comparisons (of a single objective).

        Args:
            objective: The objective's column.
            with_validity: Whether the objective itself determines validity.

        Returns:
            The observations at distinct points; `None` if there are none.
        """
        numbers = self.numbers[:, objective]
        bounded = self.censored[:, objective]
        keep = ~numbers.isnan() | bounded | self.compared
        if with_validity:
            keep = keep | ~self.valid.isnan()
        rows, point = self._points(keep)
        observations = self._of_numbers(objective, point)
        if bounded.any():
            lower, upper = self.bounds[:, bounded, objective]
            observations.append(Censored(lower, upper, index=point[bounded]))
        told = (Preference, self.preferences, self.preference_judges), (Tie, self.ties, self.tie_judges)
        for kind, pairs, judges in told:
            if not pairs:
                continue
            compared = point[torch.tensor(pairs, device=point.device)]
            judge = torch.tensor(judges or [-1] * len(pairs), device=point.device)
            apart = compared[:, 0] != compared[:, 1]  # a point compared with itself tells nothing of the function
            for which in (apart & (judge < 0), apart & (judge >= 0)):
                if which.any():
                    observations.append(kind(compared[which], judge=judge[which] if judge[which][0] >= 0 else None))
        observations += self._of_choices(point)
        if with_validity:
            observations += _validity(self.valid, point)
        return Observed(self.X[rows], observations, rows, point) if observations else None

    def observed_validity(self) -> Observed | None:
        """The validity of trials; `None` without such data."""
        rows, point = self._points(~self.valid.isnan())
        return Observed(self.X[rows], _validity(self.valid, point), rows, point) if len(rows) else None

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

    def _of_choices(self, point: Tensor) -> list[Observation]:
        observations: list[Observation] = []
        for worst, named in itertools.product((False, True), repeat=2):
            told = [entry for entry in self.choices if (entry.worst, entry.judge >= 0) == (worst, named)]
            if told:
                options = pad_sequence([point[list(entry.rows)] for entry in told], True, -1)
                judge = torch.tensor([entry.judge for entry in told], device=point.device) if named else None
                choice = Choice(options, judge=judge)
                observations.append(choice.reversed() if worst else choice)
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


def validity(works: Tensor, failed: Tensor, reported: Tensor | None = None) -> Tensor:
    r"""The validity of trials: 1, 0, or NaN if unknown.

    Args:
        works: Whether each trial has a result.
        failed: Whether each trial failed, with a result or without.
        reported: Reported labels, which override both; NaN where there is none.
    """
    valid = torch.where(failed, 0.0, torch.where(works, 1.0, math.nan)).double()
    return valid if reported is None else torch.where(reported.isnan(), valid, reported)


class Compared(NamedTuple):
    """Preferences, ties and choices between rows, and their judges; see `ExperimentData`."""

    preferences: Pairs
    ties: Pairs
    preference_judges: tuple[int, ...]
    tie_judges: tuple[int, ...]
    choices: tuple[ChoiceOfRow, ...]


def as_rows(comparisons: Iterable[Comparison], rows: Mapping[Any, int], choices: Iterable[Selected] = ()) -> Compared:
    r"""Preferences, ties and choices between rows; entries without a row are left out, and options of choices.

    Judges are numbered in the order of their names.

    Args:
        comparisons: Comparisons of trials or arms.
        rows: The row of each trial or arm.
        choices: Choices of the best or the worst among several.
    """
    comparisons, choices = list(comparisons), list(choices)
    judges_named = {entry.judge for entry in comparisons} | {entry.judge for entry in choices}
    names = sorted(judges_named - {None}, key=str)
    number = {name: i for i, name in enumerate(names)}
    found = [entry for entry in comparisons if entry.winner in rows and entry.loser in rows]
    preferences, ties = ([entry for entry in found if entry.tie == tie] for tie in (False, True))

    def pairs(kind: list[Comparison]) -> Pairs:
        return tuple((rows[entry.winner], rows[entry.loser]) for entry in kind)

    def judge_of(entry: Comparison | Selected) -> int:
        return -1 if entry.judge is None else number[entry.judge]

    def judges(kind: list[Comparison]) -> tuple[int, ...]:
        return tuple(map(judge_of, kind)) if names else ()

    chosen = []
    for entry in choices:
        others = [rows[other] for other in entry.others if other in rows]
        if entry.item in rows and others:
            chosen.append(ChoiceOfRow((rows[entry.item], *others), entry.worst, judge_of(entry)))
    return Compared(pairs(preferences), pairs(ties), judges(preferences), judges(ties), tuple(chosen))


def _validity(valid: Tensor, point: Tensor) -> list[Observation]:
    known = ~valid.isnan()
    return [Validity(valid[known], index=point[known])] if known.any() else []
