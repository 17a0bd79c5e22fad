r"""Improvement weighted by the probabilities that a trial works and meets its constraints: what both hosts maximise.

.. [Letham2019noisyei] Letham et al. Constrained Bayesian optimization with noisy experiments. 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_skewgp.acquisition import SkewLogNoisyExpectedImprovement, SkewLogProbabilityOfImprovement
from botorch_skewgp.acquisition.components import Components, components_of, follow
from botorch_skewgp.models import SkewGP

LIKELY = 0.5  # the least probability of what may be recommended
SLACK, STEEP = 0.1, 30.0  # nats above that, from which a search keeps clear of it; units of the mean for one below
NUM_VALUES = 128  # draws of the values at the points seen, where there are no rows to draw


class WeightedImprovement(AcquisitionFunction):
    """The sum of logarithmic acquisition functions of single points, the improvement first if there is one."""

    _log = True

    def __init__(
        self, *terms: AcquisitionFunction, X_baseline: Tensor, process: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        super().__init__(model=terms[0].model)
        self._process = process
        self.terms = torch.nn.ModuleList(terms)
        self.X_baseline = X_baseline

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Have pending points join the baseline of the improvement."""
        super().set_X_pending(X_pending)
        if isinstance(self.terms[0], SkewLogNoisyExpectedImprovement):
            self.terms[0].set_X_pending(X_pending)

    def forward(self, X: Tensor) -> Tensor:
        """The sum at `batch_shape x 1 x d` candidates, after what a host does to them; `batch_shape`."""
        X = X if self._process is None else self._process(X)
        return torch.stack([term(X) for term in self.terms]).sum(0)


def log_improvement(
    model: SkewGP, X_baseline: Tensor, X_pending: Tensor | None, seed: int, maximize: bool = True
) -> SkewLogNoisyExpectedImprovement:
    """The log expected improvement over the best of the baseline, whichever that is ([Letham2019noisyei]_)."""
    num_draws = len(model.latent_posterior(X_baseline).log_probabilities)
    each = NUM_VALUES if num_draws == 1 else 1
    improvement = SkewLogNoisyExpectedImprovement(model, X_baseline, each, maximize=maximize, seed=seed)
    improvement.set_X_pending(X_pending)
    return improvement


class LogProbabilityOfLatentImprovement(SkewLogProbabilityOfImprovement):
    """The logarithm of the probability that the latent function, in its own units, is beyond a bound."""

    def _components(self, X: Tensor) -> Components:
        follow(self, X)
        model: Any = self.model
        return components_of(model.latent_posterior(X), type(self).__name__)


class AtLeast(AcquisitionFunction):
    """Zero where the logarithm of a probability is at least that of one half, and much less than other terms below."""

    def __init__(self, log_probability: AcquisitionFunction) -> None:
        super().__init__(model=log_probability.model)
        self.log_probability = log_probability

    def forward(self, X: Tensor) -> Tensor:
        """The values at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return -STEEP * (math.log(LIKELY) + SLACK - self.log_probability(X)).clamp(min=0.0).square()  # smooth


def feasible_mean(
    mean: AcquisitionFunction, log_probabilities: Sequence[AcquisitionFunction], **options: Any
) -> WeightedImprovement:
    """The posterior mean, of points that work and meet each constraint with a probability of one half."""
    return WeightedImprovement(mean, *map(AtLeast, log_probabilities), **options)
