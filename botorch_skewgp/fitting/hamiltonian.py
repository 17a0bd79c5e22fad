r"""Hamiltonian Monte Carlo, for densities of few coordinates that are costly to evaluate.

.. [Duane1987hybrid] S. Duane, A. D. Kennedy, B. J. Pendleton, D. Roweth. Hybrid Monte Carlo. Physics Letters B 195,
   1987.
.. [Hoffman2014nuts] M. D. Hoffman, A. Gelman. The No-U-Turn sampler. JMLR 15, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

# In units of the Laplace approximation's standard deviations. Half of pi would be enough in a Gaussian; the posterior's
# tails, where lengthscales no longer matter, are wider than what the mode shows.
TRAJECTORY = math.pi
FIRST_STEP = 0.7
MAX_LEAPFROG_STEPS = 8
TARGET_ACCEPTANCE = 0.65
HESSIAN_STEP = 0.05  # in logarithms of parameters
WIDEST = 2.0  # likewise

# From coordinates to the log density, which is `-inf` where there is none, and its gradient.
LogDensity = Callable[[Tensor], tuple[Tensor, Tensor]]


class HamiltonianState(NamedTuple):
    r"""Where a chain stands.

    Args:
        position: The `k` coordinates.
        log_density: The log density there, a scalar.
        gradient: Its gradient, `k`.
    """

    position: Tensor
    log_density: Tensor
    gradient: Tensor


class HamiltonianInfo(NamedTuple):
    r"""What a step did.

    Args:
        acceptance: The probability with which the end of the trajectory was accepted.
        num_evaluations: The number of evaluations of the density.
    """

    acceptance: float
    num_evaluations: int


class StepSize(NamedTuple):
    r"""The leapfrog's step size while it is learned by dual averaging ([Hoffman2014nuts]_, section 3.2).

    Args:
        log_step: The logarithm of the step size to try next.
        log_average: The logarithm of the step size to keep.
        error: The average of how far acceptance was below its target.
        num_trajectories: The number of trajectories so far.
    """

    log_step: float = math.log(FIRST_STEP)
    log_average: float = math.log(FIRST_STEP)
    error: float = 0.0
    num_trajectories: int = 0

    def adapt(self, acceptance: float) -> StepSize:
        r"""Learn from a trajectory.

        Args:
            acceptance: The probability with which its end was accepted.
        """
        count = self.num_trajectories + 1
        weight, rate = 1 / (count + 10), count**-0.75
        error = (1 - weight) * self.error + weight * (TARGET_ACCEPTANCE - acceptance)
        log_step = math.log(2 * FIRST_STEP) - math.sqrt(count) / 0.05 * error
        return StepSize(log_step, rate * log_step + (1 - rate) * self.log_average, error, count)


class HamiltonianSampler:
    r"""A Markov chain whose stationary distribution is a density ([Duane1987hybrid]_).

    A sampler holds the density and the scales of its coordinates, and no other state: `step` is a pure function of the
    state, the step size and the generator.

    Example:
        >>> normal = lambda z: (-0.5 * z.square().sum(), -z)  # a log density and its gradient
        >>> sampler = HamiltonianSampler(normal, torch.eye(2, dtype=torch.double))
        >>> state, info = sampler.step(sampler.init(torch.zeros(2, dtype=torch.double)), 0.5, generator)
    """

    def __init__(self, density: LogDensity, root: Tensor) -> None:
        r"""
        Args:
            density: The log density and its gradient.
            root: A `k x k` matrix in whose columns as a basis the density is nearly standard normal; see
                `laplace_root`.
        """
        self.density, self.root = density, root

    def init(self, position: Tensor) -> HamiltonianState:
        r"""Make a state.

        Args:
            position: The `k` coordinates.
        """
        return HamiltonianState(position, *self.density(position))

    def step(
        self, state: HamiltonianState, step_size: float, generator: torch.Generator | None = None
    ) -> tuple[HamiltonianState, HamiltonianInfo]:
        r"""Follow one trajectory of random length, and accept or reject its end.

        Args:
            state: Where the chain stands.
            step_size: The size of the leapfrog's steps.
            generator: The source of randomness.
        """
        device = None if generator is None else generator.device
        kind: dict[str, Any] = {"generator": generator, "device": device, "dtype": torch.float64}
        length = TRAJECTORY * (0.5 + float(torch.rand((), **kind)))
        num_steps = min(max(round(length / step_size), 1), MAX_LEAPFROG_STEPS)
        velocity = torch.randn(state.position.shape, **kind).to(state.position)
        end, last_velocity, num_evaluations = self.leapfrog(state, velocity, step_size, num_steps)
        kinetic = 0.5 * (last_velocity.square().sum() - velocity.square().sum())
        change = float(end.log_density - state.log_density - kinetic)
        acceptance = math.exp(min(change, 0.0)) if math.isfinite(change) else 0.0
        accepted = float(torch.rand((), **kind)) < acceptance
        return end if accepted else state, HamiltonianInfo(acceptance, num_evaluations)

    def leapfrog(
        self, state: HamiltonianState, velocity: Tensor, step_size: float, num_steps: int
    ) -> tuple[HamiltonianState, Tensor, int]:
        r"""Follow a trajectory: half a kick, then moves with whole kicks between them, and half a kick.

        Args:
            state: Where it starts.
            velocity: Its velocity there, `k`, in the basis of the root's columns.
            step_size: The size of a step.
            num_steps: The number of steps; fewer if the density vanishes on the way.

        Returns:
            Where it ends, its velocity there, and the number of evaluations of the density.
        """
        for i in range(num_steps):
            velocity = velocity + 0.5 * step_size * self.root.mT @ state.gradient
            state = self.init(state.position + step_size * self.root @ velocity)
            if not bool(state.log_density.isfinite()):
                return state, velocity, i + 1
            velocity = velocity + 0.5 * step_size * self.root.mT @ state.gradient
        return state, velocity, num_steps


def laplace_root(density: LogDensity, state: HamiltonianState) -> Tensor:
    """The symmetric root of the inverse of the negative Hessian at a point, by differences of the gradient.

    Away from a mode the Hessian may have any sign: its eigenvalues are taken as absolute values, and standard
    deviations are limited, as the density is far from normal where it is flat.

    Args:
        density: The log density and its gradient.
        state: The point.
    """
    steps = HESSIAN_STEP * torch.eye(len(state.position)).to(state.position)
    hessian = torch.stack([density(state.position + step)[1] - state.gradient for step in steps]) / HESSIAN_STEP
    eigenvalues, vectors = torch.linalg.eigh(0.5 * (hessian + hessian.mT))
    return vectors * eigenvalues.abs().rsqrt().clamp(max=WIDEST) @ vectors.mT
