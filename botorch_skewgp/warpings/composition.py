r"""One warping after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from torch.nn import ModuleList

from botorch_skewgp.warpings.base import Warping


class Composition(Warping):
    r"""Warpings one after another, the innermost first.

    Example:
        >>> warping = Composition([Affine(), SinhArcsinh()])  # sinh-arcsinh of an affine map of the outcome

    Args:
        warpings: The warpings, innermost first; at least one.

    Raises:
        ValueError: If there is none.
    """

    def __init__(self, warpings: Sequence[Warping]) -> None:
        super().__init__()
        if not warpings:
            raise ValueError("A Composition needs at least one warping; Affine() alone is the identity.")
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
