"""Optuna's parameters as coordinates: numbers between 0 and 1, categories by their place.

A parameter that some trials lack, since the objective branches, is inactive there: its coordinate is a neutral one, and
the category that decides about the branch tells the trials apart. Where no parameter decides, which of such parameters
a trial has is a category of its own, which the next trial is expected to share with the last one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from botorch.optim.optimize_mixed import MAX_DISCRETE_VALUES
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_skewgp.acquisition.mixed_search import Factor, MixedDomain
from botorch_skewgp.optuna import internals

TRIAL = "skewgp:trial"  # the trial's number as a parameter
PATTERN = "skewgp:pattern"  # which of the parameters a trial has that no other one decides about, as a parameter
MAX_VALUES = 1000  # of a stepped parameter, beyond which its coordinate is optimised as a free one and rounded
NEUTRAL = 0.5  # the coordinate of an inactive number


class Condition(NamedTuple):
    """When a column is inactive: where another one is, or has one of some coordinates."""

    column: int
    parent: int
    without: list[float]


@dataclass(frozen=True, eq=False)
class BranchedDomain(MixedDomain):
    """A domain in whose points inactive columns have a neutral value."""

    conditions: tuple[Condition, ...] = ()  # those of parents first
    neutral: Tensor | None = None  # d

    def inactive(self, X: Tensor) -> Tensor:
        """Which columns of points, `... x d`, are inactive, `... x d`."""
        inactive = torch.zeros_like(X, dtype=torch.bool)
        for column, parent, without in self.conditions:
            decides = (X[..., parent, None] - X.new_tensor(without)).abs().lt(1e-9).any(-1)
            inactive[..., column] = decides | inactive[..., parent]
        return inactive

    def neutralized(self, X: Tensor) -> Tensor:
        """Points, `... x d`, whose inactive columns have their neutral value."""
        return X if self.neutral is None else torch.where(self.inactive(X), self.neutral, X)

    def rounded(self, X: Tensor) -> Tensor:
        """Points, `... x d`, at the nearest of their values."""
        return self.neutralized(super().rounded(X))

    def all_points(self) -> Tensor:
        """All different points of a domain without free columns."""
        X = super().all_points()
        return X if self.neutral is None else self.neutralized(X).unique(dim=0)

    def beside(self, point: Tensor) -> Tensor:
        """Points that differ from one in a single factor and what depends on it, `n x d`."""
        X = self.neutralized(super().beside(point))
        return X[(point != X).any(-1)]


class SearchSpace:
    r"""The parameters of a study that a model sees, one coordinate each, as in Optuna's `GPSampler`: numbers or their
    logarithms on the unit interval, the values of a stepped one at the centres of cells of a step each, before the
    logarithm. Categories are numbered; the distance between any two is the same, which is up to the kernel.

    Args:
        distributions: The distributions of the parameters.
        parents: The parameter that decides whether one is inactive, and its internal values where it is.
        patterns: The parameters that are there of those that no other one decides about, for each pattern of trials;
            the last one is that of the next trial.
    """

    def __init__(
        self,
        distributions: Mapping[str, BaseDistribution],
        parents: Mapping[str, tuple[str, set[float]]] = {},
        patterns: Sequence[frozenset[str]] = (),
    ) -> None:
        self.distributions, self._patterns = dict(distributions), list(patterns)
        if patterns:
            self.distributions[PATTERN] = CategoricalDistribution(range(len(patterns)))
        self.dim, self._column = len(self.distributions), {name: i for i, name in enumerate(self.distributions)}
        self.categorical: list[int] = []
        ends: list[tuple[float, float]] = []
        factors: list[Factor] = []
        for i, (name, distribution) in enumerate(self.distributions.items()):
            is_categorical = isinstance(distribution, CategoricalDistribution)
            if is_categorical:
                self.categorical.append(i)
            values = _listed_values(distribution)[-1:] if name == PATTERN else _listed_values(distribution)
            if values:
                column = torch.tensor(values, dtype=torch.double).unsqueeze(-1)
                factors.append(Factor([i], column, is_categorical))
                ends.append((values[0], values[-1]))
            else:
                ends.append(_ends(distribution))
        bounds = torch.tensor(ends, dtype=torch.double).reshape(-1, 2).mT
        neutral = torch.full_like(bounds[0], NEUTRAL)
        neutral[self.categorical] = 0.0
        conditions = []
        for name, (parent, without) in parents.items():
            coordinates = [_coordinate(self.distributions[parent], value) for value in sorted(without)]
            conditions.append(Condition(self._column[name], self._column[parent], coordinates))
        for name in sorted(frozenset().union(*patterns)):
            lacking = [float(k) for k, pattern in enumerate(patterns) if name not in pattern]
            conditions.append(Condition(self._column[name], self._column[PATTERN], lacking))
        conditions.sort(key=lambda entry: entry.parent != self._column.get(PATTERN))
        self.domain = BranchedDomain(
            bounds, tuple(factors), conditions=tuple(conditions), neutral=neutral if conditions else None
        )

    def params_of(self, trial: FrozenTrial, others: Mapping[str, Any] = {}) -> dict[str, Any] | None:
        """A trial's parameters in the space, of which inactive ones may be missing; `None` if an active one is, or a
        value has no coordinate. Others are those that the objective has not asked for yet.
        """
        params = {**others, **trial.params, TRIAL: trial.number}
        if self._patterns:
            names = frozenset().union(*self._patterns)
            pattern = self._patterns[-1] if others else names & trial.params.keys()
            if pattern not in self._patterns:
                return None
            params[PATTERN] = self._patterns.index(pattern)
        params = {name: params[name] for name in self.distributions if name in params}
        try:
            (point,) = self.points([params])
        except ValueError:  # no such category, no logarithm
            return None
        missing = torch.tensor([name not in params for name in self.distributions])
        return None if bool((missing & ~self.domain.inactive(point)).any()) else params

    def points(self, params: Sequence[Mapping[str, Any]]) -> Tensor:
        """The coordinates of values of the parameters, `n x dim`; neutral ones of inactive or missing parameters."""
        rows = []
        for values in params:
            row = [0.0 if i in self.categorical else NEUTRAL for i in range(self.dim)]
            for name, value in values.items():
                entry = self.distributions[name]
                row[self._column[name]] = _coordinate(entry, entry.to_internal_repr(value))
            rows.append(row)
        return self.domain.neutralized(torch.tensor(rows, dtype=torch.double).reshape(len(rows), self.dim))

    def domain_with(self, fixed: Mapping[str, Any]) -> MixedDomain:
        """The part of the domain in which parameters have given values; others than those of the space are left out."""
        known = {name: value for name, value in fixed.items() if takes(self.distributions.get(name), value)}
        (point,) = self.points([known])
        return self.domain.with_fixed({self._column[name]: float(point[self._column[name]]) for name in known})

    def params(self, point: Tensor, active: bool = False) -> dict[str, Any]:
        """The values of the parameters, or of the active ones, at a point, those with steps at the nearest one."""
        params, inactive = {}, self.domain.inactive(point).tolist()
        for i, ((name, entry), coordinate) in enumerate(zip(self.distributions.items(), point.tolist(), strict=True)):
            if name != PATTERN and not (active and inactive[i]):
                params[name] = entry.to_external_repr(_value(entry, coordinate))
        return params


def modelled_parameters(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters with more than one value that a completed trial has, with the range of the last two trials.

    As long as none was completed, those of failed and pruned trials, and before these, of running ones, which may have
    been compared.
    """
    found: dict[str, list[BaseDistribution]] = {}
    for trial in _modelled_trials(trials):
        for name, entry in trial.distributions.items():
            found.setdefault(name, []).append(entry)
    todays = {name: _range_of(*found[name][-2:]) for name in sorted(found)}
    return {name: entry for name, entry in todays.items() if not entry.single()}


