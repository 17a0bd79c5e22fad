r"""Test functions of the preference and classification papers that BoTorch does not have.

They are BoTorch `SyntheticTestFunction`s: minimised unless said otherwise, negated with `negate=True`, with
`bounds`, `optimizers` and `optimal_value`.

References:
.. [Benavoli2021preferential]
    A. Benavoli, D. Azzimonti, and D. Piga. Preferential Bayesian optimisation with skew Gaussian processes.
    Genetic and Evolutionary Computation Conference (GECCO) Companion, 2021.
.. [Forrester2008engineering]
    A. Forrester, A. Sobester, and A. Keane. Engineering Design via Surrogate Modelling. Wiley, 2008.
.. [Surjanovic2013virtual]
    S. Surjanovic and D. Bingham. Virtual Library of Simulation Experiments: Test Functions and Datasets. 2013.
"""

from __future__ import annotations

import math

import torch
from botorch.test_functions.synthetic import SyntheticTestFunction
from torch import Tensor


class CosineExponential(SyntheticTestFunction):
    """That of [Benavoli2021preferential]_, *maximised*, as BoTorch's `Cosine8` is."""

    dim = 1
    continuous_inds = list(range(dim))
    _bounds = [(-2.6, 2.6)]
    _optimal_value = 2.0
    _optimizers = [(0.0,)]
    _is_minimization_by_default = False

    def _evaluate_true(self, X: Tensor) -> Tensor:
        x = X[..., 0]
        return torch.cos(5 * x) + torch.exp(-0.5 * x.square())


class Forrester(SyntheticTestFunction):
    """That of [Forrester2008engineering]_."""

    dim = 1
    continuous_inds = list(range(dim))
    _bounds = [(0.0, 1.0)]
    _optimal_value = -6.0207400557670825
    _optimizers = [(0.7572487578418557,)]

    def _evaluate_true(self, X: Tensor) -> Tensor:
        x = X[..., 0]
        return (6 * x - 2).square() * torch.sin(12 * x - 4)


class GoldsteinPrice(SyntheticTestFunction):
    """Goldstein and Price's, with values up to a million [Surjanovic2013virtual]_."""

    dim = 2
    continuous_inds = list(range(dim))
    _bounds = [(-2.0, 2.0), (-2.0, 2.0)]
    _optimal_value = 3.0
    _optimizers = [(0.0, -1.0)]

    def _evaluate_true(self, X: Tensor) -> Tensor:
        x, y = X[..., 0], X[..., 1]
        first = 1 + (x + y + 1).square() * (19 - 14 * x + 3 * x.square() - 14 * y + 6 * x * y + 3 * y.square())
        second = 30 + (2 * x - 3 * y).square() * (18 - 32 * x + 12 * x.square() + 48 * y - 36 * x * y + 27 * y.square())
        return first * second


class Langermann(SyntheticTestFunction):
    """With five terms [Surjanovic2013virtual]_; where the sum has the opposite sign, -5.162 is this one's maximum."""

    dim = 2
    continuous_inds = list(range(dim))
    _bounds = [(0.0, 10.0), (0.0, 10.0)]
    _optimal_value = -4.155809291847785
    _optimizers = [(2.7934022086450367, 1.5972325013283601)]
    _weights = (1.0, 2.0, 5.0, 2.0, 3.0)
    _centers = ((3.0, 5.0), (5.0, 2.0), (2.0, 1.0), (1.0, 4.0), (7.0, 9.0))

    def _evaluate_true(self, X: Tensor) -> Tensor:
        distance = (X.unsqueeze(-2) - X.new_tensor(self._centers)).square().sum(-1)
        return (X.new_tensor(self._weights) * torch.exp(-distance / math.pi) * torch.cos(math.pi * distance)).sum(-1)


class Colville(SyntheticTestFunction):
    """[Surjanovic2013virtual]_."""

    dim = 4
    continuous_inds = list(range(dim))
    _bounds = [(-10.0, 10.0)] * 4
    _optimal_value = 0.0
    _optimizers = [(1.0, 1.0, 1.0, 1.0)]

    def _evaluate_true(self, X: Tensor) -> Tensor:
        x1, x2, x3, x4 = X.unbind(-1)
        valleys = 100 * (x1.square() - x2).square() + 90 * (x3.square() - x4).square()
        bowls = (x1 - 1).square() + (x3 - 1).square() + 10.1 * ((x2 - 1).square() + (x4 - 1).square())
        return valleys + bowls + 19.8 * (x2 - 1) * (x4 - 1)
