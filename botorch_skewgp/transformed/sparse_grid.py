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
from collections.abc import Iterator

import torch
from torch import Tensor

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
    r"""The smallest nested rule for the standard normal distribution that is exact up to the degree `2 level - 1`.

    Args:
        level: The level, from 1 to 8.

    Returns:
        Its 1, 3 or 9 nodes and their weights.
    """
    x = _nodes(1 if level == 1 else 3 if level <= 3 else 9)
    powers = torch.arange(len(x), dtype=x.dtype).unsqueeze(-1)
    moments = torch.tensor([_moment(k) for k in range(len(x))], dtype=x.dtype)
    return x, torch.linalg.solve(x.pow(powers), moments)


def normal_grid(dim: int, level: int) -> tuple[Tensor, Tensor]:
    r"""The sparse grid of nested rules for the standard normal distribution ([Smolyak1963]_).

    It is exact for polynomials of total degree up to `2 level - 1`. Some weights are negative.

    Args:
        dim: The number of dimensions.
        level: The level, from 1 to 8; at 1 there is one node, the center.

    Returns:
        The nodes, `S x dim`, and their weights, `S`, which sum to one.
    """
    nodes, weights = [], []
    for total in range(max(level - dim, 0), level):  # the levels beyond one, over all dimensions
        sign = (-1) ** (level - 1 - total) * math.comb(dim - 1, level - 1 - total)
        for extra in _compositions(total, dim):
            rules = [normal_rule(1 + i) for i in extra]
            nodes.append(torch.cartesian_prod(*(x for x, _ in rules)).reshape(-1, dim))
            products = torch.cartesian_prod(*(w for _, w in rules)).reshape(-1, dim)
            weights.append(sign * products.prod(-1))
    x, which = torch.unique(torch.cat(nodes), dim=0, return_inverse=True)  # nested, hence equal to all digits
    w = torch.zeros(len(x), dtype=x.dtype).index_add_(0, which, torch.cat(weights))
    is_used = w.abs() > 1e-14
    return x[is_used], w[is_used]


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as an ordered sum of `parts` non-negative ones."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))
