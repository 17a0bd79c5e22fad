r"""Hyperparameters of a fitted model as the start of another model's fit."""

from __future__ import annotations

from typing import NamedTuple

import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.constraints import Interval
from torch import Tensor

from botorch_skewgp.fitting.spreads import deviations_of_judges
from botorch_skewgp.likelihoods import MixedLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.parameters import constrained, unconstrained


class WarmStart(NamedTuple):
    r"""The result of a warm start, by names of the started model's free parameters.

    Args:
        copied: Those set to the earlier model's values.
        left: Those left unchanged: the earlier model lacks that name and shape, or the constraint excludes its value.
    """

    copied: tuple[str, ...]
    left: tuple[str, ...]


@torch.no_grad()
def warm_start(model: SkewGP, previous: SkewGP) -> WarmStart:
    r"""Start a model's hyperparameters at those of another, which may have other data and other kinds of data.

    Constrained values are copied, not raw ones, so that constraints may differ. A likelihood's parameters belong to a
    kind of observation: those of a model of comparisons go to the part for comparisons of a model of numbers and
    comparisons. The level of labels and grades stays where it was in units of the outcome, though numbers may be
    standardised otherwise. With judges' deviations goes their spread. Parameters that do not require gradients are not
    changed.

    Example:
        >>> more = SkewGP(train_X, [Preference(pairs), Numeric(values)])
        >>> warm_start(more, model)
        >>> fit_skew_gp(more)

    Args:
        model: The model to start; changed in place.
        previous: The model to take values from.

    Raises:
        UnsupportedError: If one of them is no SkewGP.
    """
    for entry in (model, previous):
        if not isinstance(entry, SkewGP):
            raise UnsupportedError(f"warm_start is for SkewGPs; got {type(entry).__name__}.")
    by_place = _by_place(previous)
    known = {place: constrained(constraint, value) for place, (_, value, constraint) in by_place.items()}
    learned, started = ({id(d): prior.scale for prior, d in deviations_of_judges(one)} for one in (previous, model))
    copied, left = [], []
    for place, (name, parameter, constraint) in _by_place(model).items():
        if not parameter.requires_grad:
            continue
        value = known.get(place)
        if value is not None and place.endswith(".shift"):
            value = model.outcome_scale.standardize(previous.outcome_scale.unstandardize(value))
        if value is None or value.shape != parameter.shape or not _admits(constraint, value):
            left.append(name)
            continue
        parameter.copy_(unconstrained(constraint, value.to(parameter)))
        spread = learned.get(id(by_place[place][1]))
        if spread is not None and id(parameter) in started:
            started[id(parameter)].copy_(spread)
        copied.append(name)
    return WarmStart(tuple(copied), tuple(left))


def _by_place(model: SkewGP) -> dict[str, tuple[str, Tensor, Interval | None]]:
    """Names, parameters and constraints by place: the name, for a likelihood's after its kind of observation."""
    likelihood = model.likelihood
    parts = likelihood.likelihoods if isinstance(likelihood, MixedLikelihood) else [likelihood]
    kinds = {
        id(p): f"{part.observation_types[0].__name__}.{name}" for part in parts for name, p in part.named_parameters()
    }
    entries = model.named_parameters_and_constraints()  # type: ignore[operator]
    return {kinds.get(id(p), name): (name, p, constraint) for name, p, constraint in entries}


def _admits(constraint: Interval | None, value: Tensor) -> bool:
    """Whether a value, and its raw value, is inside a constraint."""
    if not bool(value.isfinite().all()):
        return False
    return constraint is None or bool(((value > constraint.lower_bound) & (value < constraint.upper_bound)).all())
