r"""Columns: a point and the quantity there, the value of an output or the slope in an input.

The quantity is coded by an integer: `value_of(o) = o` for the value of output `o`, and `slope_in(d) = -1 - d` for the
derivative of the (first) output in input `d`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_skewgp.rows.rows import Rows


def value_of(output: Tensor) -> Tensor:
    """The code for reading the value of an output."""
    return output


def slope_in(dim: Tensor) -> Tensor:
    """The code for reading the slope in an input; also maps a code back to its input."""
    return -1 - dim


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """The order of a model's columns.

    First the values at all points, output fastest; then the values at pseudo-points; then slopes, each pair of a point
    and an input once.
    """

    num_points: int  # number of training points
    num_outputs: int  # number of outputs
    num_pseudo_points: int  # number of pseudo-points of a skew prior
    slope_points: Tensor  # `c`-dim integer: the points at which slopes are read
    slope_dims: Tensor  # `c`-dim integer: the inputs in which they are read there

    @property
    def first_pseudo_point(self) -> int:
        """The position of the first pseudo-point."""
        return self.num_points * self.num_outputs

    @property
    def num_columns(self) -> int:
        """The number of columns."""
        return self.first_pseudo_point + self.num_pseudo_points + self.slope_points.shape[0]

    def first_equal(self, points: Tensor) -> Tensor:
        """The position of the first column equal to each one, of the same quantity at an equal point.

        Rows over equal columns of different positions have a covariance that is singular up to rounding. Columns of
        pseudo-points are not compared.
        """
        equal = first_of_equal(points.detach())
        outputs = torch.arange(self.num_outputs, device=points.device)
        values = (equal.unsqueeze(-1) * self.num_outputs + outputs).flatten()
        pseudo_points = self.first_pseudo_point + torch.arange(self.num_pseudo_points, device=points.device)
        if not self.slope_points.shape[0]:
            return torch.cat([values, pseudo_points])
        slopes = torch.stack([equal[self.slope_points.to(points.device)], self.slope_dims.to(points.device)], dim=-1)
        first_slope = self.first_pseudo_point + self.num_pseudo_points
        return torch.cat([values, pseudo_points, first_slope + first_of_equal(slopes)])

    def resolve(self, rows: Rows) -> Rows:
        """The rows with positions of columns in place of points and quantities."""
        reads = rows.reads
        if reads is None:
            return rows if self.num_outputs == 1 else replace(rows, index=rows.index * self.num_outputs)
        position = rows.index * self.num_outputs + reads.clamp(min=0)  # the code of a slope is no output
        if self.slope_points.shape[0]:
            pair = torch.stack([rows.index, slope_in(reads)], dim=-1).unsqueeze(-2)
            known = torch.stack([self.slope_points, self.slope_dims], dim=-1).to(pair.device)
            place = (pair == known).all(-1).long().argmax(-1)
            position = torch.where(reads < 0, self.first_pseudo_point + self.num_pseudo_points + place, position)
        return replace(rows, index=position, reads=None)


def first_of_equal(items: Tensor) -> Tensor:
    """The position of the first item, along the first dimension, that is equal to each one."""
    position = torch.arange(len(items), device=items.device)
    if items.shape[-1] and len(items[:, 0].unique()) == len(items):  # a tenth of the time
        return position
    _, group = items.unique(dim=0, return_inverse=True)
    return torch.full_like(position, len(items)).scatter_reduce(0, group, position, "amin")[group]


def slope_columns(blocks: Sequence[Rows]) -> tuple[Tensor, Tensor]:
    r"""The slopes that rows read, each once: points and inputs, `c`-dim integer tensors."""
    pairs = [torch.zeros(0, 2, dtype=torch.long)]
    for rows in blocks:
        if rows.reads is not None and bool((rows.reads < 0).any()):
            which = rows.reads < 0
            pairs.append(torch.stack([rows.index[which], slope_in(rows.reads[which])], dim=-1).cpu())
    points, dims = torch.cat(pairs).unique(dim=0).unbind(-1)
    return points, dims
