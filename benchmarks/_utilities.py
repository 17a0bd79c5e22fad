"""Functions to maximise over the unit cube, by their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.test_functions.synthetic import Ackley, Branin, Hartmann, Levy, Rosenbrock, SixHumpCamel
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

SEEN = 4096  # Sobol points
FUNCTIONS = ("camel", "levy2", "hartmann3", "hartmann6", "ackley4", "levy4", "rosenbrock5", "alpine4")
FAMILIES = {"ackley": Ackley, "hartmann": Hartmann, "levy": Levy, "rosenbrock": Rosenbrock}


@dataclass(frozen=True)
class Utility:
    """A function to maximise over the unit cube, whose largest value is known."""

    name: str
    dim: int
    best: float
    evaluate: Callable[[Tensor], Tensor]

    def values(self) -> Tensor:
        """Values over the domain, from which its standard deviation and quantiles are taken."""
        bounds = torch.tensor([[0.0] * self.dim, [1.0] * self.dim], dtype=torch.float64)
        return self.evaluate(draw_sobol_samples(bounds, n=SEEN, q=1, seed=0).squeeze(-2))

    def deviation(self) -> float:
        """The standard deviation over the domain."""
        return float(self.values().std())


def _scaled(name: str, function: Any, bounds: Tensor | None = None) -> Utility:
    low, high = (function.bounds if bounds is None else bounds).double()
    return Utility(name, len(low), float(function.optimal_value), lambda U: function(low + (high - low) * U))


def _alpine(U: Tensor) -> Tensor:
    X = 20 * U - 10
    return -(X * X.sin() + 0.1 * X).abs().sum(-1)


def find_utility(name: str) -> Utility:
    """One of the functions, by its name, which ends with the number of inputs where that may vary."""
    if name == "camel":
        return _scaled(name, SixHumpCamel(negate=True), torch.tensor([[-2.0, -1.0], [2.0, 1.0]]))
    if name == "branin":
        return _scaled(name, Branin(negate=True))
    if name == "alpine4":
        return Utility(name, 4, 0.0, _alpine)
    family = name.rstrip("0123456789")
    return _scaled(name, FAMILIES[family](int(name.removeprefix(family)), negate=True))
