r"""The columns of a model of several judges.

The utility of judge `j` is a shared part plus the judge's own, so that a column is a point and a judge. The last input
of a point is the judge's code: 0 for the shared part alone, `j + 1` for judge `j`, and -1 for a new judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.observations import Observation
from botorch_skewgp.rows import Rows, first_of_equal

SHARED, NEW = 0, -1


@dataclass(frozen=True, eq=False)
class Panel:
    """The columns of a model of several judges: the pairs of a judge and a point the judge was asked about."""

    keys: Tensor  # a sorted integer tensor, `point * (num_judges + 1) + code` for every column
    num_judges: int  # the number of judges, the largest one plus one

    @classmethod
    def of(cls, observations: Sequence[Observation], device: torch.device) -> Self | None:
        """The columns of observations; `None` if they name fewer than two judges."""
        known = judges_of(observations)
        if len(known) < 2:
            return None
        size, keys = max(known) + 2, [torch.zeros(1, dtype=torch.long, device=device)]

        def collect(index: Tensor, code: Tensor) -> Tensor:
            keys.append((index * size + code).flatten().to(device))
            return index

        for entry in observations:
            entry.at_columns(collect)
        return cls(torch.cat(keys).unique(), size - 1)

    @property
    def codes(self) -> Tensor:
        """The code of the judge of each column."""
        return self.keys % (self.num_judges + 1)

    def resolve(self, observations: Sequence[Observation]) -> tuple[Observation, ...]:
        """Observations whose indices are columns instead of points."""
        return tuple(entry.at_columns(self._place) for entry in observations)

    def _place(self, index: Tensor, code: Tensor) -> Tensor:
        keys = self.keys.to(index.device)
        return torch.searchsorted(keys, (index * (self.num_judges + 1) + code).contiguous())

    def with_judges(self, rows: Rows) -> Rows:
        """Rows over columns with their judges: columns of one judge have all the weight of a row."""
        weighed = rows.coefficient != 0
        code = self.codes.to(rows.index.device)[rows.index]
        return replace(rows, judge=torch.where(weighed, code, SHARED).amax(-1))

    def shared_slopes(self, columns: Tensor, dims: Tensor) -> tuple[Tensor, Tensor]:
        """Slopes at columns, in inputs, each point and input once, whoever the judge is."""
        point = self.keys.to(columns.device)[columns] // (self.num_judges + 1)
        first = first_of_equal(torch.stack([point, dims], dim=-1)).unique()
        return columns[first], dims[first]

    def points(self, X: Tensor) -> Tensor:
        """The points of the columns, with the code of the judge as the last input. `X` is `n x d`."""
        keys = self.keys.to(X.device)
        return torch.cat([X[keys // (self.num_judges + 1)], self.codes.to(X).unsqueeze(-1)], dim=-1)


def code_of(judge: int | str | None, known: frozenset[int] | set[int]) -> int:
    """The code of a judge, the last input of points. Raises `InputDataError`."""
    if judge is None:
        return SHARED
    if isinstance(judge, str) and judge == "new":
        return NEW
    number = as_judge_number(judge)
    if number not in known:
        named = sorted(known)
        some = f"{named[:10]}{' and others' if len(named) > 10 else ''}" if named else "none did"
        hint = " A judge's number is the position of the name in the list that number_judges returned." * isinstance(
            judge, str
        )
        raise InputDataError(
            f"judge must be the number of a judge who gave answers ({some}) or 'new' for a new one; got {judge!r}."
            f"{hint}"
        )
    return number + 1


def judge_of(code: int) -> int | str | None:
    """The judge of a code: a number, `"new"`, or `None` for the shared part."""
    return code - 1 if code > SHARED else "new" if code == NEW else None


def as_judge_number(judge: Any) -> int:
    """An integer of any type as an `int`; -1 for anything else."""
    try:
        return -1 if isinstance(judge, bool) else index(judge)
    except TypeError:
        return -1


def judges_of(observations: Sequence[Observation]) -> set[int]:
    """The numbers of all judges who gave answers."""
    named = [entry.judge.unique().tolist() for entry in observations if entry.judge is not None]
    return {number for numbers in named for number in numbers}


def with_code(X: Tensor, code: int) -> Tensor:
    """Points with the code of a judge as the last column."""
    return torch.cat([X, X.new_full((*X.shape[:-1], 1), float(code))], dim=-1)
