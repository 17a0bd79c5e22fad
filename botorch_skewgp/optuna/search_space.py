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

TRIAL = "skewgp:trial"  # the trial's number as a parameter, see `distinguishing_parameters`
MAX_VALUES = 1000  # of a stepped parameter, beyond which its coordinate is optimised as a free one and rounded


class SearchSpace:
    r"""The parameters of a study that a model sees, one coordinate each, as in Optuna's `GPSampler`: numbers or their
    logarithms on the unit interval, the values of a stepped one at the centres of cells of a step each, before the
    logarithm. Categories are numbered; the distance between any two is the same, which is up to the kernel.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self.distributions = dict(distributions)
        self.dim = len(self.distributions)
        self.categorical: list[int] = []
        ends: list[tuple[float, float]] = []
        factors: list[Factor] = []
        for i, distribution in enumerate(self.distributions.values()):
            is_categorical = isinstance(distribution, CategoricalDistribution)
            if is_categorical:
                self.categorical.append(i)
            values = _listed_values(distribution)
            if values:
                column = torch.tensor(values, dtype=torch.double).unsqueeze(-1)
                factors.append(Factor([i], column, is_categorical))
                ends.append((values[0], values[-1]))
            else:
                ends.append(_ends(distribution))
        bounds = torch.tensor(ends, dtype=torch.double).reshape(-1, 2).mT
        self.domain = MixedDomain(bounds, tuple(factors))

    def takes(self, params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> bool:
        """Whether a trial has all parameters of the space, with the same distributions."""
        return all(name in params and distributions.get(name) == entry for name, entry in self.distributions.items())

    def points(self, params: Sequence[Mapping[str, Any]]) -> Tensor:
        """The coordinates of values of the parameters, `n x dim`."""
        rows = []
        for values in params:
            internal = {name: entry.to_internal_repr(values[name]) for name, entry in self.distributions.items()}
            rows.append([_coordinate(self.distributions[name], value) for name, value in internal.items()])
        return torch.tensor(rows, dtype=torch.double).reshape(len(rows), self.dim)

    def params(self, point: Tensor) -> dict[str, Any]:
        """The values of the parameters at a point, those with steps at the nearest one."""
        params = {}
        for (name, entry), coordinate in zip(self.distributions.items(), point.tolist(), strict=True):
            params[name] = entry.to_external_repr(_value(entry, coordinate))
        return params


def modelled_parameters(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that all completed trials have, with the same distributions and more than one value.

    As long as none was completed, those of failed and pruned trials, and before these, of running ones, which may have
    been compared.
    """
    modelled = _modelled_trials(trials)
    shared = sorted(modelled[0].distributions.items()) if modelled else []
    for trial in modelled:
        shared = [(name, entry) for name, entry in shared if trial.distributions.get(name) == entry]
    return {name: entry for name, entry in shared if not entry.single()}


def distinguishing_parameters(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The modelled parameters, and the trials' numbers as categories if these do not tell all trials apart.

    Trials have further parameters where ranges have changed, or the objective has branches.
    """
    shared = modelled_parameters(trials)
    modelled = _modelled_trials(trials)
    others = [entry for trial in modelled for name, entry in trial.distributions.items() if name not in shared]
    if shared and all(entry.single() for entry in others):
        return shared
    return {**shared, TRIAL: CategoricalDistribution(range(len(trials)))} if trials else {}


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


def _nth_value(distribution: Any, k: int) -> float:
    return distribution.low + k * distribution.step
