"""An order of draws in which those next to each other say similar things."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.trajectories import numba_is_loaded


def space_filling_order(points: Tensor) -> Tensor:
    r"""An order in which points that are close come close, by halving groups again and again along their widest axis.

    Args:
        points: An `S x n` tensor of `S` points in `n` dimensions.

    Returns:
        A permutation of `0 .. S - 1`.
    """
    points = points - points.mean(0)  # sums of squares keep their digits
    if numba_is_loaded(points.device):
        from botorch_skewgp.posteriors.compiled_order import order_by_halving

        return order_by_halving(points)
    return _order_by_halving(points)


def _order_by_halving(points: Tensor) -> Tensor:
    """The order of centred points, all groups of a size at a time."""
    num_points = len(points)
    moments = torch.cat([points, points.square()], dim=-1)
    place = torch.arange(num_points, device=points.device)
    order = place
    for num_groups in (2**level for level in range((num_points - 1).bit_length())):
        group = place * num_groups // num_points
        ends = (torch.arange(1, num_groups + 1, device=points.device) * num_points - 1) // num_groups
        size = ends.diff(prepend=ends.new_tensor([-1])).unsqueeze(-1)
        totals = moments[order].cumsum(0)[ends]
        sums, squares = totals.diff(dim=0, prepend=torch.zeros_like(totals[:1])).tensor_split(2, dim=-1)
        widest = (squares - sums.square() / size).argmax(-1)
        along = points[order, widest[group]]
        low, high = along.aminmax()
        order = order[(group + (along - low) / (2 * (high - low)).clamp(min=torch.finfo(along.dtype).tiny)).argsort()]
    return order
