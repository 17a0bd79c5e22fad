"""Collapsed elliptical slice sampling, with Gaussian sites that are far from good, against closed forms."""

import math

import pytest
import torch
from sampler_cases import (
    INF,
    bivariate_orthant,
    check_invariance,
    equicorrelated,
    gaussian_sites,
    independent,
    make,
    slab,
    trivariate_orthant,
)

from botorch_skewgp.truncated.samplers.collapsed_ess import CollapsedEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.start import feasible_start


@pytest.mark.parametrize("case", [independent, bivariate_orthant, trivariate_orthant, slab])
@pytest.mark.parametrize("seed", [0, 1])
def test_exact_draws_stay_exact_whatever_the_sites(case, seed):
    distribution = case().distribution
    check_invariance(CollapsedEllipticalSliceSampler(distribution, gaussian_sites(distribution, seed), 2))


def test_cached_density_is_that_of_the_position(generator):
    case = slab()
    sampler = CollapsedEllipticalSliceSampler(case.distribution, gaussian_sites(case.distribution))
    state = sampler.init(*feasible_start(case.distribution, 50, generator))
    state, positions, _ = sampler.run(state, 20, generator)
    fresh = sampler.init(sampler.rows(positions[-1], generator), positions[-1])
    torch.testing.assert_close(state.log_likelihood, fresh.log_likelihood, rtol=1e-10, atol=1e-10)


def test_a_step_is_several_updates(generator):
    case = bivariate_orthant()
    one, five = (
        CollapsedEllipticalSliceSampler(case.distribution, gaussian_sites(case.distribution), n) for n in (1, 5)
    )
    state = one.init(*feasible_start(case.distribution, 30, generator))
    seeds = [torch.Generator().manual_seed(3) for _ in range(2)]
    expected, _, many = one.run(state, 5, seeds[0])
    moved, info = five.step(state, seeds[1])
    torch.testing.assert_close(moved.position, expected.position)
    assert (info.num_evaluations == many.num_evaluations).all()
    assert (info.num_evaluations >= 5).all()


def test_invalid_arguments():
    case = slab()
    sites = gaussian_sites(case.distribution)
    with pytest.raises(ValueError, match="num_inner_steps must be positive"):
        CollapsedEllipticalSliceSampler(case.distribution, sites, num_inner_steps=0)
    latent = torch.full((1, 1), math.inf, dtype=torch.float64)
    with pytest.raises(ValueError, match="not finite"):
        CollapsedEllipticalSliceSampler(case.distribution, sites).init(torch.zeros(1, 5, dtype=torch.float64), latent)
    noiseless = make([0.0, 0.0], torch.eye(2), [0.0, 0.0], [INF, INF], [0.1, 0.0])
    with pytest.raises(ValueError, match="ReflectiveEllipticalSliceSampler"):
        CollapsedEllipticalSliceSampler(noiseless, gaussian_sites(noiseless))


@pytest.mark.parametrize("dense", [True, False])
def test_missing_latent_coordinates_are_their_mean_given_the_rows(dense, generator):
    distribution = equicorrelated(dense=dense).distribution
    rows, _ = feasible_start(distribution, 4, generator)
    sampler = CollapsedEllipticalSliceSampler(distribution, gaussian_sites(distribution))
    h = distribution.noiseless(sampler.init(rows).position)
    gain = torch.linalg.solve(distribution.gamma, distribution.prior.covariance)
    torch.testing.assert_close(h, distribution.mean + (rows - distribution.mean) @ gain)