def search_space_of(trials: Sequence[FrozenTrial], names: Iterable[str] | None = None) -> SearchSpace:
    """The search space of a study's trials, of some of the modelled parameters or all."""
    modelled, known = _modelled_trials(trials), modelled_parameters(trials)
    known = {name: entry for name, entry in known.items() if names is None or name in names}
    having = {name: {i for i, trial in enumerate(modelled) if name in trial.params} for name in known}
    deciding = [
        name for name, entry in known.items() if len(_listed_values(entry)) in range(2, MAX_DISCRETE_VALUES + 1)
    ]
    deciding.sort(key=lambda name: (-len(having[name]), len(_listed_values(known[name]))))
    parents: dict[str, tuple[str, set[float]]] = {}
    undecided: set[str] = set()
    for name in sorted(known, key=lambda name: -len(having[name])):  # parents first
        if len(having[name]) == len(modelled):
            continue
        for parent in deciding:
            if having[name] < having[parent]:
                values = [
                    _internal_values(modelled, parent, rows) for rows in (having[name], having[parent] - having[name])
                ]
                if values[0].isdisjoint(values[1]):
                    parents[name] = parent, values[1]
                    break
        else:
            undecided.add(name)
    patterns = dict.fromkeys(frozenset(undecided & trial.params.keys()) for trial in reversed(modelled))
    return SearchSpace(known, parents, [*reversed(patterns)] if undecided else [])


