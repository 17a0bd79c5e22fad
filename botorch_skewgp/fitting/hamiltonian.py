r"""Hamiltonian Monte Carlo in coordinates that a Laplace approximation makes nearly standard.

.. [Duane1987hybrid] S. Duane, A. D. Kennedy, B. J. Pendleton, D. Roweth. Hybrid Monte Carlo. Physics Letters B 195,
   1987.
.. [Hoffman2014nuts] M. D. Hoffman, A. Gelman. The No-U-Turn sampler. JMLR 15, 2014.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_skewgp.fitting.unbounded_density import UnboundedDensity

# In units of the Laplace approximation's standard deviations. Half of pi would be enough in a Gaussian; the posterior's
# tails, where lengthscales no longer matter, are wider than what the mode shows.
TRAJECTORY = math.pi
FIRST_STEP = 0.7
MAX_LEAPFROG_STEPS = 8
TARGET_ACCEPTANCE = 0.65
HESSIAN_STEP = 0.05  # in logarithms of parameters
MOST_SPREAD = 2.0  # likewise


class Chain:
    """Hamiltonian Monte Carlo in coordinates that the Laplace approximation at the start makes nearly standard."""

    def __init__(self, density: UnboundedDensity, x: Tensor, generator: torch.Generator) -> None:
        self.density, self.generator = density, generator
        self.x = x
        self.log_density, self.gradient = density(x)
        self.root = laplace_root(density, x, self.gradient)
        self.log_step, self.log_step_mean = math.log(FIRST_STEP), math.log(FIRST_STEP)
        self.anchor, self.error, self.count = math.log(2 * FIRST_STEP), 0.0, 0

    def _uniform(self) -> float:
        return float(torch.rand((), generator=self.generator, dtype=torch.float64))

    def move(self, adapt: bool) -> float:
        """One trajectory; returns its probability of acceptance."""
        step = math.exp(self.log_step if adapt else self.log_step_mean)
        length = TRAJECTORY * (0.5 + self._uniform())
        num_steps = min(max(round(length / step), 1), MAX_LEAPFROG_STEPS)
        velocity = torch.randn(self.x.shape, generator=self.generator, dtype=self.x.dtype).to(self.x)
        x, log_density, gradient = self.x, self.log_density, self.gradient
        energy = log_density - 0.5 * velocity.square().sum()
        for _ in range(num_steps):
            velocity = velocity + 0.5 * step * self.root.mT @ gradient
            x = x + step * self.root @ velocity
            log_density, gradient = self.density(x)
            if not bool(log_density.isfinite()):
                break
            velocity = velocity + 0.5 * step * self.root.mT @ gradient
        change = float(log_density - 0.5 * velocity.square().sum() - energy)
        probability = math.exp(min(change, 0.0)) if math.isfinite(change) else 0.0
        if self._uniform() < probability:
            self.x, self.log_density, self.gradient = x, log_density, gradient
        if adapt:
            self.count += 1
            weight = 1 / (self.count + 10)
            self.error = (1 - weight) * self.error + weight * (TARGET_ACCEPTANCE - probability)
            self.log_step = self.anchor - math.sqrt(self.count) / 0.05 * self.error
            rate = self.count**-0.75
            self.log_step_mean = rate * self.log_step + (1 - rate) * self.log_step_mean
        return probability


def laplace_root(density: UnboundedDensity, x: Tensor, gradient: Tensor) -> Tensor:
    """The symmetric root of the inverse of the negative Hessian at a point, by differences of the gradient.

    Away from a mode the Hessian may have any sign: its eigenvalues are taken as absolute values, and standard
    deviations are limited, as the density is far from normal where it is flat.
    """
    steps = HESSIAN_STEP * torch.eye(len(x)).to(x)
    hessian = torch.stack([density(x + step)[1] - gradient for step in steps]) / HESSIAN_STEP
    eigenvalues, vectors = torch.linalg.eigh(0.5 * (hessian + hessian.mT))
    return vectors * eigenvalues.abs().rsqrt().clamp(max=MOST_SPREAD) @ vectors.mT
