r"""The base class of objectives for hyperparameters: the formula of the evidence, priors and dtypes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.distributions import MultivariateNormal
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.module import Module
from gpytorch.priors import Prior
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from botorch_skewgp.models.inputs import check_hyperparameters
from botorch_skewgp.models.row_model import Evidence
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.models.state import parameters_below
from botorch_skewgp.observations import Observation
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

# The parts of an objective before log normalisers are computed: of the evidence, and the log prior.
Terms = tuple[Evidence, Tensor | float]
BACK_OFF = 10.0  # nats below the lowest value, from which the interpolation of a line search steps far back


def log_prior(module: Module) -> Tensor | float:
    """The log density of hyperparameters under their priors; `named_priors` lists one for every path to its module."""
    seen: set[tuple[int, str]] = set()
    value: Tensor | float = 0.0
    for name, owner, prior, closure, _ in module.named_priors():
        key = id(owner), name.rpartition(".")[-1]
        if key not in seen:
            seen.add(key)
            value = value + _log_density(prior, closure(owner))
    return value


def _log_density(prior: Prior, value: Tensor) -> Tensor:
    """The log density of a value; minus infinity outside of the prior's support."""
    inside = prior.support.check(value) if prior.support is not None else torch.ones(())
    if not bool(inside.all()):
        return (0 * value).sum() - torch.inf
    return prior.log_prob(value).sum()


class _Feasible(NamedTuple):
    """The lowest value of an objective since a fit began, and the free parameters at the last."""

    lowest: Tensor
    places: list[Tensor]


def _check_feasible(model: SkewGP, prior: MultivariateNormal) -> None:
    """Raise `NotPSDError` where an objective cannot be evaluated."""
    try:
        check_hyperparameters(model)
    except InputDataError as error:
        raise NotPSDError(str(error)) from error
    if not bool(prior.mean.isfinite().all()) or not bool(prior.lazy_covariance_matrix.to_dense().isfinite().all()):
        raise NotPSDError("The prior of the data has NaN or infinite entries at the present hyperparameters.")


class RowMarginalLogLikelihood(MarginalLogLikelihood):
    r"""Some form of the log evidence of a SkewGP, plus the log priors of its hyperparameters.

    The log evidence is the log density of the numbers, plus the log normaliser of the interval rows given the numbers,
    minus that of the skew prior's rows alone (`Evidence`). Subclasses compute the log normalisers. State from earlier
    evaluations is the objective's, not the model's; `reset` drops it. The value is a total, not divided by the number
    of observations.
    """

    model: SkewGP
    _feasible: _Feasible | None = None
    merges_equal_rows = False  # whether log normalisers are computed for rows that stand for several

    def reset(self) -> None:
        """Forget earlier evaluations, so that later ones are reproducible to the last bit."""

    def train(self, mode: bool = True) -> Self:
        """Set the mode; what `forward` knows of feasible steps belongs to the fit before."""
        self._feasible = None
        return super().train(mode)

    def forward(
        self, function_dist: MultivariateNormal, target: Sequence[Observation], *args: Any, **kwargs: Any
    ) -> Tensor:
        r"""Evaluate the objective for a fit, whose infeasible steps do not end it.

        After a first value, hyperparameters at which the objective cannot be evaluated have a value below all others so
        far, which falls with the distance to the last ones that could be: an optimiser steps back.
        `function_dist` is the prior at the training points, `model(*model.train_inputs)` in training mode, and `target`
        the observations, `model.train_targets`.

        Raises:
            NotPSDError: If the first hyperparameters are infeasible, or some are NaN.
        """
        free = [parameter for parameter in parameters_below(self) if parameter.requires_grad]
        try:
            value = self.evaluate(function_dist, target)
        except NotPSDError:
            known = self._feasible
            shapes = [parameter.shape for parameter in free]
            if known is None or [place.shape for place in known.places] != shapes:
                raise
            if not all(bool(parameter.isfinite().all()) for parameter in free):
                raise
            distances = [(p - place).square().sum() for p, place in zip(free, known.places, strict=True)]
            return (known.lowest - BACK_OFF - sum(distances)).to(function_dist.mean)
        lowest = value.detach() if self._feasible is None else torch.minimum(self._feasible.lowest, value.detach())
        self._feasible = _Feasible(lowest, [parameter.detach().clone() for parameter in free])
        return value

    def evaluate(self, function_dist: MultivariateNormal, target: Sequence[Observation]) -> Tensor:
        """The objective, a scalar tensor of `function_dist`'s dtype.

        Raises `NotPSDError` if it cannot be evaluated at the present hyperparameters.
        """
        evidence, prior = self.terms(function_dist, target)
        zero = function_dist.mean.new_zeros((), dtype=torch.double)
        value = evidence.log_evidence(
            self._log_normalizer(evidence.rows) if evidence.rows.num_rows else zero,
            self._log_prior_normalizer(evidence.prior_rows) if evidence.prior_rows.num_rows else zero,
        )
        return (value + prior).to(function_dist.mean.dtype)

    def terms(self, function_dist: MultivariateNormal, target: Sequence[Observation]) -> Terms:
        """The terms of `forward`, before log normalisers are computed.

        Raises `NotPSDError` if hyperparameters, or the prior that they make, are not finite, or a positive one is
        rounded to zero, where gradients are NaN.
        """
        _check_feasible(self.model, function_dist)
        evidence = self.model.evidence(function_dist, target, self.merges_equal_rows)
        return evidence, log_prior(self.model)

    @torch.no_grad()
    def values_of(self, terms: Sequence[Terms]) -> Tensor:
        """The objective at many sets of hyperparameters, without gradients, an `N`-dim tensor in float64."""
        values = []
        of_rows = self._log_normalizers([evidence.rows for evidence, _ in terms])
        given = [evidence.prior_rows for evidence, _ in terms]
        of_prior_rows = [self._log_prior_normalizer(r) if r.num_rows else r.mean.new_zeros(()) for r in given]
        for (evidence, prior), rows, prior_rows in zip(terms, of_rows, of_prior_rows, strict=True):
            values.append((evidence.log_evidence(rows, prior_rows) + prior).double())
        return torch.stack(values)

    def _log_normalizers(self, rows: Sequence[TruncatedNormal]) -> Tensor:
        """The log normalisers of interval rows given the numbers at many sets of hyperparameters; in float64."""
        return torch.stack([self._log_normalizer(r) if r.num_rows else r.mean.new_zeros(()) for r in rows])

    @abstractmethod
    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        """The log normaliser of the interval rows given the numbers, at least one; a scalar in float64."""

    def _log_prior_normalizer(self, rows: TruncatedNormal) -> Tensor:
        """The log normaliser of the skew prior's rows alone, at least one; a scalar in float64."""
        return expectation_propagation(rows).log_normalizer
