r"""Adaptive multiple importance sampling, for costly densities of up to a few dozen coordinates.

Each round's proposal is a Student t fitted to all points so far; all points have weights with respect to the mixture of
all proposals (the balance heuristic of [Veach1995optimally]_, equation 9).

.. [Veach1995optimally] Veach, Guibas. Optimally combining sampling techniques for Monte Carlo rendering. SIGGRAPH 1995.
.. [Koblents2015population] Koblents, Míguez. Statistics and Computing 25, 2015.
.. [Kitagawa1996monte] Kitagawa. Monte Carlo filter and smoother for non-Gaussian nonlinear state space models. 1996.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.diagnostics import MIN_WEIGHTS, pareto_shape

DEGREES_OF_FREEDOM = 5  # of proposals, whose tails must not be lighter than those of the density
HESSIAN_STEP = 0.05  # in coordinates, which are logarithms where parameters are positive
MAX_NEWTON_STEP = 2.0  # in standard deviations, for each direction
MIN_EIGENVALUE = 1e-6  # of a fitted squared scale
TEMPERING = 0.85  # by which exponents of weights shrink until enough points count for a fit

# From coordinates `k` to the log density, `-inf` where there is none, and its gradient.
GradientOfLogDensity = Callable[[Tensor], tuple[Tensor, Tensor]]


class StudentProposal(NamedTuple):
    """A multivariate Student t distribution of `DEGREES_OF_FREEDOM` degrees of freedom."""

    location: Tensor  # the `k` coordinates of its centre
    root: Tensor  # a symmetric `k x k` root of its squared scale, `root @ root`

    def draw(self, num_points: int, generator: torch.Generator) -> Tensor:
        """Draw points, `num_points x k`."""
        normal, to_square = (
            torch.randn(num_points, size, generator=generator, device=generator.device, dtype=torch.float64)
            for size in (len(self.location), DEGREES_OF_FREEDOM)
        )
        chi_squared = to_square.to(self.location).square().sum(-1, keepdim=True)
        normal = normal.to(self.location)
        return self.location + normal * (DEGREES_OF_FREEDOM / chi_squared).sqrt() @ self.root

    def log_density(self, x: Tensor) -> Tensor:
        """The log density of points, `N`. `x` is `N x k`."""
        k, nu = len(self.location), DEGREES_OF_FREEDOM
        white = torch.linalg.solve(self.root, x - self.location, left=False)
        log_constant = math.lgamma(0.5 * (nu + k)) - math.lgamma(0.5 * nu) - 0.5 * k * math.log(nu * math.pi)
        log_kernel = -0.5 * (nu + k) * torch.log1p(white.square().sum(-1) / nu)
        return log_constant - torch.linalg.slogdet(self.root).logabsdet + log_kernel


Share = tuple[StudentProposal, int]  # a proposal and the number of points drawn from it


class WeightedPoints(NamedTuple):
    """Points weighted to represent a density."""

    x: Tensor  # the points, `N x k`
    log_density: Tensor  # the log density there, `N`
    log_weights: Tensor  # the logarithms of the weights, which sum to one, `N`

    @property
    def effective_size(self) -> float:
        """The inverse of the sum of squared weights; too large where the proposals miss a part of the density."""
        return math.exp(-float((2 * self.log_weights).logsumexp(0)))

    @property
    def pareto_shape(self) -> float:
        """The shape of the weights' tail; averages are reliable up to 0.7. Infinite for few points."""
        proper = self.log_weights[self.log_weights.isfinite()]
        return float(pareto_shape(proper)) if len(proper) >= MIN_WEIGHTS else math.inf

    def resampled(self, num_draws: int, generator: torch.Generator) -> Tensor:
        """The positions of points drawn by their weights, systematically ([Kitagawa1996monte]_, appendix)."""
        cumulative = self.log_weights.exp().cumsum(0)
        offset = torch.rand((), generator=generator, device=generator.device, dtype=torch.float64).to(cumulative)
        steps = (torch.arange(num_draws).to(cumulative) + offset) / num_draws
        return torch.searchsorted(cumulative / cumulative[-1], steps, right=True).clamp(max=len(cumulative) - 1)


class AdaptiveImportanceSampler:
    """The points of all rounds; fitted squared scales shrink towards that of the symmetric `k x k` root."""

    def __init__(self, log_densities: Callable[[Tensor], Tensor], root: Tensor) -> None:
        self.log_densities, self.root = log_densities, root
        self._proposals: list[Share] = []
        self._x, self._log_density = root.new_zeros(0, len(root)), root.new_zeros(0)

    def draw_round(self, proposals: Sequence[Share], generator: torch.Generator) -> WeightedPoints:
        """Draw more points; all of them, whose weights are not finite if none has density."""
        new = torch.cat([proposal.draw(num_points, generator) for proposal, num_points in proposals])
        self._proposals += proposals
        self._x = torch.cat([self._x, new])
        self._log_density = torch.cat([self._log_density, self.log_densities(new).to(self.root)])
        mixture = [proposal.log_density(self._x) + math.log(number) for proposal, number in self._proposals]
        log_weights = self._log_density - torch.stack(mixture).logsumexp(0)
        self.points = WeightedPoints(self._x, self._log_density, log_weights.log_softmax(0))
        return self.points

    def fitted_proposal(self) -> StudentProposal:
        r"""Of the points' mean and covariance; weights are tempered ([Koblents2015population]_, section 4)."""
        points, k = self.points, len(self.root)
        tempered = points
        wanted = min(3 * k, len(points.x) / 3, int(points.log_weights.isfinite().sum()) / 2)
        exponent = 1.0
        while tempered.effective_size < wanted:
            exponent *= TEMPERING
            tempered = points._replace(log_weights=(exponent * points.log_weights).log_softmax(0))
        weights = tempered.log_weights.exp()
        location = weights @ points.x
        deviation = points.x - location
        own = tempered.effective_size / (tempered.effective_size + k)
        square = own * deviation.mT @ (weights.unsqueeze(-1) * deviation) + (1 - own) * self.root @ self.root
        eigenvalues, vectors = torch.linalg.eigh(square)
        return StudentProposal(location, vectors * eigenvalues.clamp(min=MIN_EIGENVALUE).sqrt() @ vectors.mT)


def gradient_and_hessian(density: GradientOfLogDensity, x: Tensor, step: float) -> tuple[Tensor, Tensor]:
    """The gradient of a log density, and its Hessian by differences of gradients."""
    gradient = density(x)[1]
    hessian = torch.stack([density(x + e)[1] - gradient for e in step * torch.eye(len(x)).to(x)]) / step
    return gradient, 0.5 * (hessian + hessian.mT)


def laplace_proposal(density: GradientOfLogDensity, x: Tensor, widest: float) -> StudentProposal:
    """One Newton step from a point, scaled by the Hessian there, with absolute values of its eigenvalues."""
    gradient, hessian = gradient_and_hessian(density, x, HESSIAN_STEP)
    eigenvalues, vectors = torch.linalg.eigh(hessian)
    scales = eigenvalues.abs().rsqrt().clamp(max=widest)
    newton = (scales * (vectors.mT @ gradient)).clamp(-MAX_NEWTON_STEP, MAX_NEWTON_STEP)
    return StudentProposal(x + vectors @ (scales * newton), vectors * scales @ vectors.mT)
