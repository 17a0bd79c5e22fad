r"""Modes of the posterior of a transformed process's parameters, and nodes around them.

.. [Cappe2008adaptive] Cappé et al. Adaptive importance sampling in general mixture classes. 2008.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from botorch.generation.gen import gen_candidates_scipy
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_skewgp.transformed import student_t
from botorch_skewgp.transformed.regression import effective_number

LogPosterior = Callable[[Tensor], Tensor]  # of coordinates, S x D, to S

START_SPREAD = 2.0  # standard deviation of starts around the modules' own parameters, in every coordinate
TRIED_PER_START = 32  # points, the best of which is the start
REACH = 8.0  # largest distance of a mode from the modules' own parameters, in coordinates
FLOOR = -1e8  # the optimiser's value where the posterior density is zero
LOWEST_MODE = 50.0  # log density below the highest mode's, beyond which modes are left out
MAX_SPREAD = 2.0  # standard deviation of a coordinate on which the data have little information
MIN_RATIO = -7.0  # log of the mass of a mode, relative to the largest, above which it gets nodes
MAX_PRIOR_SPREAD = 3.0  # standard deviation of the wide proposal where the prior is flat
FALL = 2.0  # of the log density, at which widths are measured; at two standard deviations if it is normal
SECANTS = (1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 10.0)  # distances at which the density is evaluated, in standard deviations
PROPOSAL_DF = 5.0  # tails heavier than those of a posterior, for weights that are bounded
WIDENING = 1.2  # of standard deviations, for nodes in the tails
EVEN_SHARE = 0.2  # of the nodes around modes, spread evenly over them
WIDE_SHARE = 0.15  # of all nodes, in the proposal that stays
MIN_MASS = 1e-3  # of a component that is kept
MIN_MISSED = 0.25  # mass of nodes of the wide proposal, above which they become a component
NUM_ROUNDS = 4


class Nodes(NamedTuple):
    """Nodes, `S x D`, and the logarithms of their quadrature weights, `S`."""

    u: Tensor
    log_weight: Tensor

    @classmethod
    def single(cls, u: Tensor) -> Nodes:
        """One node, `D`."""
        return cls(u.unsqueeze(0), u.new_zeros(1))


class Mode(NamedTuple):
    """A mode of the posterior of the parameters, `D`, with the lower Cholesky factor of Laplace's covariance there."""

    center: Tensor
    root: Tensor
    log_density: float

    @property
    def log_mass(self) -> float:
        """The logarithm of the integral around the mode, by Laplace's approximation."""
        log_root = float(self.root.diagonal().log().sum())
        return self.log_density + log_root + 0.5 * len(self.center) * math.log(math.tau)

    def distance(self, u: Tensor) -> float:
        """The distance of a point, `D`, in standard deviations."""
        difference = (u - self.center).unsqueeze(-1)
        return float(torch.linalg.solve_triangular(self.root, difference, upper=False).norm())


class Proposal(NamedTuple):
    """A multivariate t distribution of nodes: its center, `D`, and the lower Cholesky factor of its scale matrix."""

    center: Tensor
    root: Tensor

    def log_density(self, u: Tensor) -> Tensor:
        """The log density at nodes, `S x D` to `S`."""
        D, df = len(self.center), PROPOSAL_DF
        white = torch.linalg.solve_triangular(self.root, (u - self.center).mT, upper=False)
        log_gammas = math.lgamma(0.5 * (df + D)) - math.lgamma(0.5 * df)
        constant = log_gammas - 0.5 * D * math.log(math.pi * df)
        spread = self.root.diagonal().log().sum()
        tail = torch.log1p(white.square().sum(0) / df)
        return constant - spread - 0.5 * (df + D) * tail

    def nodes(self, num_nodes: int, seed: int) -> Tensor:
        """Quasi-random nodes, `num_nodes x D`."""
        normal = _sobol_normal(num_nodes, len(self.center) + 1, seed).to(self.center)
        stretch = (PROPOSAL_DF / student_t.chi_square_quantile(normal[:, :1], PROPOSAL_DF)).sqrt()
        return self.center + (normal[:, 1:] * stretch) @ self.root.mT


