r"""The inverse hyperbolic sine: linear around a center, logarithmic in both tails."""

from __future__ import annotations

import math

import torch
from gpytorch.priors import LogNormalPrior, NormalPrior, Prior
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

    def __init__(
        self,
        offset_prior: Prior | None = None,
        scale_prior: Prior | None = None,
        center_prior: Prior | None = None,
        width_prior: Prior | None = None,
    ) -> None:
        r"""
        Args:
            offset_prior: The prior of the offset; standard normal if `None`.
            scale_prior: The prior of the positive scale; the logarithm normal with standard deviation 0.5 if `None`.
            center_prior: The prior of the center; standard normal if `None`.
            width_prior: The prior of the positive width; the logarithm standard normal if `None`.
        """
        super().__init__()
        self._add_parameter("offset", 0.0, False, NormalPrior(0.0, 1.0) if offset_prior is None else offset_prior)
        self._add_parameter("scale", 1.0, True, LogNormalPrior(0.0, 0.5) if scale_prior is None else scale_prior)
        self._add_parameter("center", 0.0, False, NormalPrior(0.0, 1.0) if center_prior is None else center_prior)
        self._add_parameter("width", 1.0, True, LogNormalPrior(0.0, 1.0) if width_prior is None else width_prior)

    def forward(self, y: Tensor) -> Tensor:
        return self.offset + self.scale * torch.asinh((y - self.center) / self.width)

    def inverse(self, z: Tensor) -> Tensor:
        return self.center + self.width * torch.sinh((z - self.offset) / self.scale)

    def log_derivative(self, y: Tensor) -> Tensor:
        return self.scale.log() - log_hypot(self.width, y - self.center)

    @property
    def tail_power(self) -> Tensor:
        return torch.full_like(self.scale, math.inf)
