r"""The sinh-arcsinh map: one parameter for skewness, one for the weight of the tails."""

from __future__ import annotations

import torch
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor

from botorch_skewgp.warpings.base import Warping, log_cosh, log_hypot, shape_parameter


class SinhArcsinh(Warping):
    r"""The map `g(y) = sinh(tail_weight asinh(y) - skewness)`.

    A `tail_weight` below 1 is for outcomes with heavier tails than the process's, one above 1 for lighter tails;
    a positive `skewness` for outcomes with a long upper tail.

    Example:
        >>> warping = SinhArcsinh()
        >>> z = warping(values)
    """

    skewness = shape_parameter("skewness", "The skewness.")
    tail_weight = shape_parameter("tail_weight", "The tail weight.")

    def __init__(self) -> None:
        super().__init__()
        self._add_parameter("skewness", 0.0, False, NormalPrior(0.0, 1.0))
        self._add_parameter("tail_weight", 1.0, True, LogNormalPrior(0.0, 0.75))

    def forward(self, y: Tensor) -> Tensor:
        return torch.sinh(self.tail_weight * torch.asinh(y) - self.skewness)

    def inverse(self, z: Tensor) -> Tensor:
        return torch.sinh((torch.asinh(z) + self.skewness) / self.tail_weight)

    def log_derivative(self, y: Tensor) -> Tensor:
        slope = log_cosh(self.tail_weight * torch.asinh(y) - self.skewness)
        return self.tail_weight.log() + slope - log_hypot(torch.ones_like(y), y)

    @property
    def tail_power(self) -> Tensor:
        return 1 / self.tail_weight
