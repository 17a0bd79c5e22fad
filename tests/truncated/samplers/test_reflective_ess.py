"""Reflections against closed forms, quadrature and other backends; what all samplers do is in `test_samplers`."""

from __future__ import annotations

import math

import pytest
import torch
from sampler_cases import bivariate_orthant, check_case
from scipy import stats
from torch import Tensor

from botorch_skewgp.exceptions import TooManyReflectionsError
from botorch_skewgp.truncated.samplers import reflective_ess
from botorch_skewgp.truncated.samplers.reflective_ess import (
    ReflectiveEllipticalSliceSampler,
)
from botorch_skewgp.truncated.samplers.trajectories.eager import half_angle_tangent
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytestmark = pytest.mark.rounding

INF = math.inf
STANDARD_ERRORS = 4.5


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def truncated_normal(mean, covariance, lower, upper, noise=None, dtype=torch.float64) -> TruncatedNormal:
    mean = mean.to(dtype)
    noise = torch.zeros_like(mean) if noise is None else noise.to(dtype)
    return TruncatedNormal(mean, covariance.to(dtype), lower.to(dtype), upper.to(dtype), noise)


def feasible_start(distribution: TruncatedNormal, chains: int) -> Tensor:
    """A point between finite bounds, or a tenth inside the only one."""
    lower, upper = distribution.lower, distribution.upper
    middle = torch.where(lower.isfinite() & upper.isfinite(), 0.5 * (lower + upper), distribution.mean)
    start = torch.where(upper.isinf() & lower.isfinite(), torch.maximum(middle, lower + 0.1), middle)
    start = torch.where(lower.isinf() & upper.isfinite(), torch.minimum(start, upper - 0.1), start)
    return start.unsqueeze(-2).repeat_interleave(chains, dim=-2)


def draw(distribution, chains=200, steps=150, burn_in=10, seed=0, **options) -> Tensor:
    """Rows `steps x chains x m` after a burn-in."""
    sampler = ReflectiveEllipticalSliceSampler(distribution, **options)
    state = sampler.init(feasible_start(distribution, chains))
    _, positions, _ = sampler.run(state, steps + burn_in, seeded(seed))
    rows = sampler.rows(positions)
    assert ((rows >= distribution.lower) & (rows <= distribution.upper)).all()
    return rows[burn_in:]


class TestHalfAngleTangent:
    def test_against_a_grid(self):
        generator = seeded(0)
        bound = torch.randn(4000, generator=generator, dtype=torch.float64)
        x = bound + torch.rand(4000, generator=generator, dtype=torch.float64)
        x[:500] = bound[:500]  # at the bound
        v = 1.5 * torch.randn(4000, generator=generator, dtype=torch.float64)
        v[:500] = v[:500].abs()
        time = 2 * torch.atan(half_angle_tangent(x, v, bound))
        reached = time < math.pi - 1e-6
        # where there is a hit the row is at its bound and falling
        height = x * time.cos() + v * time.sin() - bound
        assert height[reached].abs().max() < 1e-9
        assert (v * time.cos() - x * time.sin())[reached].max() <= 1e-9
        # and before it, or before pi, the row is above its bound
        fractions = torch.linspace(1e-3, 1 - 1e-3, 400, dtype=torch.float64).unsqueeze(-1)
        before = fractions * torch.where(reached, time, math.pi)
        assert (x * before.cos() + v * before.sin() - bound).min() > -1e-9
        for sign in (-1, 1):  # both kinds of bound were hit and missed
            assert 0 < reached[sign * bound > 0].double().mean() <= 1
        assert not reached.all()

    def test_infinite_bounds_and_rounding(self):
        x, v = vector(1.0, -1.0, 0.5), vector(-2.0, 3.0, 0.0)
        assert half_angle_tangent(x, v, torch.full_like(x, -INF)).isinf().all()
        beyond = vector(0.3) - 1e-16
        assert half_angle_tangent(beyond, vector(-1.0), vector(0.3)) == 0
        # leaving an infeasible mean's bound it comes back after T = v / bound
        torch.testing.assert_close(half_angle_tangent(vector(2.0), vector(0.5), vector(2.0)), vector(0.25))


