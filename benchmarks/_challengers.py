"""Rival challengers of a point, as a criterion of the distribution of `f(x) - f(x_r)`.

.. [Takeno2023practical] S. Takeno, M. Nomura, M. Karasuyama. Towards practical preferential Bayesian optimization with
   skew Gaussian processes. ICML 2023.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import Components, log_expected_improvement
from botorch_skewgp.acquisition.dueling import DuelingAcquisitionFunction


class Challenger(DuelingAcquisitionFunction):
    """A criterion of the components of the difference between a candidate and a reference point."""

    def __init__(self, model: Model, X_reference: Tensor, criterion: Callable[[Components], Tensor]) -> None:
        super().__init__(model, X_reference)
        self.criterion = criterion

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The criterion at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return self.criterion(self._components(X))


def hallucination_believer(model: Model, X_reference: Tensor) -> Challenger:
    """HB-EI [Takeno2023practical]: log expected improvement if one random draw of the data's rows is the truth."""
    level = torch.rand(())

    def criterion(components: Components) -> Tensor:
        means = components.mean
        draw = int(level * means.shape[-1])
        return log_expected_improvement(means[..., draw], components.standard_deviation.expand_as(means)[..., draw])

    return Challenger(model, X_reference, criterion)
