r"""Families of warpings, and one warping after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor
from torch.nn import ModuleList

from botorch_skewgp.checks import check_class
from botorch_skewgp.warpings.base import Warping, shape_parameter


class Affine(Warping):
    r"""The map `g(y) = offset + scale y`.

    Outermost it has no effect, as the process's mean and variance are unknown: `Affine()` alone is the identity
    warping, without free parameters.

    Example:
        >>> warping = Composition([Affine(), SinhArcsinh()])  # the affine map first
    """

    redundant_if_outermost = ("offset", "scale")

    offset = shape_parameter("The offset.", 0.0, NormalPrior, 0.0, 1.0)
    scale = shape_parameter("The scale.", 1.0, LogNormalPrior, 0.0, 0.5)

    def forward(self, y: Tensor) -> Tensor:
        return self.offset + self.scale * y

    def inverse(self, z: Tensor) -> Tensor:
        return (z - self.offset) / self.scale

    def log_derivative(self, y: Tensor) -> Tensor:
        return self.scale.log() + 0 * y

    @property
    def tail_power(self) -> Tensor:
        return self.scale.new_ones(self.scale.shape)


class Arcsinh(Warping):
    r"""The map `g(y) = offset + scale asinh((y - center) / width)`, for outcomes with very heavy tails.

    Linear around the center, logarithmic in both tails. Outermost, `offset` and `scale` have no effect. The outcome
    then has no moments at all: `y` is a hyperbolic sine of Student t values.

    Example:
        >>> warping = Arcsinh()
        >>> z = warping(values)
    """

    redundant_if_outermost = ("offset", "scale")

    offset = shape_parameter("The offset.", 0.0, NormalPrior, 0.0, 1.0)
    scale = shape_parameter("The scale.", 1.0, LogNormalPrior, 0.0, 0.5)
    center = shape_parameter("Where the map is steepest.", 0.0, NormalPrior, 0.0, 1.0)
    width = shape_parameter(
        "The distance from the center within which the map is about linear.", 1.0, LogNormalPrior, 0.0, 1.0
    )

    def forward(self, y: Tensor) -> Tensor:
        return self.offset + self.scale * torch.asinh((y - self.center) / self.width)

    def inverse(self, z: Tensor) -> Tensor:
        return self.center + self.width * torch.sinh((z - self.offset) / self.scale)

    def log_derivative(self, y: Tensor) -> Tensor:
        return self.scale.log() - _log_hypot(self.width, y - self.center)

    @property
    def tail_power(self) -> Tensor:
        return torch.full_like(self.scale, math.inf)


class BoxCox(Warping):
    r"""The map `g(y) = (y^power - 1) / power` of positive outcomes; `log y` in the limit of power 0.

    The power is positive, and laws of warped outcomes are truncated at `-1 / power`. For a negative power model the
    reciprocals of the outcomes.

    Example:
        >>> warping = BoxCox()
        >>> z = warping(values.exp())
    """

    power = shape_parameter("The power.", 0.5, LogNormalPrior, math.log(0.5), 1.0)

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


class SinhArcsinh(Warping):
    r"""The map `g(y) = sinh(tail_weight asinh(y) - skewness)`.

    A `tail_weight` below 1 is for outcomes with heavier tails than the process's, one above 1 for lighter tails;
    a positive `skewness` for outcomes with a long upper tail.

    Example:
        >>> warping = SinhArcsinh()
        >>> z = warping(values)
    """

    skewness = shape_parameter("The skewness.", 0.0, NormalPrior, 0.0, 1.0)
    tail_weight = shape_parameter("The tail weight.", 1.0, LogNormalPrior, 0.0, 0.75)

    def forward(self, y: Tensor) -> Tensor:
        return torch.sinh(self.tail_weight * torch.asinh(y) - self.skewness)

    def inverse(self, z: Tensor) -> Tensor:
        return torch.sinh((torch.asinh(z) + self.skewness) / self.tail_weight)

    def log_derivative(self, y: Tensor) -> Tensor:
        size = (self.tail_weight * torch.asinh(y) - self.skewness).abs()
        log_cosh = size + torch.log1p(torch.exp(-2 * size)) - math.log(2.0)  # without overflow
        return self.tail_weight.log() + log_cosh - _log_hypot(torch.ones_like(y), y)

    @property
    def tail_power(self) -> Tensor:
        return 1 / self.tail_weight


class Composition(Warping):
    r"""Warpings one after another, the innermost first.

    Example:
        >>> warping = Composition([Affine(), SinhArcsinh()])  # sinh-arcsinh of an affine map of the outcome

    Args:
        warpings: The warpings, innermost first; at least one.

    Raises:
        InputDataError: If there is none, or one is no warping.
    """

    def __init__(self, warpings: Sequence[Warping]) -> None:
        super().__init__()
        if not isinstance(warpings, Sequence) or not warpings:
            raise InputDataError(
                f"warpings must be a list of at least one warping; got {warpings!r}. Affine() alone is the identity."
            )
        for warping in warpings:
            check_class(warping, "An entry of warpings", Warping)
        self.warpings = ModuleList(warpings)

    @property
    def _chain(self) -> list[Warping]:
        return cast(list[Warping], list(self.warpings))

    def forward(self, y: Tensor) -> Tensor:
        for warping in self._chain:
            y = warping(y)
        return y

    def inverse(self, z: Tensor) -> Tensor:
        for warping in reversed(self._chain):
            z = warping.inverse(z)
        return z

    def log_derivative(self, y: Tensor) -> Tensor:
        total = torch.zeros_like(y)
        for warping in self._chain:
            total = total + warping.log_derivative(y)
            y = warping(y)
        return total

    @property
    def domain(self) -> tuple[Tensor, Tensor]:
        low, high = torch.tensor(-math.inf), torch.tensor(math.inf)
        for warping in reversed(self._chain):
            least, most = warping.range
            low, high = warping.inverse(torch.maximum(low, least)), warping.inverse(torch.minimum(high, most))
        return low, high

    @property
    def range(self) -> tuple[Tensor, Tensor]:
        low, high = torch.tensor(-math.inf), torch.tensor(math.inf)
        for warping in self._chain:
            least, most = warping.domain
            low, high = warping(torch.maximum(low, least)), warping(torch.minimum(high, most))
        return low, high

    @property
    def tail_power(self) -> Tensor:
        power = torch.ones(())
        for warping in self._chain:
            power = power * warping.tail_power
        return power

    def redundant_parameters(self) -> set[str]:
        last = len(self.warpings) - 1
        return {f"warpings.{last}.{name}" for name in self._chain[last].redundant_parameters()}


def _log_hypot(x: Tensor, y: Tensor) -> Tensor:
    """The logarithm of `sqrt(x^2 + y^2)`, without overflow."""
    return torch.hypot(*torch.broadcast_tensors(x, y)).log()
