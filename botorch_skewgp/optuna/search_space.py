"""Optuna's parameters as coordinates: numbers between 0 and 1, categories by their place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState
from torch import Tensor

from botorch_skewgp.acquisition.mixed_search import Factor, MixedDomain

MAX_VALUES = 1000  # of a stepped parameter, beyond which its coordinate is optimised as a free one and rounded


class SearchSpace:
    r"""The parameters of a study that a model sees, one coordinate each, as in Optuna's `GPSampler`: numbers or their
    logarithms on the unit interval, the values of a stepped one at the centres of cells of a step each, before the
    logarithm. Categories are numbered; the distance between any two is the same, which is up to the kernel.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self.distributions = dict(distributions)
        self.dim = len(self.distributions)
        kinds: list[Any] = [*self.distributions.values()]
        self.categorical = [i for i, kind in enumerate(kinds) if isinstance(kind, CategoricalDistribution)]
        values = [_listed_values(kind) for kind in kinds]
        ends = [
            (each[0], each[-1]) if each else (_coordinate(kind, kind.low), _coordinate(kind, kind.high))
            for kind, each in zip(kinds, values, strict=True)
        ]
        bounds = torch.tensor(ends, dtype=torch.double).reshape(-1, 2).mT
        listed = [(i, bounds.new_tensor(each).unsqueeze(-1)) for i, each in enumerate(values) if each]
        self.domain = MixedDomain(bounds, tuple(Factor([i], each, i in self.categorical) for i, each in listed))

    def takes(self, params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> bool:
        """Whether a trial has all parameters of the space, with the same distributions."""
        return all(name in params and distributions.get(name) == entry for name, entry in self.distributions.items())

    def points(self, params: Sequence[Mapping[str, Any]]) -> Tensor:
        """The coordinates of values of the parameters, `n x dim`."""
        rows = [
            [_coordinate(entry, entry.to_internal_repr(each[name])) for name, entry in self.distributions.items()]
            for each in params
        ]
        return torch.tensor(rows, dtype=torch.double).reshape(-1, self.dim)

    def params(self, point: Tensor) -> dict[str, Any]:
        """The values of the parameters at a point, those with steps at the nearest one."""
        coordinates = point.tolist()
        return {
            name: entry.to_external_repr(_value(entry, coordinate))
            for (name, entry), coordinate in zip(self.distributions.items(), coordinates, strict=True)
        }


def modelled_parameters(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that all completed trials have, with the same distributions and more than one value; those of
    failed and pruned trials as long as none was completed, and of running ones, which may have been compared, before.
    """
    told = [entry for entry in trials if entry.distributions]
    completed = [entry for entry in trials if entry.state == TrialState.COMPLETE]
    ended = [entry for entry in told if entry.state in (TrialState.FAIL, TrialState.PRUNED)]
    known = completed or ended or [entry for entry in told if entry.state == TrialState.RUNNING]
    first = sorted(known[0].distributions.items()) if known else []
    return {
        name: distribution
        for name, distribution in first
        if not distribution.single() and all(entry.distributions.get(name) == distribution for entry in known)
    }


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


def _listed_values(distribution: Any) -> list[float]:
    """The coordinates of the values of a parameter with categories or with few steps; none for others."""
    if isinstance(distribution, CategoricalDistribution):
        return [float(k) for k in range(len(distribution.choices))]
    if distribution.step is None:
        return []
    num_values = round((distribution.high - distribution.low) / distribution.step) + 1
    values = (_nth_value(distribution, k) for k in range(num_values)) if num_values <= MAX_VALUES else ()
    return [_coordinate(distribution, value) for value in values]


def _nth_value(distribution: Any, k: int) -> float:
    return distribution.low + k * distribution.step
