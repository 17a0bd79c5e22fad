r"""Affine maps, for the inside of other warpings."""

from __future__ import annotations

from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor

from botorch_skewgp.warpings.base import Warping, shape_parameter


class Affine(Warping):
    r"""The map `g(y) = offset + scale y`.

    Outermost it has no effect, as the process's mean and variance are unknown: `Affine()` alone is the identity
    warping, without free parameters.

    Example:
        >>> warping = Composition([Affine(), SinhArcsinh()])  # the affine map first
    """

    redundant_if_outermost = ("offset", "scale")

    offset = shape_parameter("offset", "The offset.")
    scale = shape_parameter("scale", "The scale.")

    def __init__(self) -> None:
        super().__init__()
        self._add_parameter("offset", 0.0, False, NormalPrior(0.0, 1.0))
        self._add_parameter("scale", 1.0, True, LogNormalPrior(0.0, 0.5))

    def forward(self, y: Tensor) -> Tensor:
        return self.offset + self.scale * y

    def inverse(self, z: Tensor) -> Tensor:
        return (z - self.offset) / self.scale

    def log_derivative(self, y: Tensor) -> Tensor:
        return self.scale.log() + 0 * y

    @property
    def tail_power(self) -> Tensor:
        return self.scale.new_ones(self.scale.shape)