def _internal_values(trials: Sequence[FrozenTrial], name: str, rows: Iterable[int]) -> set[float]:
    """The values of a parameter in some trials."""
    return {trials[i].distributions[name].to_internal_repr(trials[i].params[name]) for i in rows}


def _range_of(first: Any, last: Any = None) -> BaseDistribution:
    """The distribution of the last trials, or of both ranges if they differ, as where one depends on other values."""
    if last is None or first == last:
        return first
    if type(first) is not type(last) or not hasattr(last, "low") or (first.log, first.step) != (last.log, last.step):
        return last
    low, high = min(first.low, last.low), max(first.high, last.high)
    return type(last)(low, high, log=last.log, step=last.step)


def _modelled_trials(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The completed trials; before there is one, the failed and pruned ones, or the running ones, with parameters."""
    completed = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if completed:
        return completed
    with_parameters = [trial for trial in trials if trial.distributions]
    ended = [trial for trial in with_parameters if trial.state in (TrialState.FAIL, TrialState.PRUNED)]
    return ended or [trial for trial in with_parameters if trial.state == TrialState.RUNNING]


def _ends(distribution: Any) -> tuple[float, float]:
    """The coordinates of the bounds of a number."""
    return _coordinate(distribution, distribution.low), _coordinate(distribution, distribution.high)


def _cell(distribution: Any) -> tuple[float, float]:
    """The ends of the interval whose points are the coordinates 0 and 1, a half step beyond the bounds."""
    half = 0.5 * (distribution.step or 0.0)
    low, high = distribution.low - half, distribution.high + half
    return (math.log(low), math.log(high)) if distribution.log else (low, high)


def _coordinate(distribution: Any, value: float) -> float:
    """The coordinate of a value in Optuna's internal representation."""
    if isinstance(distribution, CategoricalDistribution):
        return float(value)
    low, high = _cell(distribution)
    return ((math.log(value) if distribution.log else value) - low) / (high - low)


def _value(distribution: Any, coordinate: float) -> float:
    """The value, in Optuna's internal representation, at a coordinate."""
    if isinstance(distribution, CategoricalDistribution):
        return round(coordinate)
    low, high = _cell(distribution)
    value = low + coordinate * (high - low)
    value = math.exp(value) if distribution.log else value
    if distribution.step is not None:
        value = _nth_value(distribution, round((value - distribution.low) / distribution.step))
    return min(max(value, distribution.low), distribution.high)


def nearest(distribution: Any, value: float) -> float:
    """The value of a number's distribution that is nearest to another one."""
    value = min(max(value, distribution.low), distribution.high)
    return distribution.to_external_repr(_value(distribution, _coordinate(distribution, value)))


def _listed_values(distribution: Any) -> list[float]:
    """The coordinates of the values of a parameter with categories or with few steps; none for others."""
    if isinstance(distribution, CategoricalDistribution):
        return [float(k) for k in range(len(distribution.choices))]
    if distribution.step is None:
        return []
    num_values = round((distribution.high - distribution.low) / distribution.step) + 1
    if num_values > MAX_VALUES:
        return []
    return [_coordinate(distribution, _nth_value(distribution, k)) for k in range(num_values)]


def takes(distribution: BaseDistribution | None, value: Any) -> bool:
    """Whether a parameter takes a value; `None` takes none."""
    try:
        return distribution is not None and internals.contains(distribution, distribution.to_internal_repr(value))
    except ValueError:  # no such category, no number
        return False


def _nth_value(distribution: Any, k: int) -> float:
    return distribution.low + k * distribution.step
