"""How a model's data become rows: found, checked and merged once for many hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.likelihoods import OutcomeScale, RowLikelihood
from botorch_skewgp.models.inputs import check_sums_without_noise
from botorch_skewgp.models.panel import Panel
from botorch_skewgp.models.state import ModelState
from botorch_skewgp.observations import Observation
from botorch_skewgp.rows import ColumnLayout, Rows


@dataclass(frozen=True, eq=False)
class RowBlock:
    """The rows of one object of observations.

    Args:
        observation: The observations, whose indices are columns if there are judges.
        likelihood: The part of the likelihood that takes them.
        rows: Their rows at the hyperparameters of the plan, without gradients.
        has_own_noise: Whether noise that rows share becomes noise of each row's own where possible.
        first: The rows that are kept as equal ones are merged; all if `None`.
    """

    observation: Observation
    likelihood: RowLikelihood
    rows: Rows
    has_own_noise: bool = False
    first: Tensor | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether the rows depend on no parameter that is learned."""
        return not any(parameter.requires_grad for parameter in self.likelihood.parameters())

    def with_own_noise(self) -> RowBlock:
        """The block whose rows have noise of their own."""
        return replace(self, rows=self.rows.with_own_noise(), has_own_noise=True)

    def merged(self) -> RowBlock:
        """The block with equal rows once, with their number, if they may be merged."""
        if not self.rows.can_merge:
            return self
        rows, first = self.rows.merged()
        return replace(self, rows=rows, first=first)

    def at_present(self, scale: OutcomeScale) -> Rows:
        """The rows at the present hyperparameters: noise, bounds and slips are new, and all else is as it was."""
        known = self.rows
        if self.is_fixed:
            return known
        rows = self.likelihood.rows(self.observation, known.noise, scale)
        rows = rows.with_own_noise() if self.has_own_noise else rows
        rows = rows if self.first is None else rows.select(self.first)
        return replace(rows, index=known.index, reads=None, count=known.count, judge=known.judge)


@dataclass(frozen=True, eq=False)
class RowPlan:
    """The rows of data over the columns of the training points.

    Args:
        blocks: The rows of each object of observations.
        scale: The location and scale of outcomes.
        state: What the blocks depend on, but for learned parameters.
    """

    blocks: Sequence[RowBlock]
    scale: OutcomeScale
    state: ModelState

    def rows(self, like: Tensor) -> Rows:
        """The rows at the present hyperparameters."""
        if not self.blocks:
            return Rows.empty(like)
        if all(block.is_fixed for block in self.blocks):
            return self._fixed_rows
        return Rows.cat([block.at_present(self.scale) for block in self.blocks])

    @cached_property
    def _fixed_rows(self) -> Rows:
        return Rows.cat([block.rows for block in self.blocks])


@torch.no_grad()
def row_blocks(
    observations: Sequence[Observation],
    likelihood: RowLikelihood,
    scale: OutcomeScale,
    layout: ColumnLayout,
    panel: Panel | None,
    column_points: Tensor | None,
) -> list[RowBlock]:
    """The rows of observations over columns; those of equal points are one if the points of columns are given."""
    like = torch.empty(0, dtype=torch.float64, device=layout.slope_points.device)
    first_equal = None if column_points is None else layout.first_equal(column_points)
    blocks = []
    for entry in observations if panel is None else panel.resolve(observations):
        rows = likelihood.rows(entry, like, scale)
        if entry.answer_weights is not None and rows.count is None:
            raise UnsupportedError(
                f"The rows of {type(entry).__name__} observations ignore weights; let the likelihood's `rows` "
                "return rows.weighted(observation.answer_weights)."
            )
        rows = layout.resolve(rows if panel is None else panel.with_judges(rows))
        if first_equal is not None:
            rows = replace(rows, index=first_equal[rows.index])
        block = RowBlock(entry, likelihood.for_kind(type(entry)), rows)
        block = block if rows.heights is None else block.with_own_noise()
        check_sums_without_noise(block.rows, layout.num_columns)
        blocks.append(block)
    return blocks


def merged_blocks(blocks: Sequence[RowBlock], has_noiseless_rows: bool) -> list[RowBlock]:
    """The blocks with equal rows once; `has_noiseless_rows` tells whether there are others, without noise."""
    noisy = [block.with_own_noise() for block in blocks]
    # No sampler draws merged rows of answers that may be slips while other rows have no noise.
    may_slip = any(block.rows.heights is not None for block in noisy)
    noiseless = has_noiseless_rows or any(_has_noiseless(block.rows) for block in noisy)
    return [*blocks] if may_slip and noiseless else [block.merged() for block in noisy]


def _has_noiseless(rows: Rows) -> bool:
    return bool((~rows.is_equality & (rows.noise == 0)).any())
