"""Gibbs sampling against closed forms and exact draws."""

import math

import pytest
import torch
from sampler_cases import (
    DENSE,
    INF,
    bivariate_orthant,
    check_case,
    check_invariance,
    check_same_means,
    independent,
    low_rank,
    make,
    slab,
    trivariate_orthant,
)

from botorch_skewgp.truncated.gibbs import GibbsSampler
from botorch_skewgp.truncated.start import feasible_start


@pytest.mark.parametrize("case", DENSE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_closed_forms(case, dtype):
    case = case(dtype)
    check_case(GibbsSampler(case.distribution), case, num_steps=200)


@pytest.mark.parametrize("case", [independent, bivariate_orthant, trivariate_orthant])
def test_exact_draws_stay_exact(case):
    check_invariance(GibbsSampler(case().distribution))


def test_a_planted_fault_is_seen():
    sampler = GibbsSampler(bivariate_orthant().distribution)
    sampler._weight = 0.9 * sampler._weight  # conditional means that are off by a tenth
    with pytest.raises(AssertionError, match="standard errors"):
        check_invariance(sampler)


def test_conditionals_equal_those_of_the_gaussian(generator):
    """Without bounds, the conditional mean and variance from the covariance matrix, by solving for one row."""
    factor = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    gamma = factor @ factor.mT + 0.3 * torch.eye(5)
    sampler = GibbsSampler(make([0.0] * 5, gamma - 0.2 * torch.eye(5), [-INF] * 5, [INF] * 5, [0.2] * 5))
    for i in range(5):
        others = [j for j in range(5) if j != i]
        weight = torch.linalg.solve(gamma[others][:, others], gamma[others, i])
        torch.testing.assert_close(sampler._weight[i, others], weight)
        assert sampler._weight[i, i] == 0
        torch.testing.assert_close(sampler._scale[i].square(), gamma[i, i] - weight @ gamma[others, i])


def test_far_in_the_tail(generator):
    distribution = make([0.0, 0.0], [[0.5, 0.2], [0.2, 0.5]], [20.0, -INF], [INF, -20.0], [0.5, 0.5])
    sampler = GibbsSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 400, generator))
    _, positions, _ = sampler.run(state, 60, generator)
    rows = sampler.rows(positions)[10:]
    # At the corner a = (20, -20) the density is close to exp(-(u - a)^T Gamma^-1 a): independent exponentials.
    rate = torch.linalg.solve(distribution.gamma, torch.tensor([20.0, -20.0], dtype=torch.float64))
    excess = (rows - torch.tensor([20.0, -20.0])).abs()
    assert (rows[..., 0] >= 20).all()
    assert (rows[..., 1] <= -20).all()
    torch.testing.assert_close(excess.mean((0, 1)), 1 / rate.abs(), rtol=0.03, atol=0)


@pytest.mark.parametrize(("dtype", "width"), [(torch.float64, 1e-6), (torch.float32, 1e-3)])
def test_bounds_that_nearly_touch(dtype, width, generator):
    lower = torch.tensor([0.5, -0.2, 0.0])
    distribution = make([0.0] * 3, torch.eye(3) + 0.5, lower, lower.double() + width, [0.1] * 3, dtype)
    sampler = GibbsSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 500, generator))
    _, positions, _ = sampler.run(state, 20, generator)
    rows = sampler.rows(positions).double()
    assert (rows >= distribution.lower).all()
    assert (rows <= distribution.upper).all()
    share = (rows - distribution.lower.double()) / width
    assert (share.mean((0, 1)) - 0.5).abs().max() < 4 * math.sqrt(1 / 12 / 10_000) + 2e-3
    assert (share.std((0, 1)) - math.sqrt(1 / 12)).abs().max() < 0.01


def test_duplicate_and_contradictory_rows(generator):
    """Four looks at one variable, two of which pull it to either side: by symmetry its mean is zero."""
    signs = torch.tensor([1.0, 1.0, -1.0, -1.0])
    distribution = make([0.0] * 4, signs[:, None] * signs, [0.5] * 4, [INF] * 4, [0.1] * 4)
    sampler = GibbsSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 200, generator))
    _, positions, _ = sampler.run(state, 300, generator)
    rows = sampler.rows(positions)[50:]
    assert (rows >= 0.5).all()
    means = rows.mean((0, 1))
    torch.testing.assert_close(means, means.mean().expand(4), rtol=0.03, atol=0)


def test_batches_equal_their_elements(generator):
    mean = torch.tensor([[0.0, 0.5], [1.0, -1.0]], dtype=torch.float64)
    covariance = torch.stack([torch.eye(2) + 0.5, torch.eye(2) - 0.3]).double()
    lower = torch.tensor([[0.0, -INF], [-INF, -2.0]], dtype=torch.float64)
    distribution = make(mean, covariance, lower, torch.full((2, 2), 2.0), torch.full((2, 2), 0.2))
    batch = GibbsSampler(distribution)
    state = batch.init(*feasible_start(distribution, 200, generator))
    _, positions, info = batch.run(state, 200, generator)
    rows = batch.rows(positions)
    assert rows.shape == (2, 200, 200, 2)
    assert (info.num_evaluations == 400).all()
    for j in range(2):
        one = make(mean[j], covariance[j], lower[j], [2.0, 2.0], [0.2, 0.2])
        alone = GibbsSampler(one)
        _, others, _ = alone.run(alone.init(*feasible_start(one, 200, generator)), 200, generator)
        check_same_means(rows[j, 20:], alone.rows(others)[20:])


def test_one_row_without_bounds(generator):
    distribution = make([2.0], [[1.0]], [-INF], [INF], [0.5])
    sampler = GibbsSampler(distribution)
    _, positions, _ = sampler.run(sampler.init(*feasible_start(distribution, 2000, generator)), 2, generator)
    assert abs(positions[-1].std() - math.sqrt(1.5)) < 4 * math.sqrt(1.5 / 4000)
    assert sampler.latent(positions) is None


def test_low_rank_names_what_works():
    with pytest.raises(ValueError, match="ReflectiveEllipticalSliceSampler"):
        GibbsSampler(slab().distribution)
    square = make([0.0, 0.0], low_rank(torch.eye(2)), [0.0, 0.0], [INF, INF], [0.1, 0.1])
    assert GibbsSampler(square).distribution.root is None


def test_infeasible_start():
    case = independent()
    with pytest.raises(ValueError, match="inside the bounds"):
        GibbsSampler(case.distribution).init(torch.zeros(3, 4, dtype=torch.float64))
