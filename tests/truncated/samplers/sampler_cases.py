"""Truncated normals with known moments, and checks of samplers against them, shared by the samplers' tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from row_cases import INF, low_rank, make
from scipy import stats
from torch import Tensor

from botorch_skewgp.truncated.diagnostics import diagnose, effective_sample_size
from botorch_skewgp.truncated.priors import Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation, product_of_sites
from botorch_skewgp.truncated.samplers.feasibility import feasible_start
from botorch_skewgp.truncated.samplers.hamiltonian import HamiltonianSampler
from botorch_skewgp.truncated.samplers.sampler import Sampler, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class Case(NamedTuple):
    """A distribution, functionals `... x m -> ... x k` of its rows, and their expectations (length k)."""

    distribution: TruncatedNormal
    functionals: Callable[[Tensor], Tensor]
    truth: list[float]


def moments(u: Tensor) -> Tensor:
    return torch.cat([u, u.square()], dim=-1)


def truncated_moments(mean, variance, lower, upper) -> tuple[float, float]:
    """First and second moment of a univariate truncated normal."""
    sd = math.sqrt(variance)
    reference = stats.truncnorm((lower - mean) / sd, (upper - mean) / sd, loc=mean, scale=sd)
    return float(reference.mean()), float(reference.var() + reference.mean() ** 2)


def independent() -> Case:
    """Rows that are independent; one-sided, two-sided, unbounded."""
    mean, covariance, noise = [0.3, -0.5, 0.0, 1.0], [0.6, 1.0, 0.2, 1.5], [0.4, 0.5, 0.8, 0.5]
    lower, upper = [0.8, -INF, -0.3, -INF], [INF, 0.1, 0.5, INF]
    variance = [a + b for a, b in zip(covariance, noise, strict=True)]
    pairs = [truncated_moments(*x) for x in zip(mean, variance, lower, upper, strict=True)]
    distribution = make(mean, torch.diag(torch.tensor(covariance)), lower, upper, noise)
    return Case(distribution, moments, [p[0] for p in pairs] + [p[1] for p in pairs])


def single() -> Case:
    first, second = truncated_moments(0.3, 1.1, 0.5, 2.0)
    return Case(make([0.3], [[0.7]], [0.5], [2.0], [0.4]), moments, [first, second])


def bivariate_orthant(correlation=0.6) -> Case:
    """`E[u_1 | u > 0] = (1 + rho) / (2 sqrt(2 pi) P)` with `P = 1/4 + asin(rho) / (2 pi)`."""
    probability = 0.25 + math.asin(correlation) / (2 * math.pi)
    first = (1 + correlation) / (2 * math.sqrt(2 * math.pi) * probability)
    # E[u_1 u_2] from d/d(rho) of the normalising integral: (rho P + (1 - rho^2) phi_2(0)) / P
    density = 1 / (2 * math.pi * math.sqrt(1 - correlation**2))
    product = correlation + (1 - correlation**2) * density / probability
    noise = 0.3
    covariance = [[1 - noise, correlation], [correlation, 1 - noise]]
    distribution = make([0, 0], covariance, [0, 0], [INF, INF], [noise, noise])
    return Case(distribution, lambda u: torch.cat([u, u.prod(-1, keepdim=True)], dim=-1), [first, first, product])


def trivariate_orthant() -> Case:
    """`P(u_3 > 0 | u_1 > 0, u_2 < 0)`, the third row without bounds, from the two orthant formulas."""
    r12, r13, r23 = 0.4, 0.3, -0.2
    pair = 0.25 + math.asin(-r12) / (2 * math.pi)
    triple = 0.125 + (math.asin(-r12) + math.asin(r13) + math.asin(-r23)) / (4 * math.pi)
    gamma = torch.tensor([[1, r12, r13], [r12, 1, r23], [r13, r23, 1]], dtype=torch.float64)
    distribution = make([0] * 3, gamma - 0.3 * torch.eye(3), [0, -INF, -INF], [INF, 0, INF], [0.3] * 3)
    return Case(distribution, lambda u: (u[..., 2:] > 0).to(u.dtype), [triple / pair])


def equicorrelated(m=5, dense=True) -> Case:
    """At correlation 1/2 an orthant has probability `1 / (m + 1)`: given the others, `P(u_m > 0) = m / (m + 1)`."""
    lower = [0.0] * (m - 1) + [-INF]
    covariance = torch.full((m, m), 0.5) if dense else low_rank(torch.full((m, 1), math.sqrt(0.5)))
    distribution = make([0.0] * m, covariance, lower, [INF] * m, [0.5] * m)
    return Case(distribution, lambda u: (u[..., -1:] > 0).to(u.dtype), [m / (m + 1)])


@cache
def slab() -> Case:
    """Five rows that are the same latent variable with their own noise; against quadrature over that variable."""
    root, noise = [0.9, -1.2, 0.5, 1.0, 1.0], [0.2, 0.5, 0.3, 0.6, 0.1]
    mean, lower, upper = [0.1, 0.0, -0.2, 0.3, 0.0], [-0.5, -INF, 0.0, -1.0, -INF], [1.0, 0.4, INF, 0.8, INF]
    z = torch.linspace(-8, 8, 801, dtype=torch.float64)
    weight = torch.exp(-0.5 * z.square())
    rows = []
    for f, s, c, a, b in zip(root, noise, mean, lower, upper, strict=True):
        h, sd = (c + f * z).numpy(), math.sqrt(s)
        weight = weight * torch.as_tensor(stats.norm.cdf((b - h) / sd) - stats.norm.cdf((a - h) / sd))
        rows.append(torch.as_tensor(stats.truncnorm.mean((a - h) / sd, (b - h) / sd, loc=h, scale=sd)))
    truth = [float((weight * row).nan_to_num().sum() / weight.sum()) for row in rows]
    distribution = make(mean, low_rank(torch.tensor(root).unsqueeze(-1)), lower, upper, noise)
    return Case(distribution, lambda u: u, truth)


DENSE = [single, independent, bivariate_orthant, trivariate_orthant, equicorrelated]


def low_rank_equicorrelated() -> Case:
    return equicorrelated(dense=False)


LOW_RANK = [low_rank_equicorrelated, slab]


def poor_sites(distribution: TruncatedNormal, seed: int = 0) -> ExpectationPropagation:
    """The prior times Gaussian sites that have little to do with the rows: samplers must be exact with any."""
    generator, shape = torch.Generator().manual_seed(seed), distribution.mean.shape
    precision = 0.3 + 0.4 * torch.rand(shape, generator=generator, dtype=torch.float64)
    shift = 0.5 * torch.randn(shape, generator=generator, dtype=torch.float64)
    return product_of_sites(distribution, Sites(precision, shift))


def start(sampler: Sampler, num_chains: int, generator: torch.Generator) -> SamplerState:
    """The first state of chains: feasible rows, or what a sampler starts from by itself."""
    if isinstance(sampler, HamiltonianSampler):
        return sampler.start(num_chains, generator)
    return sampler.init(feasible_start(sampler.distribution, num_chains, generator))


def check_case(
    sampler: Sampler, case: Case, num_steps: int, num_chains: int = 64, burn_in: int = 20, seed: int = 1
) -> None:
    """Long-run averages equal the truth within Monte Carlo error, which must itself be small."""
    generator = torch.Generator().manual_seed(seed)
    state, _, _ = sampler.run(start(sampler, num_chains, generator), burn_in, generator)
    _, positions, info = sampler.run(state, num_steps, generator)
    rows = sampler.rows(positions, generator)
    assert (rows >= case.distribution.lower).all()
    assert (rows <= case.distribution.upper).all()
    assert info.num_evaluations.shape == (num_chains,)
    assert (info.num_evaluations > 0).all()
    values = case.functionals(rows).double()
    assert (diagnose(values).r_hat < 1.05).all()
    truth = torch.tensor(case.truth, dtype=torch.float64)
    spread = values.flatten(0, 1).std(0)
    error = spread / effective_sample_size(values).sqrt()
    assert (error < 0.05 * spread).all(), "the test has no power"
    off = (values.flatten(0, 1).mean(0) - truth) / error
    assert (off.abs() < 4.0).all(), f"off by {off.tolist()} standard errors"


def check_same_means(first: Tensor, second: Tensor) -> None:
    """Two runs, `num_steps x num_chains x k`, have the same expectations within their Monte Carlo errors."""
    means, variances = [], []
    for draws in (first.double(), second.double()):
        means.append(draws.mean((0, 1)))
        variances.append(draws.flatten(0, 1).var(0) / effective_sample_size(draws))
    off = (means[0] - means[1]) / (variances[0] + variances[1]).sqrt()
    assert (off.abs() < 4.0).all(), f"off by {off.tolist()} standard errors"


def exact_draws(distribution: TruncatedNormal, num_draws: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rejection from the prior: rows and latent coordinates, `num_draws x m` and `num_draws x r`."""
    rows, latents, found = [], [], 0
    like = distribution.mean
    while found < num_draws:
        normal = torch.randn(4 * num_draws, distribution.prior.rank, dtype=like.dtype, generator=generator)
        h = distribution.noiseless(normal)
        u = h + distribution.noise.sqrt() * torch.randn(h.shape, dtype=h.dtype, generator=generator)
        keep = ((u > distribution.lower) & (u <= distribution.upper)).all(-1)
        rows.append(u[keep])
        latents.append(normal[keep])
        found += int(keep.sum())
    return torch.cat(rows)[:num_draws], torch.cat(latents)[:num_draws]


