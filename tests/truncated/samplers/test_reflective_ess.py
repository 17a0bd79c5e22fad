"""Reflections against closed forms; what all samplers do is in `test_samplers`, and trajectories in their own tests."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from row_cases import INF, low_rank, make
from scipy import stats
from torch import Tensor

from botorch_skewgp.exceptions import TooManyReflectionsError
from botorch_skewgp.truncated.samplers import reflective_ess
from botorch_skewgp.truncated.samplers.feasibility import feasible_start
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler

pytestmark = pytest.mark.rounding


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(distribution, chains: int, steps: int, burn_in: int) -> Tensor:
    """Rows `steps x chains x m` after a burn-in."""
    sampler = ReflectiveEllipticalSliceSampler(distribution)
    state = sampler.init(feasible_start(distribution, chains, seeded(1)))
    _, positions, _ = sampler.run(state, steps + burn_in, seeded(0))
    rows = sampler.rows(positions)
    assert ((rows >= distribution.lower) & (rows <= distribution.upper)).all()
    return rows[burn_in:]


def test_radius_in_a_cone():
    """Where bounds are a cone around the mean, (u - mean)' Gamma^-1 (u - mean) is chi-squared as without them."""
    m = 100
    points = torch.rand(m, 2, generator=seeded(0), dtype=torch.float64)
    covariance = 4 * torch.exp(-torch.cdist(points, points).square() / 0.1)
    lower = torch.where(torch.arange(m) % 2 == 0, 0.0, -INF)
    distribution = make(torch.zeros(m), covariance, lower, torch.where(lower == 0, INF, 0.0), torch.ones(m))
    rows = draw(distribution, chains=20, steps=100, burn_in=10).reshape(-1, m)
    white = torch.linalg.solve_triangular(torch.linalg.cholesky(covariance + torch.eye(m)), rows.mT, upper=False)
    assert stats.kstest(white.square().sum(0).numpy(), stats.chi2(m).cdf).pvalue > 1e-4


def narrow():
    """One row without noise in an interval that a trajectory of a right angle crosses a million times."""
    return make([0.0], [[1.0]], [1.0], [1.0 + 1e-6], [0.0])


def test_bounds_close_together(monkeypatch):
    monkeypatch.setattr(reflective_ess, "HORIZON", 1e-4)
    # a trajectory goes about a hundred times from wall to wall; in so narrow an interval u is uniform
    rows = draw(narrow(), chains=500, steps=1, burn_in=3)
    assert stats.kstest(((rows - 1) / 1e-6).flatten().numpy(), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("compiled", [False, None])
def test_too_many_reflections(compiled, monkeypatch):
    assert ReflectiveEllipticalSliceSampler(narrow()).max_reflections > 10**7
    monkeypatch.setattr(reflective_ess, "MAX_REFLECTIONS", 1000)
    sampler = ReflectiveEllipticalSliceSampler(narrow(), compiled=compiled)
    with pytest.raises(TooManyReflectionsError, match=r"1000 reflections.* 0 \(1.0e-06 standard deviations"):
        sampler.run(sampler.init(feasible_start(narrow(), 3, seeded(0))), 2, seeded(0))


def test_a_row_far_in_a_tail_falls_back_often():
    far, near = (make([0.0], [[1.0]], [z], [INF], [0.1]) for z in (1e5, 1e3))
    limits = [ReflectiveEllipticalSliceSampler(distribution).max_reflections for distribution in (far, near)]
    assert limits[0] > 10 * limits[1]


def example():
    covariance = [[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 1.0]]
    return make([0.5, 0.0, -0.5], covariance, [0.0] * 3, [3.0] * 3, [0.1] * 3)


def test_shapes_and_reproducibility():
    distribution = example()
    sampler = ReflectiveEllipticalSliceSampler(distribution)
    state = sampler.init(feasible_start(distribution, 5, seeded(0)))
    before, global_state = state.position.clone(), torch.get_rng_state()
    last, positions, info = sampler.run(state, 7, seeded(1))
    assert (positions.shape, positions.dtype) == ((7, 5, 3), torch.float64)
    assert (info.num_evaluations.shape, info.num_evaluations.dtype) == ((5,), torch.long)
    assert (info.num_evaluations > 0).all()
    assert torch.equal(last.position, positions[-1])
    assert torch.equal(state.position, before)
    assert torch.equal(sampler.run(state, 7, seeded(1))[1], positions)
    assert not torch.equal(sampler.run(state, 7, seeded(2))[1], positions)
    assert torch.equal(torch.get_rng_state(), global_state)
    torch.testing.assert_close(sampler.rows(positions), positions + distribution.mean)
    assert torch.equal(sampler.step(state, seeded(4))[0].position, sampler.run(state, 1, seeded(4))[1][0])


def test_chunks(monkeypatch):
    distribution = example()
    sampler = ReflectiveEllipticalSliceSampler(distribution)
    state = sampler.init(feasible_start(distribution, 4, seeded(0)))
    monkeypatch.setattr(reflective_ess, "CHUNK_BYTES", 3 * state.position.numel() * 8)
    last, positions, info = sampler.run(state, 7, seeded(1))
    assert torch.equal(last.position, positions[-1])
    generator, parts, counts = seeded(1), [], 0
    for steps in (3, 3, 1):
        state, part, of_part = sampler.run(state, steps, generator)
        parts.append(part)
        counts = counts + of_part.num_evaluations
    assert torch.equal(positions, torch.cat(parts))
    assert torch.equal(info.num_evaluations, counts)


def test_errors():
    sampler = ReflectiveEllipticalSliceSampler(example())
    with pytest.raises(ValueError, match="num_steps"):
        sampler.run(sampler.init(torch.ones(2, 3)), 0)
    ones = torch.ones(2**15 + 1)
    many = make(0 * ones, low_rank(ones.unsqueeze(-1)), 0 * ones, ones, ones)
    with pytest.raises(UnsupportedError, match=r"covariance of all rows, 9 GB for 32769, .* at most 32768"):
        ReflectiveEllipticalSliceSampler(many)
