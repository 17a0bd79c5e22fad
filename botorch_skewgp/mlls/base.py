r"""What all objectives for hyperparameters share: the formula of the evidence, priors and dtypes."""

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
from botorch_skewgp.truncated.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


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

    The log evidence is the log density of the numbers, plus the log normaliser of the interval rows given the numbers,
    minus that of the skew prior's rows alone (`Evidence`). An objective says how log normalisers are computed. What it
    keeps from one evaluation to the next, to save time, is its own and not the model's; `reset` drops it. The value is
    a total, not divided by the number of observations.
    """

    model: SkewGP
    merges_equal_rows = False  # whether log normalisers are computed for rows that stand for several
    is_exact = False  # whether values must not depend on earlier ones: sampling needs it, optimising does not

    def reset(self) -> None:
        """Forget earlier evaluations, so that those to come repeat to the last bit."""

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
        evidence, zero = (
            self.model.evidence(function_dist, target, self.merges_equal_rows),
            function_dist.mean.new_zeros((), dtype=torch.double),
        )
        value = evidence.log_evidence(
            self._log_normalizer(evidence.rows) if evidence.rows.num_rows else zero,
            self._log_prior_normalizer(evidence.prior_rows) if evidence.prior_rows.num_rows else zero,
        )
        return (value + log_prior(self.model)).to(function_dist.mean.dtype)

    @abstractmethod
    def _log_normalizer(self, rows: TruncatedNormal) -> Tensor:
        """The log normaliser of the interval rows given the numbers, at least one; a scalar in float64."""

    def _log_prior_normalizer(self, rows: TruncatedNormal) -> Tensor:
        """The log normaliser of the skew prior's rows alone, at least one; a scalar in float64."""
        return expectation_propagation(rows).log_normalizer

    def _num_prior_rows(self) -> int:
        """The number of rows of the skew prior; they are the first interval rows."""
        return 0 if self.model.skew_prior is None else self.model.skew_prior.latent_dim