class ProposalMixture(NamedTuple):
    """A mixture of proposals, with the number of nodes of each; the last one is wide and stays as it is."""

    components: tuple[Proposal, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, components: Sequence[Proposal], masses: Tensor, wide: Proposal, num_nodes: int) -> ProposalMixture:
        """The mixture with nodes in proportion to masses, in part evenly, and in part of the wide proposal."""
        shares = (1 - EVEN_SHARE) * masses / masses.sum() + EVEN_SHARE / len(masses)
        shares = torch.cat([(1 - WIDE_SHARE) * shares, shares.new_tensor([WIDE_SHARE])])
        counts = (shares * num_nodes).floor().clamp_min(1.0)
        counts[shares.argmax()] += max(num_nodes - int(counts.sum()), 0)
        return cls((*components, wide), tuple(int(count) for count in counts))

    def _log_parts(self, u: Tensor) -> Tensor:
        """The log densities of the components, times their shares, `K x S`."""
        log_densities = torch.stack([component.log_density(u) for component in self.components])
        shares = torch.tensor(self.counts).to(u) / sum(self.counts)
        return log_densities + shares.log().unsqueeze(-1)

    def log_density(self, u: Tensor) -> Tensor:
        """The log density at nodes, `S x D` to `S`."""
        return self._log_parts(u).logsumexp(0)

    def nodes(self, seed: int) -> Tensor:
        """The nodes of all components, `num_nodes x D`."""
        nodes = []
        for k, (component, count) in enumerate(zip(self.components, self.counts, strict=True)):
            nodes.append(component.nodes(count, seed + 1000 * k))
        return torch.cat(nodes)

    def adapted(self, u: Tensor, weights: Tensor) -> ProposalMixture:
        """The mixture with centers, covariances and masses of weighted nodes ([Cappe2008adaptive]_)."""
        responsibilities = weights * torch.softmax(self._log_parts(u), dim=0)
        masses = responsibilities.sum(-1)
        # the wide one gives rise to a narrower one where there is mass that all others miss
        least = [MIN_MASS] * (len(masses) - 1) + [MIN_MISSED]
        kept = [k for k in range(len(masses)) if masses[k] > least[k]]
        components = []
        for k in kept:
            root, weight = self.components[k].root, responsibilities[k] / masses[k]
            center = weight @ u
            deviation = u - center
            covariance = deviation.mT @ (weight.unsqueeze(-1) * deviation)
            effective = effective_number(weight)
            share = effective / (effective + 2 * u.shape[-1])  # few effective nodes determine no covariance
            covariance = share * WIDENING**2 * covariance + (1 - share) * root @ root.mT
            components.append(Proposal(center, torch.linalg.cholesky(covariance)))
        return ProposalMixture.of(components, masses[kept], self.components[-1], sum(self.counts))


def find_modes(
    log_posterior: LogPosterior, start: Tensor, num_restarts: int, seed: int, along: Tensor | None = None
) -> list[Mode]:
    """The modes found by a search from a start and from the best points of layers along a direction, highest first."""

    def objective(u: Tensor) -> Tensor:
        u = u.squeeze(-2)
        if u.requires_grad:  # where a warping overflows, the gradient of the flat floor is 0 times infinity
            u.register_hook(lambda gradient: torch.where(gradient.isfinite(), gradient, 0.0))
        value = log_posterior(u)
        return torch.where(value.isfinite(), value, FLOOR)

    starts = _starts(objective, start, num_restarts, seed, torch.ones_like(start) if along is None else along)
    with torch.enable_grad(), warnings.catch_warnings(record=True):
        # the optimiser's warnings that it stopped early: not all starts need to find a mode
        found, values = gen_candidates_scipy(
            starts.unsqueeze(-2),
            objective,  # type: ignore[arg-type]
            lower_bounds=start - REACH,
            upper_bounds=start + REACH,
            options={"maxiter": 60},
        )
    found = found.squeeze(-2).detach()
    if not bool(values.max() > FLOOR):
        raise InputDataError(
            "No parameters were found at which the covariance has a Cholesky factor and all outcomes are in the domain "
            "of the warping. Check the kernel and the warping."
        )
    modes: list[Mode] = []
    least = max(FLOOR, float(values.max()) - LOWEST_MODE)
    for i in values.argsort(descending=True).tolist():
        if values[i] > least and all(mode.distance(found[i]) > 1 for mode in modes):
            root = torch.linalg.cholesky(_laplace_covariance(found[i], objective))
            modes.append(Mode(found[i], root, float(values[i])))
    return modes


@torch.no_grad()
def _starts(objective: LogPosterior, start: Tensor, num_restarts: int, seed: int, along: Tensor) -> Tensor:
    """The first start and the best point of each layer."""
    if num_restarts == 1:
        return start.unsqueeze(0)
    layers = num_restarts - 1
    normal = _sobol_normal(TRIED_PER_START * layers, len(start), seed).to(start)
    points = start + START_SPREAD * normal
    points = points[(points @ along).argsort()]
    best = objective(points.unsqueeze(-2)).view(layers, -1).argmax(-1)
    by_layer = points.view(layers, -1, len(start))
    return torch.cat([start.unsqueeze(0), by_layer[torch.arange(layers), best]])


def _laplace_covariance(mode: Tensor, objective: LogPosterior) -> Tensor:
    """The inverse of the curvature at the mode, by central differences of gradients, of bounded spread."""
    step = 1e-3 * torch.eye(len(mode), dtype=mode.dtype, device=mode.device)
    with torch.enable_grad():
        u = torch.cat([mode + step, mode - step]).requires_grad_()
        (gradient,) = torch.autograd.grad(objective(u.unsqueeze(-2)).sum(), u)
    curvature = -(gradient[: len(mode)] - gradient[len(mode) :]) / 2e-3
    curvature = 0.5 * (curvature + curvature.mT)
    values, vectors = torch.linalg.eigh(torch.where(curvature.isfinite(), curvature, 0.0))
    return (vectors / values.clamp_min(MAX_SPREAD**-2)) @ vectors.mT


