r"""The log evidence as an objective for hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpytorch.distributions import MultivariateNormal
from gpytorch.mlls import MarginalLogLikelihood
from torch import Tensor

from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Observation


class SkewGPMarginalLogLikelihood(MarginalLogLikelihood):
    r"""The log evidence by expectation propagation, plus the log priors of the hyperparameters.

    Numbers enter in closed form, interval rows through the expectation propagation fixed point, at which the gradient
    needs no unrolling. Smooth and deterministic, hence fit for L-BFGS. The value is a total, not divided by the number
    of observations.

    Example:
        >>> mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        >>> fit_gpytorch_mll(mll)
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
        value = self.model.log_evidence(function_dist, target)
        for _, module, prior, closure, _ in self.named_priors():
            value = value + prior.log_prob(closure(module)).sum()
        return value.to(function_dist.mean.dtype)
