"""Moments of the components of mixtures in cells, compiled for CPUs."""

from __future__ import annotations

import numpy as np

from botorch_skewgp.truncated.compilation import compiled

SIGNATURE = "void(f8[:, ::1], f8[:, :], i8[::1], f8[::1], f8[::1], f8[:, :, ::1])"  # compiled once, for any strides
ORDERS = 4  # at a time, whose sums fit in registers


@compiled(SIGNATURE, fastmath={"reassoc", "contract"})
def add_moments(means, probabilities, points, least, width, moments):
    """As in `mixture_cells`, with arrays for tensors; a multiple of `ORDERS` moments.

    Components are sorted by cells first, and added up several at once; by elements, as a slice takes longer to compile
    than all the rest.
    """
    num_orders, _, num_cells = moments.shape
    size = means.shape[1]
    cells, place = np.empty(size, np.uint32), np.empty(size)
    distance, power = np.empty(size), np.empty(size)  # of the components in order
    end = np.empty(num_cells + 1, np.int64)
    for i, point in enumerate(points):
        begin, scale = least[i], 1 / width[i]
        for component in range(size):
            x = (means[point, component] - begin) * scale
            cell = min(int(x), num_cells - 1)  # the reciprocal may round up
            cells[component] = cell
            place[component] = x - (cell + 0.5)
        for cell in range(num_cells + 1):
            end[cell] = 0
        for component in range(size):
            end[cells[component] + 1] += 1
        for cell in range(num_cells):
            end[cell + 1] += end[cell]
        for component in range(size):  # the first of the next cell becomes the end of this one
            k = end[cells[component]]
            end[cells[component]] = k + 1
            distance[k], power[k] = place[component], probabilities[point, component]
        first = 0
        for cell in range(num_cells):
            for order in range(0, num_orders, ORDERS):
                a = b = c = d = 0.0
                for k in range(first, end[cell]):
                    x, term = distance[k], power[k]
                    a += term
                    term *= x
                    b += term
                    term *= x
                    c += term
                    term *= x
                    d += term
                    power[k] = term * x
                moments[order, i, cell] += a
                moments[order + 1, i, cell] += b
                moments[order + 2, i, cell] += c
                moments[order + 3, i, cell] += d
            first = end[cell]