@torch.no_grad()
def widened(log_posterior: LogPosterior, mode: Mode) -> Mode:
    """The mode with each axis as long as the posterior is wide on the wider side, but no shorter than Laplace's."""
    distance = torch.tensor(SECANTS, dtype=mode.center.dtype, device=mode.center.device)
    axes = torch.cat([mode.root.mT, -mode.root.mT])
    u = mode.center + distance.view(-1, 1, 1) * axes  # len(SECANTS) x 2 D x D
    fall = mode.log_density - log_posterior(u.flatten(0, 1)).view(u.shape[:-1])
    # in units in which the distance is linear if the density is normal
    fall = torch.where(fall.isnan(), math.inf, fall).clamp_min(0.0).sqrt()
    wanted = math.sqrt(FALL)
    below = torch.cat([torch.zeros_like(fall[:1]), fall[:-1]])
    before = torch.cat([torch.zeros_like(distance[:1]), distance[:-1]]).unsqueeze(-1)
    share = ((wanted - below) / (fall - below)).nan_to_num(0.0).clamp(0.0, 1.0)
    reached = before + share * (distance.unsqueeze(-1) - before)
    widths = torch.where(fall >= wanted, reached, SECANTS[-1]).amin(0)
    width = widths.view(2, -1).amax(0)  # on the wider side
    return mode._replace(root=mode.root * (width / math.sqrt(2 * FALL)).clamp_min(1.0))


def prior_proposal(log_prior: LogPosterior, start: Tensor) -> Proposal:
    """A proposal of the prior's own center and size, by one Newton step in each coordinate from a start, `D`."""
    step = 1e-2 * torch.eye(len(start), dtype=start.dtype, device=start.device)
    above, below = log_prior(start + step), log_prior(start - step)
    middle = log_prior(start.unsqueeze(0))
    slope = (above - below) / 2e-2
    bend = (above + below - 2 * middle) / 1e-4
    is_finite = bend.isfinite() & slope.isfinite()
    is_curved = is_finite & (bend < -(MAX_PRIOR_SPREAD**-2))
    spread = torch.where(is_curved, (-bend).clamp_min(MAX_PRIOR_SPREAD**-2).rsqrt(), MAX_PRIOR_SPREAD)
    shift = torch.where(is_curved, slope * spread.square(), 0.0)
    return Proposal(start + shift.clamp(-REACH, REACH), spread.diag())


@torch.no_grad()
def sobol_nodes(
    log_targets: LogPosterior,
    modes: Sequence[Mode],
    wide: Proposal,
    num_nodes: int,
    least_effective: float,
    seed: int,
) -> Nodes:
    """Adaptive rounds of quasi-Monte Carlo nodes around all modes, for log targets, `S x D` to `S` or `S x K`."""
    ratios = torch.tensor([mode.log_mass for mode in modes], dtype=torch.float64)
    ratios = ratios - ratios.max()
    likely = [k for k in range(len(modes)) if ratios[k] > MIN_RATIO]
    proposals = [Proposal(modes[k].center, WIDENING * modes[k].root) for k in likely]
    mixtures = [ProposalMixture.of(proposals, ratios[likely].exp(), wide, max(num_nodes // NUM_ROUNDS, 1))]
    rounds: list[Tensor] = []
    values: list[Tensor] = []
    for i in range(2 * NUM_ROUNDS):
        rounds.append(mixtures[-1].nodes(seed + 7919 * i))
        new = log_targets(rounds[-1])
        values.append(new.view(len(new), -1))
        u = torch.cat(rounds)
        # the balance heuristic: the density of all rounds' nodes together
        of_rounds = []
        for nodes, mixture in zip(rounds, mixtures, strict=True):
            of_rounds.append(math.log(len(nodes)) + mixture.log_density(u))
        log_density = torch.stack(of_rounds).logsumexp(0)
        weights = torch.softmax(torch.cat(values) - log_density.unsqueeze(-1), dim=0)
        effective = float(1 / weights.square().sum(0).max())
        if i + 1 >= NUM_ROUNDS and effective >= min(least_effective, num_nodes / 4):
            break
        mixtures.append(mixtures[-1].adapted(u, weights.mean(-1)))
    return Nodes(u, -log_density)


def _sobol_normal(n: int, d: int, seed: int) -> Tensor:
    uniform = SobolEngine(d, scramble=True, seed=seed).draw(n, dtype=torch.float64)
    return torch.special.ndtri(uniform.clamp(1e-10, 1 - 1e-10))  # a scrambled point may be 0 to all its 30 bits
