"""Collapsed elliptical slice sampling, with Gaussian sites that are far from good, against closed forms."""

import math

import pytest
import torch
from sampler_cases import (
    DENSE,
    INF,
    LOW_RANK,
    bivariate_orthant,
    check_case,
    check_invariance,
    check_same_means,
    equicorrelated,
    gaussian_sites,
    independent,
    low_rank,
    make,
    slab,
    trivariate_orthant,
)

from botorch_skewgp.truncated.collapsed_ess import CollapsedEllipticalSliceSampler
from botorch_skewgp.truncated.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.start import feasible_start

FAST = [bivariate_orthant]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in FAST else [pytest.mark.slow]) for case in DENSE + LOW_RANK]
)
def test_closed_forms(case, dtype):
    case = case(dtype)
    sampler = CollapsedEllipticalSliceSampler(case.distribution, gaussian_sites(case.distribution))
    check_case(sampler, case, num_steps=50, num_chains=100, burn_in=15)


@pytest.mark.parametrize("case", [independent, bivariate_orthant, trivariate_orthant, slab])
@pytest.mark.parametrize("seed", [0, 1])
def test_exact_draws_stay_exact_whatever_the_sites(case, seed):
    distribution = case().distribution
    check_invariance(CollapsedEllipticalSliceSampler(distribution, gaussian_sites(distribution, seed), 2))


@pytest.mark.parametrize("case", [bivariate_orthant, slab])
def test_a_planted_fault_is_seen(case):
    """Sites that are not those of the Gaussian around which the ellipse is drawn."""
    distribution = case().distribution
    sites = gaussian_sites(distribution)
    sites.site_shift = sites.site_shift + 0.3
    with pytest.raises(AssertionError, match="standard errors"):
        check_invariance(CollapsedEllipticalSliceSampler(distribution, sites, 2))


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


@pytest.mark.slow
def test_far_in_the_tail(generator):
    distribution = make([0.0, 0.0], [[0.5, 0.2], [0.2, 0.5]], [20.0, -INF], [INF, -20.0], [0.5, 0.5])
    sampler = CollapsedEllipticalSliceSampler(distribution, gaussian_sites(distribution))
    state = sampler.init(*feasible_start(distribution, 48, generator))
    _, positions, _ = sampler.run(state, 120, generator)
    rows = sampler.rows(positions, generator)[30:]
    rate = torch.linalg.solve(distribution.gamma, torch.tensor([20.0, -20.0], dtype=torch.float64))
    assert (rows[..., 0] >= 20).all()
    assert (rows[..., 1] <= -20).all()
    excess = (rows - torch.tensor([20.0, -20.0])).abs().mean((0, 1))
    torch.testing.assert_close(excess, 1 / rate.abs(), rtol=0.08, atol=0)


@pytest.mark.parametrize(("dtype", "width"), [(torch.float64, 1e-6), (torch.float32, 1e-3)])
def test_bounds_that_nearly_touch(dtype, width, generator):
    lower = torch.tensor([0.5, -0.2, 0.0])
    distribution = make([0.0] * 3, torch.eye(3) + 0.5, lower, lower.double() + width, [0.1] * 3, dtype)
    sampler = CollapsedEllipticalSliceSampler(distribution, gaussian_sites(distribution))
    state = sampler.init(*feasible_start(distribution, 200, generator))
    _, positions, _ = sampler.run(state, 40, generator)
    rows = sampler.rows(positions, generator).double()
    assert (rows >= distribution.lower).all()
    assert (rows <= distribution.upper).all()
    share = (rows - distribution.lower.double()) / width
    assert (share.mean((0, 1)) - 0.5).abs().max() < 4 * math.sqrt(1 / 12 / 8000) + 2e-3
    assert (share.std((0, 1)) - math.sqrt(1 / 12)).abs().max() < 0.01


@pytest.mark.slow
def test_dense_and_low_rank_agree_on_contradictory_rows(generator):
    root = torch.tensor([[1.0], [1.0], [-1.0]])
    runs = []
    for covariance in (root @ root.mT, low_rank(root)):
        distribution = make([0.2] * 3, covariance, [0.0, 0.5, 0.5], [INF, INF, 3.0], [0.3] * 3)
        sampler = CollapsedEllipticalSliceSampler(distribution, gaussian_sites(distribution))
        state = sampler.init(*feasible_start(distribution, 400, generator))
        _, positions, _ = sampler.run(state, 40, generator)
        runs.append(sampler.rows(positions, generator)[10:])
    check_same_means(*runs)


