r"""Normal scores of draws and of their distances from the median, compiled for CPUs: one pass over each functional.

In torch the order of the distances needs a sort of its own, and each step goes through all draws again.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from botorch_skewgp.truncated.compilation import compiled


@compiled()
def _score(ordered, order, scores, result):
    """Write the scores of ordered values to their former places; equal ones share that of their average rank."""
    n = ordered.shape[0]
    first = 0
    while first < n:
        last = first
        while last + 1 < n and ordered[last + 1] == ordered[first]:
            last += 1
        for i in range(first, last + 1):
            result[order[i]] = scores[first + last]
        first = last + 1


@compiled()
def _score_all(scores, values, order, bulk, folded):
    """Fill `bulk` and `folded`, `k x n`, with the scores of every row of `values`, `k x n`, and of its distances."""
    k, n = values.shape
    ordered, distance, from_median = np.empty(n), np.empty(n), np.empty(n, np.int64)
    for row in range(k):
        for i in range(n):
            ordered[i] = values[row, order[row, i]]
        _score(ordered, order[row], scores, bulk[row])
        median = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
        below = (n - 1) // 2  # downwards from here, and upwards from the next, distances are in order: they are merged
        above = below + 1
        for i in range(n):
            if above == n or (below >= 0 and abs(ordered[below] - median) <= abs(ordered[above] - median)):
                place = below
                below -= 1
            else:
                place = above
                above += 1
            distance[i] = abs(ordered[place] - median)
            from_median[i] = order[row, place]
        _score(distance, from_median, scores, folded[row])


def normal_scores(values: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    r"""The scores of all values of the last dimension, and of their distances from its median.

    Args:
        values: A `... x n` tensor of double precision on a CPU.
        scores: The scores of twice an average rank, which is at least 2; of length `2 n - 1`.

    Returns:
        Two tensors of the shape of `values`.
    """
    bulk, folded = torch.empty_like(values), torch.empty_like(values)
    if values.numel() > 0:
        rows = (-1, values.shape[-1])
        flat = values.detach().view(rows).numpy()
        _score_all(scores.numpy(), flat, flat.argsort(-1), *(entry.view(rows).numpy() for entry in (bulk, folded)))
    return bulk, folded
