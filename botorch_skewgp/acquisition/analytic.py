r"""Closed-form acquisition functions of a skewed posterior, a mixture of normal distributions.

Given draw `s` the value at a point is normal with mean `m_s(x)` and a variance `v(x)` that all draws share. An
expectation with a closed form for normal variables is the average of that form over draws. Logarithms of averages are
computed by `logsumexp`: they stay finite, with gradients, where improvement is all but impossible ([Ament2023logei]_).
BoTorch's functions of the same names without `Skew` assume a normal distribution.

All are deterministic functions of the candidate.

.. [Ament2023logei] S. Ament, S. Daulton, D. Eriksson, M. Balandat, E. Bakshy. Unexpected improvements to expected
   improvement for Bayesian optimization. NeurIPS 2023.
"""

from __future__ import annotations

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from botorch.utils.probability.utils import (
    log_ndtr,
)  # whose gradient is right far in the tail, where torch has infinity
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import ComponentAcquisitionFunction, follow, quantile_of
from botorch_skewgp.observations.checks import as_probability, as_tensor, check_flags


class _SkewImprovement(ComponentAcquisitionFunction):
    """Base class of acquisition functions that compare with the best value so far."""

    best_f: Tensor

    def __init__(
        self,
        model: Model,
        best_f: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        r"""
        Args:
            model: A model with skewed posteriors and one output (or several, with a posterior transform to one).
            best_f: The best value so far, a number or a `batch_shape` tensor.
            posterior_transform: A posterior transform; affine ones keep the skewness.
            maximize: Whether large values are good.

        Raises:
            InputDataError: If `best_f` is not a number, or `maximize` not a boolean.
        """
        check_flags(maximize=maximize)
        if as_tensor(best_f, "best_f").isnan().any():
            raise InputDataError("best_f must not be NaN; give the best value so far.")
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.register_buffer("best_f", torch.as_tensor(best_f))
        self.maximize = maximize


class SkewLogExpectedImprovement(_SkewImprovement):
    r"""The logarithm of the expected improvement under a skewed posterior.

    `log sum_s p_s sd (phi(u_s) + u_s Phi(u_s))` with `u_s = (m_s(x) - best_f) / sd`. Exact given the draws;
    `LogExpectedImprovement` assumes a normal distribution of the same mean and variance.

    Example:
        >>> model = SkewGP(train_X, [Numeric(values), Preference(pairs)])
        >>> acq = SkewLogExpectedImprovement(model, best_f=values.max())
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    _log = True

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log expected improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return self._components(X).log_expected_improvement(self.best_f.unsqueeze(-1), self.maximize)


class SkewLogProbabilityOfImprovement(_SkewImprovement):
    r"""The logarithm of the probability of improvement, `log sum_s p_s Phi(u_s)`; see `SkewLogExpectedImprovement`.

    Example:
        >>> acq = SkewLogProbabilityOfImprovement(model, best_f=values.max())
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)
    """

    _log = True

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log probability of improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        components = self._components(X)
        gain = components.gain(self.best_f.unsqueeze(-1), self.maximize)
        return components.log_average(log_ndtr(gain / components.standard_deviation))


class QuantileBound(AnalyticAcquisitionFunction):
    r"""The upper end of a credible interval: the posterior's own quantile, not mean plus standard deviations.

    For a normal posterior the probability `Phi(sqrt(beta))` gives BoTorch's `UpperConfidenceBound`. No moments are
    needed, and an increasing map of the outcome does not change the best candidate.

    Example:
        >>> acq = QuantileBound(model, probability=0.975)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model whose posteriors have quantiles, with one output (or several, with a posterior transform to one).
        probability: The posterior probability that the value is below the bound, in (0, 1).
        posterior_transform: A posterior transform; affine ones keep the skewness.
        maximize: Whether large values are good. If not, the value is minus the quantile of `1 - probability`.

    Raises:
        InputDataError: If the probability is outside (0, 1).
    """

    def __init__(
        self,
        model: Model,
        probability: float = 0.975,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        probability = as_probability(probability, "probability")
        check_flags(maximize=maximize)
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.probability = probability
        self.maximize = maximize

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The bound at `batch_shape x 1 x d` candidates; `batch_shape`."""
        follow(self, X)
        posterior = self.model.posterior(X, posterior_transform=self.posterior_transform)
        probability = self.probability if self.maximize else 1 - self.probability
        quantile = quantile_of(posterior, probability, type(self).__name__)
        return quantile if self.maximize else -quantile