@pytest.mark.parametrize("rank", [pytest.param(None, marks=pytest.mark.slow), 1])
def test_batches_equal_their_elements(rank, generator):
    mean = torch.tensor([[0.0, 0.5, 0.0], [1.0, -1.0, 0.3]], dtype=torch.float64)
    root = torch.tensor([[[1.0], [0.5], [-0.3]], [[0.2], [2.0], [1.0]]], dtype=torch.float64)
    covariance = root @ root.mT + torch.eye(3) if rank is None else low_rank(root)
    lower = torch.tensor([[0.0, -INF, -INF], [-INF, -2.0, 0.0]], dtype=torch.float64)
    upper, noise = torch.full((2, 3), 2.0), torch.tensor([[0.2] * 3, [0.6] * 3])
    distribution = make(mean, covariance, lower, upper, noise)
    sampler = CollapsedEllipticalSliceSampler(distribution, gaussian_sites(distribution))
    state = sampler.init(*feasible_start(distribution, 250, generator))
    _, positions, info = sampler.run(state, 24, generator)
    rows = sampler.rows(positions, generator)
    assert rows.shape == (2, 24, 250, 3)
    assert info.num_evaluations.shape == (2, 250)
    for j in range(2):
        part = covariance[j] if rank is None else low_rank(root[j])
        one = make(mean[j], part, lower[j], upper[j], noise[j])
        alone = CollapsedEllipticalSliceSampler(one, gaussian_sites(one))
        _, others, _ = alone.run(alone.init(*feasible_start(one, 250, generator)), 24, generator)
        check_same_means(rows[j, 8:], alone.rows(others, generator)[8:])


def test_latent_coordinates_are_handed_out_for_low_rank_only(generator):
    for case, given in ((equicorrelated(dense=False), True), (equicorrelated(dense=True), False)):
        sampler = CollapsedEllipticalSliceSampler(case.distribution, gaussian_sites(case.distribution))
        state = sampler.init(*feasible_start(case.distribution, 4, generator))
        latent = sampler.latent(state.position)
        assert (latent is state.position) if given else (latent is None)


def test_many_rows_over_few_coordinates_around_expectation_propagation(generator):
    m, r = 2000, 20
    root = torch.randn(m, r, generator=generator, dtype=torch.float64)
    truth = torch.randn(r, 1, generator=generator, dtype=torch.float64)
    signs = torch.sign(root @ truth + torch.randn(m, 1, generator=generator, dtype=torch.float64))
    distribution = make([0.0] * m, low_rank(signs * root), [0.0] * m, [INF] * m, [1.0] * m)
    approximation = expectation_propagation(distribution)
    sampler = CollapsedEllipticalSliceSampler(distribution, approximation)
    state = sampler.init(*feasible_start(distribution, 16, generator, approximation))
    state, positions, _ = sampler.run(state, 20, generator)
    rows = sampler.rows(state.position, generator)
    assert (rows >= 0).all()
    # With so many rows the posterior is nearly the Gaussian of expectation propagation.
    standardised = torch.linalg.solve(approximation.latent_root, (positions[5:] - approximation.latent_mean).mT)
    assert abs(standardised.mean()) < 0.1
    assert abs(standardised.std() - 1) < 0.1
    assert "dense_covariance" not in distribution.__dict__


def test_invalid_arguments():
    case = slab()
    sites = gaussian_sites(case.distribution)
    with pytest.raises(ValueError, match="num_inner_steps must be positive"):
        CollapsedEllipticalSliceSampler(case.distribution, sites, num_inner_steps=0)
    with pytest.raises(ValueError, match="latent coordinates"):
        CollapsedEllipticalSliceSampler(case.distribution, sites).init(torch.zeros(1, 5, dtype=torch.float64))
    latent = torch.full((1, 1), math.inf, dtype=torch.float64)
    with pytest.raises(ValueError, match="not finite"):
        CollapsedEllipticalSliceSampler(case.distribution, sites).init(torch.zeros(1, 5, dtype=torch.float64), latent)
    noiseless = make([0.0, 0.0], torch.eye(2), [0.0, 0.0], [INF, INF], [0.1, 0.0])
    with pytest.raises(ValueError, match="ReflectiveEllipticalSliceSampler"):
        CollapsedEllipticalSliceSampler(noiseless, gaussian_sites(noiseless))
