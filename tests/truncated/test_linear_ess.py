"""Linear elliptical slice sampling against closed forms, exact draws and brute force over angles."""

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
    independent,
    low_rank,
    make,
    slab,
    trivariate_orthant,
)

from botorch_skewgp.truncated import linear_ess
from botorch_skewgp.truncated.linear_ess import LinearEllipticalSliceSampler, free_angle
from botorch_skewgp.truncated.start import feasible_start


@pytest.mark.parametrize("case", DENSE + LOW_RANK)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_closed_forms(case, dtype):
    case = case(dtype)
    check_case(LinearEllipticalSliceSampler(case.distribution), case, num_steps=500)


@pytest.mark.parametrize("case", [independent, bivariate_orthant, trivariate_orthant, slab])
def test_exact_draws_stay_exact(case):
    check_invariance(LinearEllipticalSliceSampler(case().distribution))


def test_a_planted_fault_is_seen(monkeypatch):
    """Stopping at the first wall, instead of using all free intervals, is not reversible."""

    def to_the_first_wall(x, v, lower, upper, generator=None):
        starts, _ = linear_ess._forbidden_arcs(
            torch.cat([x, -x], -1), torch.cat([v, -v], -1), torch.cat([upper, -lower], -1)
        )
        first = torch.where(starts > 0, starts, 2 * math.pi).amin(-1)
        return first * torch.rand(first.shape, dtype=x.dtype, generator=generator)

    monkeypatch.setattr(linear_ess, "free_angle", to_the_first_wall)
    with pytest.raises(AssertionError, match="standard errors"):
        check_invariance(LinearEllipticalSliceSampler(bivariate_orthant().distribution))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_free_angles_cover_what_a_fine_grid_finds(dtype, generator):
    m, trials = 6, 20_000
    x, v = torch.randn(2, 7, 1, m, generator=generator, dtype=torch.float64).to(dtype)
    lower = torch.where(
        torch.rand(x.shape, generator=generator) < 0.4, -INF, x - 0.8 * torch.rand(x.shape, generator=generator)
    )
    upper = torch.where(
        torch.rand(x.shape, generator=generator) < 0.4, INF, x + 0.8 * torch.rand(x.shape, generator=generator)
    )
    lower, upper = lower.to(dtype), upper.to(dtype)
    theta = free_angle(x.expand(7, trials, m), v.expand(7, trials, m), lower, upper, generator=generator).double()
    grid = torch.linspace(0, 2 * math.pi, 100_001, dtype=torch.float64)[:, None]
    slack = 1e-5 if dtype is torch.float32 else 1e-12
    for j in range(7):
        on_grid = x[j].double() * grid.cos() + v[j].double() * grid.sin()
        free = ((on_grid >= lower[j]) & (on_grid <= upper[j])).all(-1)
        at = theta[j, :, None]
        drawn = x[j].double() * at.cos() + v[j].double() * at.sin()
        assert (drawn >= lower[j] - slack).all()
        assert (drawn <= upper[j] + slack).all()
        # Uniform on the free set: Kolmogorov's distance between its cdf and that of the draws.
        cdf = free.double().cumsum(0) / free.sum()
        place = (at.squeeze(-1) / (2 * math.pi) * 100_000).long()
        empirical = torch.sort(cdf[place]).values
        distance = (empirical - torch.arange(1, trials + 1) / trials).abs().max()
        assert distance < 2.2 / math.sqrt(trials) + 1e-3


def test_far_in_the_tail(generator):
    distribution = make([0.0, 0.0], [[0.5, 0.2], [0.2, 0.5]], [20.0, -INF], [INF, -20.0], [0.5, 0.5])
    sampler = LinearEllipticalSliceSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 8, generator))
    _, positions, _ = sampler.run(state, 200, generator)
    rows = sampler.rows(positions)
    assert rows.isfinite().all()
    assert (rows[..., 0] >= 20).all()
    assert (rows[..., 1] <= -20).all()
    assert (positions[-1] != positions[0]).all()


@pytest.mark.parametrize(("dtype", "width"), [(torch.float64, 1e-6), (torch.float32, 1e-3)])
def test_bounds_that_nearly_touch(dtype, width, generator):
    lower = torch.tensor([0.5, -0.2, 0.0])
    distribution = make([0.0] * 3, torch.eye(3) + 0.5, lower, lower.double() + width, [0.1] * 3, dtype)
    sampler = LinearEllipticalSliceSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 500, generator))
    _, positions, _ = sampler.run(state, 400, generator)
    rows = sampler.rows(positions).double()
    assert (rows >= distribution.lower).all()
    assert (rows <= distribution.upper).all()
    # So short an interval has a nearly flat density: the last draws fill it evenly.
    share = (rows[200:] - distribution.lower.double()) / width
    assert (share.mean((0, 1)) - 0.5).abs().max() < 0.05
    assert (share.std((0, 1)) - math.sqrt(1 / 12)).abs().max() < 0.03


