r"""Sorting many short lists of numbers, compiled for CPUs: a radix sort on the bits of double precision numbers.

Torch's own sort of such lists takes three times as long, and diagnostics of a few thousand draws hardly do anything
else.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from botorch_skewgp.truncated.compilation import compiled

BITS = 8  # of a digit
DIGITS = 64 // BITS
BASE = 1 << BITS


@compiled()
def _argsort(bits, order):
    """Fill `order`, `k x n`, with the stable order of every row of `bits`, `k x n`, double precision numbers."""
    k, n = bits.shape
    keys, other_keys, other_order = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.int64)
    counts = np.empty((DIGITS, BASE), np.int64)
    last, sign = np.uint64(BASE - 1), np.uint64(1 << 63)
    for row in range(k):
        for digit in range(DIGITS):
            for value in range(BASE):
                counts[digit, value] = 0
        source, target, from_order, to_order = keys, other_keys, order[row], other_order
        for i in range(n):
            key = bits[row, i]
            key = ~key if key & sign else key | sign  # negative numbers come first, and in reverse
            keys[i] = key
            from_order[i] = i
            for digit in range(DIGITS):
                counts[digit, (key >> np.uint64(BITS * digit)) & last] += 1
        for digit in range(DIGITS):
            shift, count = np.uint64(BITS * digit), counts[digit]
            if count[(source[0] >> shift) & last] == n:  # all the same
                continue
            begin = 0
            for value in range(BASE):
                size = count[value]
                count[value] = begin
                begin += size
            for i in range(n):
                value = (source[i] >> shift) & last
                place = count[value]
                count[value] = place + 1
                target[place] = source[i]
                to_order[place] = from_order[i]
            source, target, from_order, to_order = target, source, to_order, from_order
        for i in range(n):  # by elements: a slice takes longer to compile than all the rest
            order[row, i] = from_order[i]


def argsort(values: Tensor) -> Tensor:
    r"""The order of the last dimension, equal values in the order they come.

    Args:
        values: A `... x n` tensor of double precision on a CPU. NaN with a sign bit come first, others last.

    Returns:
        A `... x n` tensor of indices.
    """
    order = torch.empty(values.shape, dtype=torch.long)
    if values.numel() > 0:
        n = values.shape[-1]
        _argsort(values.detach().contiguous().view(-1, n).numpy().view(np.uint64), order.view(-1, n).numpy())
    return order
