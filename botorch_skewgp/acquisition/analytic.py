r"""Closed-form acquisition functions of a skewed posterior, a mixture of normal distributions.

Given draw `s` the value at a point is normal with mean `m_s(x)` and a variance `v(x)` that all draws share. An
expectation with a closed form for normal variables is the average of that form over draws, by `logsumexp`, which stays
finite, with gradients, where improvement is all but impossible ([Ament2023logei]_).

.. [Ament2023logei] Ament et al. Unexpected improvements to expected improvement for Bayesian optimization. 2023.
.. [Letham2019noisyei] Letham et al. Constrained Bayesian optimization with noisy experiments. 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models.model import Model
from botorch.utils.probability.utils import log_ndtr  # its gradient is right in the tail, where torch has infinity
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import ComponentAcquisitionFunction, follow, quantile_of
from botorch_skewgp.checks import as_count, as_probability, as_seed, as_tensor, check_class, check_flags
from botorch_skewgp.protocols import members_of


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
        """Of a model with one output, or several and a transform to one, of which affine ones keep the skewness.

        `best_f` is the best value so far, a number or a `batch_shape` tensor; an `InputDataError` if it is none.
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


class SkewLogNoisyExpectedImprovement(ComponentAcquisitionFunction):
    r"""The logarithm of the expected improvement over the unknown best of a set of points ([Letham2019noisyei]_).

    `log E[max(f(x) - max f(X_baseline), 0)]`: the closed form is averaged over draws of the rows, each completed by
    normal draws of the values at the baseline, which pending points join. Any kind of observations will do.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> acq = SkewLogNoisyExpectedImprovement(model, X_baseline=train_X)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        X_baseline: An `n x d` tensor of points, at least one; a `BotorchTensorDimensionError` if it is none.
        samples_per_draw: The number of normal draws at the baseline for each of the model's draws.
        posterior_transform: An affine posterior transform.
        maximize: Whether large values are good.
        seed: The seed of the base samples.
    """

    _log = True

    def __init__(
        self,
        model: Model,
        X_baseline: Tensor,
        samples_per_draw: int = 1,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        seed: int = 0,
    ) -> None:
        samples_per_draw, seed = as_count(samples_per_draw, "samples_per_draw", least=1), as_seed(seed)
        check_flags(maximize=maximize)
        check_class(X_baseline, "X_baseline", Tensor)
        if X_baseline.ndim != 2 or X_baseline.shape[-2] == 0:
            raise BotorchTensorDimensionError(
                f"X_baseline must be n x d with n of at least 1; got shape {tuple(X_baseline.shape)}."
            )
        members_of(model, type(self).__name__)  # raises for others
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.samples_per_draw, self.maximize, self.seed = samples_per_draw, maximize, seed
        self._prior_model: Any = model
        self.X_baseline = X_baseline.detach()
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Add pending points, `m x d`, to the baseline."""
        self.X_pending: Tensor | None = None if X_pending is None else X_pending.detach().clone()  # type: ignore[assignment]
        X = self.X_baseline if self.X_pending is None else torch.cat([self.X_baseline, self.X_pending])
        X = X.unique(dim=0)  # values at equal points are equal; their joint covariance would be singular
        with torch.no_grad():
            self.model, values = self._prior_model.condition_on_draws(X, self.samples_per_draw, self.seed)
            values = values.mT.unsqueeze(-1)  # S x n x 1
            if self.posterior_transform is not None:
                values = self.posterior_transform.evaluate(values)
            values = values.flatten(1)
            self.best_f = values.amax(-1) if self.maximize else values.amin(-1)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        result = super()._apply(fn, *args, **kwargs)
        baseline = fn(self.X_baseline)
        if baseline is not self.X_baseline:  # draws at the baseline follow it
            self.X_baseline = baseline
            self.set_X_pending(None if self.X_pending is None else fn(self.X_pending))
        return result

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log noisy expected improvement at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return self._components(X).log_expected_improvement(self.best_f, self.maximize)


class QuantileBound(AnalyticAcquisitionFunction):
    r"""The upper end of a credible interval: the posterior's own quantile, not mean plus standard deviations.

    For a normal posterior the probability `Phi(sqrt(beta))` gives BoTorch's `UpperConfidenceBound`. No moments are
    needed, and an increasing map of the outcome does not change the best candidate.

    Example:
        >>> acq = QuantileBound(model, probability=0.975)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A model whose posteriors have quantiles, with one output (or several, with a posterior transform to one).
        probability: The probability that the value is below the bound, in (0, 1), else an `InputDataError`.
        posterior_transform: A posterior transform; affine ones keep the skewness.
        maximize: Whether large values are good. If not, the value is minus the quantile of `1 - probability`.
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
