r"""Sparse grids of nested rules for the normal distribution.

.. [Genz1996fully] A. Genz, B. D. Keister. Fully symmetric interpolatory rules for multiple integrals over infinite
   regions with Gaussian weight. Journal of Computational and Applied Mathematics 71, 1996.
.. [Smolyak1963] S. A. Smolyak. Quadrature and interpolation formulas for tensor products of certain classes of
   functions. Soviet Mathematics Doklady 4, 1963.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Rule = Callable[[int], tuple[Tensor, Tensor]]  # from a level to nodes and weights of one dimension

MAX_LEVEL = 8  # the largest rule has 9 nodes, and is exact up to the degree 15


def _moment(power: int) -> float:
    """The moment of the standard normal distribution."""
    return 0.0 if power % 2 else float(math.prod(range(1, power, 2)))


@functools.cache
def _nodes(num: int) -> Tensor:
    """The nodes of the nested rule of 1, 3 or 9 nodes, those of smaller rules first.

    The polynomial of the six nodes that extend three to nine, times that of the three, is orthogonal to all of lower
    degree than six (an extension after Kronrod and Patterson, [Genz1996fully]_).
    """
    three = torch.tensor([0.0, math.sqrt(3.0), -math.sqrt(3.0)], dtype=torch.float64)
    if num <= 3:
        return three[:num]
    # x (x^2 - 3) (x^6 + a x^4 + b x^2 + c) is orthogonal to x, x^3 and x^5
    odd = [[_moment(2 * i + 2 * j + 4) - 3 * _moment(2 * i + 2 * j + 2) for j in range(4)] for i in range(3)]
    system = torch.tensor(odd, dtype=torch.float64)
    c, b, a = torch.linalg.solve(system[:, :3], -system[:, 3]).tolist()
    companion = torch.tensor([[0.0, 0.0, -c], [1.0, 0.0, -b], [0.0, 1.0, -a]], dtype=torch.float64)
    roots = torch.linalg.eigvals(companion).real.sqrt().sort().values
    return torch.cat([three, torch.stack([roots, -roots], -1).flatten()])


@functools.cache
def normal_rule(level: int) -> tuple[Tensor, Tensor]:
    """The least nested rule for the standard normal exact up to degree `2 level - 1`: 1, 3 or 9 nodes, and weights."""
    x = _nodes(1 if level == 1 else 3 if level <= 3 else 9)
    powers = torch.arange(len(x), dtype=x.dtype).unsqueeze(-1)
    moments = torch.tensor([_moment(k) for k in range(len(x))], dtype=x.dtype)
    return x, torch.linalg.solve(x.pow(powers), moments)


def sparse_grid(dim: int, level: int, rule: Rule = normal_rule) -> tuple[Tensor, Tensor]:
    """The grid of a rule in several dimensions, exact up to the total degree `2 level - 1` ([Smolyak1963]_).

    Nodes, `S x dim`, and weights, `S`, which sum to one; some are negative. At level 1 there is one node.
    """
    nodes, weights = [], []
    for total in range(max(level - dim, 0), level):  # the levels beyond one, over all dimensions
        sign = (-1) ** (level - 1 - total) * math.comb(dim - 1, level - 1 - total)
        for extra in _compositions(total, dim):
            rules = [rule(1 + i) for i in extra]
            nodes.append(torch.cartesian_prod(*(x for x, _ in rules)).reshape(-1, dim))
            products = torch.cartesian_prod(*(w for _, w in rules)).reshape(-1, dim)
            weights.append(sign * products.prod(-1))
    x, which = torch.unique(torch.cat(nodes), dim=0, return_inverse=True)  # nested ones are equal to all digits
    w = torch.zeros(len(x), dtype=x.dtype).index_add_(0, which, torch.cat(weights))
    is_used = w.abs() > 1e-14
    return x[is_used], w[is_used]


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as an ordered sum of `parts` non-negative ones."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))
