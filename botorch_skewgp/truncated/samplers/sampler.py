r"""The interface that every Markov chain sampler of a truncated normal shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class SamplerState(NamedTuple):
    """The state of all chains; samplers that need a likelihood keep it and its gradient in the position."""

    position: Tensor  # num_chains x p, in the sampler's own coordinates
    log_likelihood: Tensor | None = None  # num_chains
    slope: Tensor | None = None  # num_chains x p


class SamplerInfo(NamedTuple):
    """What a run tells of its chains."""

    num_evaluations: Tensor  # num_chains; reflections, or gradients
    scores: Tensor | None = None  # num_steps x num_chains x j; of mean zero for exact draws


class Sampler(ABC):
    """A Markov chain of a single truncated normal, else a `ValueError`; `run` is pure, and chains are a batch."""

    def __init__(self, distribution: TruncatedNormal) -> None:
        if distribution.batch_shape:
            raise ValueError(f"{type(self).__name__} draws from a single distribution; got a batch.")
        self.distribution = distribution

    @abstractmethod
    def init(self, rows: Tensor) -> SamplerState:
        """Make a state from feasible rows, `num_chains x m`."""

    @abstractmethod
    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        """Move every chain; returns the last state, positions `num_steps x num_chains x p`, and the summed counts."""

    @abstractmethod
    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Map positions, `... x p`, to rows `u`, `... x m`, inside the bounds."""


class RowSampler(Sampler):
    """A sampler whose positions are rows less their mean, `u - mean`, which moves step by step."""

    @abstractmethod
    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Move every chain once."""

    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        positions, evaluations = [], torch.zeros((), dtype=torch.long, device=state.position.device)
        for _ in range(num_steps):
            state, info = self.step(state, generator)
            positions.append(state.position)
            evaluations = evaluations + info.num_evaluations
        return state, torch.stack(positions), SamplerInfo(num_evaluations=evaluations)

    def init(self, rows: Tensor) -> SamplerState:
        """Make a state from rows, `num_chains x m`; `ValueError` if they are not inside their bounds."""
        distribution = self.distribution
        if rows.dim() != 2 or rows.shape[-1] != distribution.num_rows:
            raise ValueError(f"rows must be num_chains x {distribution.num_rows}; got {tuple(rows.shape)}.")
        rows = rows.detach().to(distribution.mean)
        outside = rows != distribution.factor.clamp(rows)
        if bool(outside.any()):
            raise ValueError(
                f"{int(outside.sum())} of the {rows.numel()} starting values, of rows "
                f"{outside.any(0).nonzero().squeeze(-1).tolist()[:10]}, are not inside their bounds; feasible_start "
                "finds such rows."
            )
        return SamplerState(position=rows - distribution.mean)

    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Map positions, `... x m`, to rows `u`, `... x m`, inside the bounds; `generator` is not used."""
        rows = self.distribution.mean + positions
        if self.distribution.heights is not None:
            return self.distribution.factor.clamp(rows)
        return rows.clamp_(self.distribution.lower, self.distribution.upper)  # adding rounds; in place: it is large