def test_duplicate_and_contradictory_rows(generator):
    root = torch.tensor([[1.0], [1.0], [1.0], [-1.0]])
    distribution = make([0.0] * 4, low_rank(root), [0.0, 0.0, 1.0, 1.0], [INF] * 4, [0.1] * 4)
    sampler = LinearEllipticalSliceSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 16, generator))
    _, positions, _ = sampler.run(state, 100, generator)
    rows, latent = sampler.rows(positions), sampler.latent(positions)
    assert (rows >= distribution.lower).all()
    assert latent.shape == (100, 16, 1)
    noise = rows - distribution.noiseless(latent.flatten(0, 1)).view_as(rows)
    torch.testing.assert_close(noise, math.sqrt(0.1) * positions[..., 1:], rtol=1e-9, atol=1e-12)


def test_rows_without_noise_over_few_coordinates(generator):
    """A quarter of the plane: the angle of `z` is uniform in it, its squared radius is chi-squared."""
    root = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    distribution = make([0.0] * 4, low_rank(root), [0.0] * 4, [INF] * 4, [0.0] * 4)
    sampler = LinearEllipticalSliceSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 200, generator))
    _, positions, _ = sampler.run(state, 300, generator)
    z = sampler.latent(positions)[20:]
    assert (sampler.rows(positions) >= 0).all()
    angle = torch.atan2(z[..., 1], z[..., 0])
    assert abs(angle.mean() - math.pi / 4) < 0.02
    assert abs(angle.std() - math.pi / 2 / math.sqrt(12)) < 0.02
    assert abs(z.square().sum(-1).mean() - 2.0) < 0.06


def test_batches_equal_their_elements(generator):
    mean = torch.tensor([[0.0, 0.5], [1.0, -1.0]], dtype=torch.float64)
    covariance = torch.stack([torch.eye(2) + 0.5, torch.eye(2) - 0.3]).double()
    lower = torch.tensor([[0.0, -INF], [-INF, -2.0]], dtype=torch.float64)
    distribution = make(mean, covariance, lower, torch.full((2, 2), 2.0), torch.full((2, 2), 0.2))
    sampler = LinearEllipticalSliceSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 64, generator))
    _, positions, info = sampler.run(state, 800, generator)
    rows = sampler.rows(positions)
    assert rows.shape == (2, 800, 64, 2)
    assert info.num_evaluations.shape == (2, 64)
    for j in range(2):
        one = make(mean[j], covariance[j], lower[j], [2.0, 2.0], [0.2, 0.2])
        alone = LinearEllipticalSliceSampler(one)
        _, others, _ = alone.run(alone.init(*feasible_start(one, 64, generator)), 800, generator)
        check_same_means(rows[j, 20:], alone.rows(others)[20:])


def test_one_row_without_bounds(generator):
    distribution = make([2.0], [[1.0]], [-INF], [INF], [0.5])
    sampler = LinearEllipticalSliceSampler(distribution)
    _, positions, _ = sampler.run(sampler.init(*feasible_start(distribution, 2000, generator)), 5, generator)
    assert abs(positions[-1].std() - math.sqrt(1.5)) < 4 * math.sqrt(1.5 / 4000)


def test_many_rows_over_few_coordinates(generator):
    m, r = 2000, 20
    root = torch.randn(m, r, generator=generator, dtype=torch.float64)
    signs = torch.sign(root @ torch.randn(r, 1, generator=generator, dtype=torch.float64))
    distribution = make([0.0] * m, low_rank(signs * root), [0.0] * m, [INF] * m, [0.01] * m)
    sampler = LinearEllipticalSliceSampler(distribution)
    state = sampler.init(*feasible_start(distribution, 4, generator))
    _, positions, _ = sampler.run(state, 10, generator)
    assert positions.shape == (10, 4, m + r)
    assert (sampler.rows(positions) >= 0).all()
    assert "dense_covariance" not in distribution.__dict__
    assert "gamma" not in distribution.__dict__


def test_invalid_starts():
    case = slab()
    sampler = LinearEllipticalSliceSampler(case.distribution)
    inside = torch.tensor([[0.0, 0.0, 0.1, 0.0, 0.0]], dtype=torch.float64)
    with pytest.raises(ValueError, match="latent coordinates"):
        sampler.init(inside)
    with pytest.raises(ValueError, match="inside the bounds"):
        sampler.init(inside - 1.0, torch.zeros(1, 1, dtype=torch.float64))
    noiseless = make([0.0, 0.0], low_rank([[1.0], [2.0]]), [0.0, 0.0], [INF, INF], [0.0, 0.0])
    with pytest.raises(ValueError, match="without noise"):
        LinearEllipticalSliceSampler(noiseless).init(torch.ones(1, 2).double(), torch.ones(1, 1).double())
