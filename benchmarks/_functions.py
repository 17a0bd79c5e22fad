"""Functions to maximise over the unit cube, by their names: BoTorch's, and those of the papers that it does not have.

.. [Surjanovic2013virtual] S. Surjanovic and D. Bingham. Virtual Library of Simulation Experiments. 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from botorch.test_functions.synthetic import Ackley, Branin, Hartmann, Levy, Rosenbrock, SixHumpCamel
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

SEEN = 4096  # Sobol points
FUNCTIONS = ("camel", "levy2", "hartmann3", "hartmann6", "ackley4", "levy4", "rosenbrock5", "alpine4")
FAMILIES = {"ackley": Ackley, "hartmann": Hartmann, "levy": Levy, "rosenbrock": Rosenbrock}
Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Utility:
    """A function to maximise over the unit cube, whose largest value is known."""

    name: str
    dim: int
    best: float
    evaluate: Function

    def values(self) -> Tensor:
        """Values over the domain, from which its standard deviation and quantiles are taken."""
        return self.evaluate(sobol_points(self.dim, SEEN, 0))

    def deviation(self) -> float:
        return float(self.values().std())


def unit_cube(d: int) -> Tensor:
    return torch.tensor([[0.0] * d, [1.0] * d], dtype=torch.float64)


def sobol_points(d: int, n: int, seed: int) -> Tensor:
    return draw_sobol_samples(unit_cube(d), n=n, q=1, seed=seed).squeeze(-2)


def with_points(X: Tensor, points: Tensor) -> tuple[Tensor, list[int]]:
    """Points with those that are not among them, and the rows of these."""
    rows = []
    for point in points:
        same = (point == X).all(-1).nonzero()
        X = X if len(same) else torch.cat([X, point.unsqueeze(0)])
        rows.append(int(same[0]) if len(same) else len(X) - 1)
    return X, rows


def cosine_exponential(X: Tensor) -> Tensor:
    """Of Benavoli, Azzimonti and Piga, Preferential Bayesian optimisation with skew Gaussian processes, 2021."""
    x = X[..., 0]
    return torch.cos(5 * x) + torch.exp(-0.5 * x.square())


def forrester(X: Tensor) -> Tensor:
    """Of Forrester, Sobester and Keane, Engineering Design via Surrogate Modelling, 2008."""
    x = X[..., 0]
    return -(6 * x - 2).square() * torch.sin(12 * x - 4)


def goldstein_price(X: Tensor) -> Tensor:
    """With values down to minus a million [Surjanovic2013virtual]_."""
    x, y = X[..., 0], X[..., 1]
    first = 1 + (x + y + 1).square() * (19 - 14 * x + 3 * x.square() - 14 * y + 6 * x * y + 3 * y.square())
    second = 30 + (2 * x - 3 * y).square() * (18 - 32 * x + 12 * x.square() + 48 * y - 36 * x * y + 27 * y.square())
    return -first * second


def langermann(X: Tensor) -> Tensor:
    """With five terms [Surjanovic2013virtual]_."""
    centres = X.new_tensor([[3.0, 5.0], [5.0, 2.0], [2.0, 1.0], [1.0, 4.0], [7.0, 9.0]])
    squares = (X.unsqueeze(-2) - centres).square().sum(-1)
    waves = torch.exp(-squares / math.pi) * torch.cos(math.pi * squares)
    return -(X.new_tensor([1.0, 2.0, 5.0, 2.0, 3.0]) * waves).sum(-1)


def colville(X: Tensor) -> Tensor:
    """[Surjanovic2013virtual]_."""
    x1, x2, x3, x4 = X.unbind(-1)
    valleys = 100 * (x1.square() - x2).square() + 90 * (x3.square() - x4).square()
    bowls = (x1 - 1).square() + (x3 - 1).square() + 10.1 * ((x2 - 1).square() + (x4 - 1).square())
    return -(valleys + bowls + 19.8 * (x2 - 1) * (x4 - 1))


# The function, the bounds of its inputs, where it is largest, and the value there
OURS: dict[str, tuple[Function, list[tuple[float, float]], list[float], float]] = {
    "alpine4": (lambda X: -(X * X.sin() + 0.1 * X).abs().sum(-1), [(-10.0, 10.0)] * 4, [0.0] * 4, 0.0),
    "cosine": (cosine_exponential, [(-2.6, 2.6)], [0.0], 2.0),
    "forrester": (forrester, [(0.0, 1.0)], [0.7572487578418557], 6.0207400557670825),
    "goldstein": (goldstein_price, [(-2.0, 2.0)] * 2, [0.0, -1.0], -3.0),
    "langermann": (langermann, [(0.0, 10.0)] * 2, [2.7934022086450367, 1.5972325013283601], 4.155809291847785),
    "colville": (colville, [(-10.0, 10.0)] * 4, [1.0] * 4, 0.0),
}


def find_utility(name: str, reach: float | None = None) -> Utility:
    """A function by its name, which ends with the number of inputs where that may vary; perhaps on [-reach, reach]."""
    if name in OURS:
        function, pairs, _, best = OURS[name]
        low, high = torch.tensor(pairs, dtype=torch.float64).mT
    else:
        family = name.rstrip("0123456789")
        if name == "camel":
            function, bounds = SixHumpCamel(negate=True), torch.tensor([[-2.0, -1.0], [2.0, 1.0]])
        else:
            dim = name.removeprefix(family)
            function = FAMILIES[family](int(dim), negate=True) if dim else Branin(negate=True)
            bounds = function.bounds if reach is None else torch.full_like(function.bounds, reach)
            bounds = bounds if reach is None else torch.stack([-bounds[0], bounds[1]])
        (low, high), best = bounds.double(), float(function.optimal_value)
    return Utility(name, len(low), best, lambda U: function(low + (high - low) * U))
