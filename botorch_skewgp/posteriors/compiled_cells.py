"""Moments of the components of mixtures in cells, compiled for CPUs: one pass for all orders."""

from __future__ import annotations

import numpy as np
from numba import njit

SIGNATURE = "void(f8[:, ::1], f8[:, :], i8[::1], f8[::1], f8[::1], f8[:, :, ::1])"  # compiled once, for any strides


@njit(SIGNATURE, cache=True, nogil=True)
def add_moments(means, probabilities, points, least, width, moments):
    """As in `mixture_cells`, with arrays for tensors.

    By elements: a slice takes longer to compile than all the rest.
    """
    num_orders, _, num_cells = moments.shape
    sums = np.empty((num_cells, num_orders))
    for i, point in enumerate(points):
        begin, scale = least[i], 1 / width[i]
        for cell in range(num_cells):
            for order in range(num_orders):
                sums[cell, order] = 0.0
        for component in range(means.shape[1]):
            place = (means[point, component] - begin) * scale
            cell = min(int(place), num_cells - 1)  # the reciprocal may round up
            place -= cell + 0.5
            power = probabilities[point, component]
            for order in range(num_orders):
                sums[cell, order] += power
                power *= place
        for cell in range(num_cells):
            for order in range(num_orders):
                moments[order, i, cell] += sums[cell, order]
