r"""The base class of objectives for hyperparameters: the formula of the evidence, priors and dtypes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.distributions import MultivariateNormal
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.module import Module
from gpytorch.priors import LogNormalPrior, Prior
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from botorch_skewgp.models.inputs import check_hyperparameters
from botorch_skewgp.models.row_model import Evidence
from botorch_skewgp.models.row_plan import RowPlan
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Observation
from botorch_skewgp.parameters import LogarithmPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

BACK_OFF = 10.0  # nats below the lowest value, from which the interpolation of a line search steps far back


def log_prior(module: Module) -> Tensor:
    """The log density of hyperparameters under their priors, minus infinity outside of their support."""
    total = torch.zeros(())
    for prior, value in _priors_and_values(module):
        inside = prior.support is None or bool(prior.support.check(value).all())
        total = total + (_log_density(prior, value) if inside else (0 * value).sum() - torch.inf)
    return total


def log_volume_of_logarithms(module: Module) -> Tensor:
    """The part of `log_prior` by which densities of logarithms exceed those of the parameters themselves."""
    values = [value for prior, value in _priors_and_values(module) if isinstance(prior, LogarithmPrior)]
    return torch.stack([value.log().sum() for value in values]).sum() if values else torch.zeros(())


def _priors_and_values(module: Module) -> Iterator[tuple[Prior, Tensor]]:
    """All priors, each with the hyperparameter that it is a prior of."""
    seen: set[tuple[int, str]] = set()
    for name, owner, prior, closure, _ in module.named_priors():  # one for every path to its module
        key = id(owner), name.rpartition(".")[-1]
        if key not in seen:
            seen.add(key)
            yield prior, closure(owner)


def _log_density(prior: Prior, value: Tensor) -> Tensor:
    """The log density of a parameter's entries; of log-normal ones by its formula, as torch's takes 20 operations."""
    if type(prior) not in (LogNormalPrior, LogarithmPrior):
        return prior.log_prob(value).sum()
    normal, logarithm = prior.base_dist, prior.transform(value).log()
    standard = (logarithm - normal.loc) / normal.scale
    constant = standard.numel() * 0.5 * math.log(2 * math.pi)
    total = -(0.5 * standard.square() + normal.scale.log()).sum() - constant
    return total if type(prior) is LogarithmPrior else total - logarithm.sum()


class _Feasible(NamedTuple):
    """The lowest value of an objective since a fit began, and the free parameters at the last."""

    lowest: Tensor
    places: dict[Tensor, Tensor]


class RowMarginalLogLikelihood(MarginalLogLikelihood):
    r"""Some form of the log evidence of a SkewGP, plus the log priors of its hyperparameters.

    The log evidence is the log density of the numbers, plus the log normaliser of the interval rows given the numbers,
    minus that of the skew prior's rows alone (`Evidence`). Subclasses compute the log normalisers. State from earlier
    evaluations is the objective's, not the model's; `reset` drops it. The value is a total, not divided by the number
    of observations.
    """

    model: SkewGP
    _feasible: _Feasible | None = None
    _plan: RowPlan | None = None  # of the last evaluation
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
        free, known = [p for p in self.parameters() if p.requires_grad], self._feasible
        try:
            value = self.evaluate(function_dist, target)
        except NotPSDError:
            if known is None or known.places.keys() != set(free) or not all(bool(p.isfinite().all()) for p in free):
                raise
            distance = sum((p - place).square().sum() for p, place in known.places.items())
            return (known.lowest - BACK_OFF - distance).to(function_dist.mean)
        lowest = value.detach() if known is None else torch.minimum(known.lowest, value.detach())
        self._feasible = _Feasible(lowest, {p: p.detach().clone() for p in free})
        return value

    def evaluate(self, function_dist: MultivariateNormal, target: Sequence[Observation]) -> Tensor:
        """The objective, a scalar of `function_dist`'s dtype; raises `NotPSDError` if it cannot be evaluated."""
        evidence, prior = self._terms(function_dist, target), log_prior(self.model)
        zero = function_dist.mean.new_zeros((), dtype=torch.double)
        value = evidence.log_evidence(
            self._log_normalizer(evidence.rows) if evidence.rows.num_rows else zero,
            self._log_prior_normalizer(evidence.prior_rows) if evidence.prior_rows.num_rows else zero,
        )
        return (value + prior).to(function_dist.mean.dtype)

    def _terms(self, function_dist: MultivariateNormal, target: Sequence[Observation]) -> Evidence:
        """The terms of the evidence, before log normalisers are computed. Raises `NotPSDError` if hyperparameters or
        their prior are not finite, or a positive one is rounded to zero, where gradients are NaN.
        """
        try:
            check_hyperparameters(self.model)
        except InputDataError as error:
            raise NotPSDError(str(error)) from error
        parts = function_dist.mean, function_dist.lazy_covariance_matrix.to_dense()
        if not all(math.isfinite(float(part.detach().sum())) for part in parts):
            raise NotPSDError("The prior of the data has NaN or infinite entries at the present hyperparameters.")
        self._plan = self.model.row_plan(target, self.merges_equal_rows, self._plan)
        return self.model.evidence(function_dist, self._plan)

    @abstractmethod
    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        """The log normaliser of the interval rows given the numbers, at least one; a scalar in float64."""

    def _log_prior_normalizer(self, rows: TruncatedNormal) -> Tensor:
        """The log normaliser of the skew prior's rows alone, at least one; a scalar in float64."""
        return expectation_propagation(rows).log_normalizer
