r"""Expected improvement over an unknown best value.

.. [Letham2019noisyei] B. Letham, B. Karrer, G. Ottoni, E. Bakshy. Constrained Bayesian optimization with noisy
   experiments. Bayesian Analysis 14, 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import ComponentAcquisitionFunction
from botorch_skewgp.observations.checks import as_count, as_seed, check_class, check_flags


class SkewLogNoisyExpectedImprovement(ComponentAcquisitionFunction):
    r"""The logarithm of the expected improvement over the unknown best of a set of points ([Letham2019noisyei]_).

    `log E[max(f(x) - max f(X_baseline), 0)]`. Each draw `s` of the rows is completed by normal draws of the values at
    the baseline. Given both, `f(x)` is normal and the improvement has a closed form, which is averaged. Any kind of
    observations will do. Pending points join the baseline, which gives noisy expected improvement of all of them up to
    a constant.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> acq = SkewLogNoisyExpectedImprovement(model, X_baseline=train_X)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        X_baseline: An `n x d` tensor of points.
        samples_per_draw: The number of normal draws at the baseline for each of the model's draws.
        posterior_transform: An affine posterior transform.
        maximize: Whether large values are good.
        seed: The seed of the base samples.

    Raises:
        BotorchTensorDimensionError: If `X_baseline` is not `n x d` with at least one point.
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
        super().__init__(model=model, posterior_transform=posterior_transform)
        self.samples_per_draw, self.maximize, self.seed = samples_per_draw, maximize, seed
        self._prior_model: Any = model
        self.X_baseline = X_baseline.detach()
        self.set_X_pending(None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Add pending points to the baseline.

        Args:
            X_pending: An `m x d` tensor of points, or `None` for none.
        """
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
