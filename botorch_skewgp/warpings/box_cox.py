r"""The Box-Cox map: powers of positive outcomes, with the logarithm as their limit."""

from __future__ import annotations

import math

import torch
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.warpings.base import Warping, shape_parameter


class BoxCox(Warping):
    r"""The map `g(y) = (y^power - 1) / power` of positive outcomes; `log y` in the limit of power 0.

    The power is positive, and laws of warped outcomes are truncated at `-1 / power`. For a negative power model the
    reciprocals of the outcomes.

    Example:
        >>> warping = BoxCox()
        >>> z = warping(values.exp())
    """

    power = shape_parameter("power", "The power.")

    def __init__(self) -> None:
        super().__init__()
        self._add_parameter("power", 0.5, True, LogNormalPrior(math.log(0.5), 1.0))

    def forward(self, y: Tensor) -> Tensor:
        inside = y > 0
        warped = torch.expm1(self.power * torch.where(inside, y, 1.0).log()) / self.power
        return torch.where(inside, warped, -1 / self.power)

    def inverse(self, z: Tensor) -> Tensor:
        base = self.power * z
        inside = base > -1
        return torch.where(inside, torch.exp(torch.log1p(torch.where(inside, base, 0.0)) / self.power), 0.0)

    def log_derivative(self, y: Tensor) -> Tensor:
        inside = y > 0
        slope = (self.power - 1) * torch.where(inside, y, 1.0).log()
        return torch.where(inside, slope, -math.inf)

    @property
    def domain(self) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(self.power), torch.full_like(self.power, math.inf)

    @property
    def range(self) -> tuple[Tensor, Tensor]:
        return -1 / self.power, torch.full_like(self.power, math.inf)

    @property
    def tail_power(self) -> Tensor:
        return 1 / self.power
