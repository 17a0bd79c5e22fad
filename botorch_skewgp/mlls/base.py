r"""What all objectives for hyperparameters share: priors, dtypes, and the numbers' density."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.mlls import MarginalLogLikelihood
from gpytorch.module import Module
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Observation


def log_prior(module: Module) -> Tensor | float:
    r"""The log density of a module's hyperparameters under their priors, each counted once.

    GPyTorch's `named_priors` lists a prior once for every path to its module: an objective holds the likelihood itself
    and within the model, so that its priors would count twice.

    Args:
        module: A model, a likelihood, or an objective.
    """
    seen: set[tuple[int, str]] = set()
    value: Tensor | float = 0.0
    for name, owner, prior, closure, _ in module.named_priors():
        key = id(owner), name.rpartition(".")[-1]
        if key not in seen:
            seen.add(key)
            value = value + _log_density(prior, closure(owner))
    return value


def _log_density(prior: Prior, value: Tensor) -> Tensor:
    """The log density of a value; minus infinity where a step of an optimiser has left the prior's support."""
    inside = prior.support.check(value) if prior.support is not None else torch.ones(())
    if not bool(inside.all()):
        return (0 * value).sum() - torch.inf
    return prior.log_prob(value).sum()


class RowMarginalLogLikelihood(MarginalLogLikelihood):
    r"""Some form of the log evidence of a SkewGP, plus the log priors of its hyperparameters.

    The value is a total, not divided by the number of observations.
    """

    model: SkewGP

    def forward(
        self, function_dist: MultivariateNormal, target: Sequence[Observation], *args: Any, **kwargs: Any
    ) -> Tensor:
        r"""Evaluate the objective.

        Args:
            function_dist: The prior over the latent function at the training points, `model(*model.train_inputs)`
                in training mode.
            target: The observations, `model.train_targets`.

        Returns:
            A scalar tensor of `function_dist`'s dtype.
        """
        value = self._log_evidence(function_dist, target) + log_prior(self.model)
        return value.to(function_dist.mean.dtype)

    @abstractmethod
    def _log_evidence(self, prior: MultivariateNormal, observations: Sequence[Observation]) -> Tensor:
        """The log evidence without priors of hyperparameters, a scalar in float64."""

    def _num_prior_rows(self) -> int:
        """The number of rows of the skew prior; they are the first interval rows."""
        return 0 if self.model.skew_prior is None else self.model.skew_prior.latent_dim