class TestMoments:
    @pytest.mark.parametrize("dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.slow)])
    def test_radius_in_a_cone(self, dtype):
        # Where the bounds are a cone around the mean, (u - mean)' Gamma^-1 (u - mean) is chi-squared as without them.
        m = 100
        points = torch.rand(m, 2, generator=seeded(0), dtype=torch.float64)
        covariance = 4 * torch.exp(-torch.cdist(points, points).square() / 0.1)
        gamma = covariance + torch.eye(m)
        lower = torch.where(torch.arange(m) % 2 == 0, 0.0, -INF)
        upper = torch.where(lower == 0, INF, 0.0)
        distribution = truncated_normal(torch.zeros(m), covariance, lower, upper, torch.ones(m), dtype=dtype)
        rows = draw(distribution, chains=20, steps=100).double().reshape(-1, m)
        white = torch.linalg.solve_triangular(torch.linalg.cholesky(gamma), rows.mT, upper=False)
        assert stats.kstest(white.square().sum(0).numpy(), stats.chi2(m).cdf).pvalue > 1e-4

    def test_bounds_close_together(self):
        lower = vector(1.0)
        distribution = truncated_normal(vector(0.0), torch.eye(1), lower, lower + 1e-6)
        # a trajectory over 1e-4 goes about a hundred times from wall to wall; in so narrow an interval u is uniform
        rows = draw(distribution, horizon=1e-4, chains=500, steps=1, burn_in=3)
        assert stats.kstest(((rows - lower) / 1e-6).flatten().numpy(), "uniform").pvalue > 1e-4

    @pytest.mark.parametrize("horizon", [0.4, 1.0, 2.5])
    def test_other_horizons(self, horizon):
        case = bivariate_orthant()
        check_case(ReflectiveEllipticalSliceSampler(case.distribution, horizon=horizon), case, 400, 200)


class TestInterface:
    def example(self, dtype=torch.float64) -> TruncatedNormal:
        covariance = torch.tensor([[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 1.0]])
        mean = torch.tensor([0.5, 0.0, -0.5])
        return truncated_normal(mean, covariance, torch.zeros(3), torch.full((3,), 3.0), 0.1 * torch.ones(3), dtype)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_shapes_and_reproducibility(self, dtype):
        distribution = self.example(dtype)
        sampler = ReflectiveEllipticalSliceSampler(distribution)
        state = sampler.init(feasible_start(distribution, 5))
        before, global_state = state.position.clone(), torch.get_rng_state()
        last, positions, info = sampler.run(state, 7, seeded(1))
        assert positions.shape == (7, 5, 3)
        assert positions.dtype == dtype
        assert info.num_evaluations.shape == (5,)
        assert info.num_evaluations.dtype == torch.long
        assert (info.num_evaluations > 0).all()
        torch.testing.assert_close(last.position, positions[-1], rtol=0, atol=0)
        torch.testing.assert_close(state.position, before, rtol=0, atol=0)
        torch.testing.assert_close(sampler.run(state, 7, seeded(1))[1], positions, rtol=0, atol=0)
        assert not torch.equal(sampler.run(state, 7, seeded(2))[1], positions)
        assert torch.equal(torch.get_rng_state(), global_state)
        torch.testing.assert_close(sampler.rows(positions), positions + distribution.mean)
        stepped, _ = sampler.step(state, seeded(4))
        torch.testing.assert_close(stepped.position, sampler.run(state, 1, seeded(4))[1][0], rtol=0, atol=0)

    def test_chunks(self, monkeypatch):
        distribution = self.example()
        sampler = ReflectiveEllipticalSliceSampler(distribution)
        state = sampler.init(feasible_start(distribution, 4))
        whole = sampler.run(state, 7, seeded(1))
        monkeypatch.setattr(reflective_ess, "CHUNK_BYTES", 3 * state.position.numel() * 8)
        last, positions, info = sampler.run(state, 7, seeded(1))
        assert positions.shape == whole[1].shape
        torch.testing.assert_close(last.position, positions[-1], rtol=0, atol=0)
        generator = seeded(1)
        state_a, first, info_a = sampler.run(state, 3, generator)
        state_b, second, info_b = sampler.run(state_a, 3, generator)
        _, third, info_c = sampler.run(state_b, 1, generator)
        torch.testing.assert_close(positions, torch.cat([first, second, third]), rtol=0, atol=0)
        expected = info_a.num_evaluations + info_b.num_evaluations + info_c.num_evaluations
        assert torch.equal(info.num_evaluations, expected)

    def test_errors(self):
        distribution = self.example()
        sampler = ReflectiveEllipticalSliceSampler(distribution)
        with pytest.raises(ValueError, match="num_steps"):
            sampler.run(sampler.init(torch.ones(2, 3)), 0)
        for horizon in (0.0, math.pi, math.nan):
            with pytest.raises(ValueError, match="horizon"):
                ReflectiveEllipticalSliceSampler(distribution, horizon=horizon)
        with pytest.raises(ValueError, match="backend must be one of"):
            ReflectiveEllipticalSliceSampler(distribution, backend="fortran")

    @pytest.mark.parametrize("backend", ["eager", "auto"])
    def test_too_many_reflections(self, backend, monkeypatch):
        monkeypatch.setattr(reflective_ess, "MAX_REFLECTIONS", 1000)
        lower = vector(1.0)
        distribution = truncated_normal(vector(0.0), torch.eye(1), lower, lower + 1e-6)
        sampler = ReflectiveEllipticalSliceSampler(distribution, backend=backend)
        with pytest.raises(TooManyReflectionsError, match=r"1000 reflections.* 0 \(1.0e-06 standard deviations"):
            sampler.run(sampler.init(feasible_start(distribution, 3)), 2, seeded(0))
