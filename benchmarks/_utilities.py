"""Functions to maximise over the unit cube, by their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.test_functions.synthetic import Ackley, Branin, Griewank, Hartmann, Levy, Rosenbrock, SixHumpCamel
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

SEEN = 4096  # Sobol points
FUNCTIONS = ("camel", "levy2", "hartmann3", "hartmann6", "ackley4", "levy4", "rosenbrock5", "alpine4")
MANY_INPUTS = ("ackley10", "levy10", "rosenbrock10", "levy20", "rosenbrock20", "hartmann6_in_30")
OTHER_FUNCTIONS = ("branin", "griewank3", *MANY_INPUTS)


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

    def quantiles(self) -> tuple[float, float]:
        """The standard deviation over the domain, and the value that one point in a hundred exceeds."""
        values = self.values()
        return float(values.std()), float(values.quantile(0.99))


def _scaled(name: str, function: Any, bounds: Tensor | None = None) -> Utility:
    low, high = (function.bounds if bounds is None else bounds).double()
    return Utility(name, len(low), float(function.optimal_value), lambda U: function(low + (high - low) * U))


def _alpine(U: Tensor) -> Tensor:
    X = 20 * U - 10
    return -(X * X.sin() + 0.1 * X).abs().sum(-1)


def find_utility(name: str) -> Utility:
    """One of the functions, by its name."""
    if name == "alpine4":
        return Utility(name, 4, 0.0, _alpine)
    camel_bounds = torch.tensor([[-2.0, -1.0], [2.0, 1.0]])
    build: dict[str, Callable[[], Utility]] = {
        "camel": lambda: _scaled(name, SixHumpCamel(negate=True), camel_bounds),
        "levy2": lambda: _scaled(name, Levy(2, negate=True)),
        "hartmann3": lambda: _scaled(name, Hartmann(3, negate=True)),
        "hartmann6": lambda: _scaled(name, Hartmann(6, negate=True)),
        "ackley4": lambda: _scaled(name, Ackley(4, negate=True)),
        "levy4": lambda: _scaled(name, Levy(4, negate=True)),
        "rosenbrock5": lambda: _scaled(name, Rosenbrock(5, negate=True)),
        "branin": lambda: _scaled(name, Branin(negate=True)),
        "griewank3": lambda: _scaled(name, Griewank(3, negate=True)),
        "ackley10": lambda: _scaled(name, Ackley(10, negate=True)),
        "levy10": lambda: _scaled(name, Levy(10, negate=True)),
        "rosenbrock10": lambda: _scaled(name, Rosenbrock(10, negate=True)),
        "levy20": lambda: _scaled(name, Levy(20, negate=True)),
        "rosenbrock20": lambda: _scaled(name, Rosenbrock(20, negate=True)),
    }
    if name == "hartmann6_in_30":  # 24 inputs do nothing
        six = find_utility("hartmann6")
        return Utility(name, 30, six.best, lambda U: six.evaluate(U[..., 3::5]))
    return build[name]()
