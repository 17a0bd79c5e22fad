r"""The inverse hyperbolic sine: linear around a center, logarithmic in both tails."""

from __future__ import annotations

import math

import torch
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor

from botorch_skewgp.warpings.base import Warping, log_hypot, shape_parameter


class Arcsinh(Warping):
    r"""The map `g(y) = offset + scale asinh((y - center) / width)`, for outcomes with very heavy tails.

    Outermost, `offset` and `scale` have no effect. The outcome then has no moments at all: `y` is a hyperbolic sine of
    Student t values.

    Example:
        >>> warping = Arcsinh()
        >>> z = warping(values)
    """

    redundant_if_outermost = ("offset", "scale")

    offset = shape_parameter("offset", "The offset.")
    scale = shape_parameter("scale", "The scale.")
    center = shape_parameter("center", "Where the map is steepest.")
    width = shape_parameter("width", "The distance from the center within which the map is about linear.")

    def __init__(self) -> None:
        super().__init__()
        self._add_parameter("offset", 0.0, False, NormalPrior(0.0, 1.0))
        self._add_parameter("scale", 1.0, True, LogNormalPrior(0.0, 0.5))
        self._add_parameter("center", 0.0, False, NormalPrior(0.0, 1.0))
        self._add_parameter("width", 1.0, True, LogNormalPrior(0.0, 1.0))

    def forward(self, y: Tensor) -> Tensor:
        return self.offset + self.scale * torch.asinh((y - self.center) / self.width)

    def inverse(self, z: Tensor) -> Tensor:
        return self.center + self.width * torch.sinh((z - self.offset) / self.scale)

    def log_derivative(self, y: Tensor) -> Tensor:
        return self.scale.log() - log_hypot(self.width, y - self.center)

    @property
    def tail_power(self) -> Tensor:
        return torch.full_like(self.scale, math.inf)
