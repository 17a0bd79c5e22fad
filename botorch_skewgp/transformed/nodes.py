r"""Modes of the posterior of a transformed process's parameters, and nodes around them."""

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

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.transformed.quadrature import WIDENING, Proposal, ProposalMixture, effective_number, smolyak_grid

LogPosterior = Callable[[Tensor], Tensor]  # of coordinates, S x D, to S

START_SPREAD = 2.0  # standard deviation of starts around the modules' own parameters, in every coordinate
TRIED_PER_START = 32  # points, the best of which is the start
REACH = 8.0  # largest distance of a mode from the modules' own parameters, in coordinates
FLOOR = -1e8  # the optimiser's value where the posterior density is zero
MAX_SPREAD = 2.0  # standard deviation of a coordinate on which the data have little information
MIN_RATIO = -7.0  # log of the mass of a mode, relative to the largest, above which it gets nodes
WARPINGS_PER_KERNEL = 4  # nodes of the warping for each of the kernel, with Sobol nodes
MAX_ROUNDS = 6
BOX = 2.5  # half the side of a Smolyak grid, in standard deviations along the axes of the Cholesky factor


class Nodes(NamedTuple):
    r"""Nodes of all parameters, with quadrature weights.

    Args:
        u: Their coordinates, `S x D`.
        log_weight: The logarithms of the absolute values of quadrature weights, `S`.
        sign: The signs of those weights, `S`.
    """

    u: Tensor
    log_weight: Tensor
    sign: Tensor

    @classmethod
    def single(cls, u: Tensor) -> Nodes:
        r"""One node.

        Args:
            u: Its coordinates, `D`.
        """
        return cls(u.unsqueeze(0), u.new_zeros(1), u.new_ones(1))


class Mode(NamedTuple):
    r"""A mode of the posterior of the parameters, with the Gaussian of Laplace's approximation there.

    Args:
        center: Its coordinates, `D`.
        root: The lower Cholesky factor of the Gaussian's covariance, `D x D`.
        log_density: The log posterior density at the mode, without its constant.
    """

    center: Tensor
    root: Tensor
    log_density: float

    @property
    def log_mass(self) -> float:
        """The logarithm of the integral around the mode, by Laplace's approximation."""
        return self.log_density + float(self.root.diagonal().log().sum()) + 0.5 * len(self.center) * math.log(math.tau)

    def distance(self, u: Tensor) -> float:
        r"""The distance of a point in standard deviations.

        Args:
            u: Coordinates, `D`.
        """
        difference = (u - self.center).unsqueeze(-1)
        return float(torch.linalg.solve_triangular(self.root, difference, upper=False).norm())


def find_modes(
    log_posterior: LogPosterior, start: Tensor, num_restarts: int, seed: int, along: Tensor | None = None
) -> list[Mode]:
    r"""The modes found by a search from several starts, the highest first.

    One start is given. The others are the best of quasi-random points around it, one from each layer: long lengthscales
    with much noise and short ones with little explain the same data, and a search from one seldom finds the other.

    Args:
        log_posterior: The log posterior density of coordinates.
        start: The first start, `D`.
        num_restarts: The number of starts.
        seed: The seed of the points from which starts are chosen.
        along: The direction across the layers, `D`; all coordinates alike if `None`.

    Raises:
        InputDataError: If the density is zero at all points of the search.
    """

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
    for i in values.argsort(descending=True).tolist():
        if values[i] > max(FLOOR, float(values.max()) - 50) and all(mode.distance(found[i]) > 1 for mode in modes):
            root = torch.linalg.cholesky(_laplace_covariance(found[i], objective))
            modes.append(Mode(found[i], root, float(values[i])))
    return modes


@torch.no_grad()
def _starts(objective: LogPosterior, start: Tensor, num_restarts: int, seed: int, along: Tensor) -> Tensor:
    """The first start and the best point of each layer."""
    if num_restarts == 1:
        return start.unsqueeze(0)
    layers = num_restarts - 1
    uniform = SobolEngine(len(start), scramble=True, seed=seed).draw(TRIED_PER_START * layers, dtype=start.dtype)
    points = start + START_SPREAD * torch.special.ndtri(uniform.clamp(1e-6, 1 - 1e-6)).to(start)
    points = points[(points @ along).argsort()]
    best = objective(points.unsqueeze(-2)).view(layers, -1).argmax(-1)
    return torch.cat([start.unsqueeze(0), points.view(layers, -1, len(start))[torch.arange(layers), best]])


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


def smolyak_nodes(mode: Mode, level: int) -> Nodes:
    r"""A sparse grid in a box around one mode.

    Args:
        mode: The mode.
        level: The level of the grid.
    """
    grid, weights = smolyak_grid(len(mode.center), level)
    grid, weights = grid.to(mode.center), weights.to(mode.center)
    volume = (2 * BOX * mode.root.diagonal()).log().sum()
    return Nodes(mode.center + BOX * grid @ mode.root.mT, weights.abs().log() + volume, weights.sign())


@torch.no_grad()
def sobol_nodes(
    log_posterior: LogPosterior, modes: Sequence[Mode], shared: int, num_nodes: int, least_effective: float, seed: int
) -> Nodes:
    r"""Rounds of quasi-Monte Carlo nodes around all modes, weighted as draws of the mixture of all rounds.

    Each mode gets nodes by its mass in Laplace's approximation. Rounds adapt to the nodes before them, until the
    effective number of nodes is reached.

    Args:
        log_posterior: The log posterior density of coordinates.
        modes: The modes.
        shared: The number of leading coordinates that several nodes share: those of the kernel and the noise.
        num_nodes: The number of nodes in a round.
        least_effective: The effective number to reach, at most half of `num_nodes`.
        seed: The seed of the nodes.
    """
    dim = len(modes[0].center)
    inner = WARPINGS_PER_KERNEL if shared < dim else 1
    ratios = torch.tensor([mode.log_mass for mode in modes], dtype=torch.float64)
    ratios = ratios - ratios.max()
    likely = [k for k in range(len(modes)) if ratios[k] > MIN_RATIO]
    proposals = [Proposal(modes[k].center, WIDENING * modes[k].root) for k in likely]
    mixtures = [ProposalMixture.of(proposals, ratios[likely].exp(), max(num_nodes // inner, 1))]
    u, values = modes[0].center.new_zeros(0, dim), modes[0].center.new_zeros(0)
    sizes: list[int] = []
    for i in range(MAX_ROUNDS):
        new = mixtures[-1].nodes(inner, shared, seed + 2 * i)
        sizes.append(len(new))
        u, values = torch.cat([u, new]), torch.cat([values, log_posterior(new)])
        parts = [math.log(size) + mixture.log_density(u) for size, mixture in zip(sizes, mixtures, strict=True)]
        log_density = torch.stack(parts).logsumexp(0)
        weights = torch.softmax(values - log_density, dim=0)
        effective = effective_number(weights)
        if effective >= min(least_effective, 0.5 * num_nodes):
            break
        mixtures.append(mixtures[-1].adapted(u, weights))
    else:
        warnings.warn(
            f"The effective number of nodes is {effective:.1f} after {len(u)} nodes; {least_effective:g} was asked "
            "for. Quantiles are less accurate; increase num_nodes, or use a warping with fewer parameters.",
            QuadratureWarning,
            stacklevel=5,
        )
    return Nodes(u, -log_density, torch.ones_like(log_density))
