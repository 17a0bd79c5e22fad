r"""The interface that every Markov chain sampler of a truncated normal shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class SamplerState(NamedTuple):
    r"""The state of all chains.

    Args:
        position: A `batch_shape x num_chains x p` tensor in the sampler's own coordinates.
        log_likelihood: A `batch_shape x num_chains` tensor, cached by samplers that need a likelihood.
        slope: Its gradient in the position, likewise.
    """

    position: Tensor
    log_likelihood: Tensor | None = None
    slope: Tensor | None = None


class SamplerInfo(NamedTuple):
    r"""Counts of a step.

    Args:
        num_evaluations: A `batch_shape x num_chains` integer tensor: wall reflections of a reflective step, gradients
            of a Hamiltonian one.
        scores: Functions of positions whose means are zero for draws of the target, `num_steps x num_chains x j`, of
            samplers that have them at hand.
    """

    num_evaluations: Tensor
    scores: Tensor | None = None


class Sampler(ABC):
    r"""A Markov chain whose stationary distribution is a truncated normal.

    `step` is a pure function of the state and the generator. Chains are a batch dimension.

    Example:
        >>> sampler = ReflectiveEllipticalSliceSampler(distribution)
        >>> state = sampler.init(start)
        >>> state, positions, info = sampler.run(state, num_steps=256, generator=generator)
        >>> rows = sampler.rows(positions, generator)
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        r"""
        Args:
            distribution: The truncated normal to draw from.
        """
        self.distribution = distribution

    @abstractmethod
    def init(self, rows: Tensor) -> SamplerState:
        r"""Make a state from feasible rows.

        Args:
            rows: A `batch_shape x num_chains x m` tensor of values of `u` inside the bounds.
        """

    @abstractmethod
    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Move every chain once."""

    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        r"""Move every chain `num_steps` times.

        Returns:
            The last state, the positions as a `batch_shape x num_steps x num_chains x p` tensor, and the info with
            `num_evaluations` summed over the steps.
        """
        positions, evaluations = [], torch.zeros((), dtype=torch.long, device=state.position.device)
        for _ in range(num_steps):
            state, info = self.step(state, generator)
            positions.append(state.position)
            evaluations = evaluations + info.num_evaluations
        return state, torch.stack(positions, dim=-3), SamplerInfo(num_evaluations=evaluations)

    @abstractmethod
    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Map positions, `... x p`, to rows `u`, `... x m`, inside the bounds."""


class RowSampler(Sampler):
    """A sampler whose positions are rows less their mean, `u - mean`."""

    def init(self, rows: Tensor) -> SamplerState:
        r"""Make a state from feasible rows.

        Args:
            rows: A `batch_shape x num_chains x m` tensor of values of `u` inside the bounds.

        Raises:
            ValueError: If the shape is another one, or rows are not inside their bounds.
        """
        distribution = self.distribution
        batch_shape, m = distribution.batch_shape, distribution.num_rows
        if rows.dim() != len(batch_shape) + 2 or rows.shape[:-2] != batch_shape or rows.shape[-1] != m:
            expected = " x ".join(str(size) for size in (*batch_shape, "num_chains", m))
            raise ValueError(f"rows must be {expected}; got {tuple(rows.shape)}.")
        rows = rows.detach().to(distribution.mean)
        outside = rows != distribution.factor_of_draws.clamp(rows)
        if bool(outside.any()):
            places = outside.flatten(0, -2).any(0).nonzero().squeeze(-1).tolist()[:10]
            raise ValueError(
                f"{int(outside.sum())} of the {rows.numel()} starting values, of rows {places}, are not inside their "
                "bounds; feasible_start finds such rows."
            )
        return SamplerState(position=rows - distribution.mean.unsqueeze(-2))

    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Map positions, `... x m`, to rows `u`, `... x m`, inside the bounds; `generator` is not used."""
        mean, factor = self.distribution.mean.unsqueeze(-2), self.distribution.factor_of_draws
        rows = mean + positions.reshape(*mean.shape[:-2], -1, mean.shape[-1])
        if self.distribution.heights is not None:
            return factor.clamp(rows).reshape(positions.shape)
        return rows.clamp_(factor.lower, factor.upper).reshape(positions.shape)  # adding rounds; in place: it is large
