r"""The order by halving, compiled for CPUs: a group's sums and its sort do not leave the cache."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from botorch_skewgp.truncated.compilation import compiled


@compiled()
def _halve(points, order):
    """Order `S x n` points: every group of `S / 2^k` of them, in place, along the axis with the largest variance."""
    num_points, n = points.shape
    sums, squares = np.empty(n), np.empty(n)
    groups = 1
    while groups < num_points:
        first = 0
        for group in range(groups):
            last = ((group + 1) * num_points - 1) // groups + 1
            size = last - first
            if size > 1:
                sums[:] = 0.0
                squares[:] = 0.0
                for i in range(first, last):
                    for j in range(n):
                        value = points[order[i], j]
                        sums[j] += value
                        squares[j] += value * value
                widest, variance = 0, -np.inf
                for j in range(n):
                    spread = squares[j] - sums[j] * sums[j] / size
                    if spread > variance:
                        widest, variance = j, spread
                along = np.empty(size)
                for i in range(size):
                    along[i] = points[order[first + i], widest]
                order[first:last] = order[first:last][np.argsort(along, kind="mergesort")]
            first = last
        groups *= 2


def order_by_halving(points: Tensor) -> Tensor:
    r"""An order in which points that are close come close, by halving groups along their widest axis.

    Args:
        points: An `S x n` tensor on a CPU, centred.

    Returns:
        A permutation of `0 .. S - 1`.
    """
    order = torch.arange(len(points))
    _halve(points.detach().double().contiguous().numpy(), order.numpy())
    return order