def positions_at(sampler: HamiltonianSampler, latent: Tensor) -> Tensor:
    """Positions at latent coordinates, `k x r`, by least squares."""
    zero = torch.zeros(1, sampler._coordinates.size, dtype=torch.double)
    h = sampler.distribution.noiseless(latent)
    unit = torch.eye(zero.shape[-1], dtype=torch.double)
    centre = sampler.noiseless(zero)
    return (h - centre) @ torch.linalg.pinv(sampler.noiseless(unit) - centre)


def check_invariance(sampler: Sampler, seed: int = 2, num_draws: int = 10_000) -> None:
    """Two steps of exact draws leave every mean, square, product and indicator where it was, within its error."""
    generator = torch.Generator().manual_seed(seed)
    rows, latent = exact_draws(sampler.distribution, num_draws, generator)
    state = sampler.init(positions_at(sampler, latent) if isinstance(sampler, HamiltonianSampler) else rows)
    moved, _, _ = sampler.run(state, 2, generator)
    least = 0.8 if isinstance(sampler, HamiltonianSampler) else 0.99  # which rejects some trajectories
    assert (moved.position != state.position).any(-1).double().mean() > least

    def functionals(state):
        # Rows of samplers that draw them given the position are as exact before the step as after it.
        u = sampler.rows(state.position, generator).double()
        median = rows.double().median(0).values
        products = (u.unsqueeze(-1) * u.unsqueeze(-2)).flatten(-2)
        return torch.cat([u, products, (u > median).double(), u.pow(3)], dim=-1)

    change = functionals(moved) - functionals(state)
    off = change.mean(0) / (change.std(0) / math.sqrt(num_draws))
    assert (off.abs() < 4.5).all(), f"two steps move exact draws by {off.abs().max():.1f} standard errors"
