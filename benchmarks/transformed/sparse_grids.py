"""Sparse grids ([Smolyak1963]_) of nested rules for the normal ([Genz1996fully]_), as of the paper's figure 3.

.. [Genz1996fully] Genz, Keister. Journal of Computational and Applied Mathematics 71, 1996.
.. [Smolyak1963] Smolyak. Soviet Mathematics Doklady 4, 1963.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Rule = Callable[[int], tuple[Tensor, Tensor]]  # from a level to nodes and weights of one dimension
# Of the nested rules, of 1, 3 and 9 nodes in this order with both signs; the largest is exact up to the degree 15.
POSITIVE_NODES = (3**0.5, 0.741095349994540853, 2.86127957605705819, 4.18495601767273233)


@functools.cache
def normal_rule(level: int) -> tuple[Tensor, Tensor]:
    """The least nested rule for the standard normal exact up to degree `2 level - 1`: 1, 3 or 9 nodes, and weights."""
    count = 1 if level == 1 else 3 if level <= 3 else 9
    nodes = [0.0, *(sign * x for x in POSITIVE_NODES for sign in (1, -1))]
    x = torch.tensor(nodes[:count], dtype=torch.float64)
    moments = [0.0 if k % 2 else float(math.prod(range(1, k, 2))) for k in range(count)]
    powers = x.pow(torch.arange(count).unsqueeze(-1))
    return x, torch.linalg.solve(powers, x.new_tensor(moments))


def sparse_grid(dim: int, level: int, rule: Rule = normal_rule) -> tuple[Tensor, Tensor]:
    """Nodes, `S x dim`, and signed weights, `S`, exact up to the total degree `2 level - 1` ([Smolyak1963]_)."""
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
