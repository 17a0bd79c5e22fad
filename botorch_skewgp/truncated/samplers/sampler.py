r"""The interface that every Markov chain sampler of a truncated normal shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class SamplerState(NamedTuple):
    """The state of all chains.

    Args:
        position: The positions, `num_chains x p`, in the sampler's own coordinates.
        log_likelihood: The log likelihoods there, `num_chains`, for samplers that need them.
        slope: Their gradients in the positions, `num_chains x p`.
    """

    position: Tensor
    log_likelihood: Tensor | None = None
    slope: Tensor | None = None


class SamplerInfo(NamedTuple):
    """What a run counted.

    Args:
        num_evaluations: The number of reflections, or of gradients, of each chain, `num_chains`.
        scores: Functions of positions whose mean is zero for exact draws, `num_steps x num_chains x j`.
    """

    num_evaluations: Tensor
    scores: Tensor | None = None


class Sampler(ABC):
    """A Markov chain of a single truncated normal; `run` is pure, and chains are a batch.

    Args:
        distribution: The distribution of which chains are run.
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        self.distribution = distribution

    @abstractmethod
    def init(self, rows: Tensor) -> SamplerState:
        """Make a state.

        Args:
            rows: Rows `u` inside their bounds, `num_chains x m`, from which chains start.
        """

    @abstractmethod
    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        """Move every chain.

        Args:
            state: The state to go on from, which is not changed.
            num_steps: The number of steps of each chain.
            generator: The source of random numbers; the global one of torch if `None`.

        Returns:
            The last state, the positions after each step, `num_steps x num_chains x p`, and counts over all steps.
        """

    @abstractmethod
    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Map positions to rows `u`, `... x m`, inside the bounds.

        Args:
            positions: Positions, `... x p`, as `run` returns them.
            generator: The source of random numbers for what positions leave open, such as noise.
        """


class RowSampler(Sampler):
    """A sampler whose positions are rows less their mean, `u - mean`, which moves step by step."""

    @abstractmethod
    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Move every chain once; arguments and results are those of `run`, without the positions."""

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
