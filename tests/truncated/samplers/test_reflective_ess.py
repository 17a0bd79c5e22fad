"""Reflections against closed forms, quadrature and other backends; what all samplers do is in `test_samplers`."""

from __future__ import annotations

import math

import pytest
import torch
from sampler_cases import bivariate_orthant, check_case
from scipy import stats
from torch import Tensor

from botorch_skewgp.exceptions import TooManyReflectionsError, UnsupportedError
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.samplers import reflective_ess
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler
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


def draw(distribution, chains=200, steps=150, burn_in=10, seed=0) -> Tensor:
    """Rows `steps x chains x m` after a burn-in."""
    sampler = ReflectiveEllipticalSliceSampler(distribution)
    state = sampler.init(feasible_start(distribution, chains))
    _, positions, _ = sampler.run(state, steps + burn_in, seeded(seed))
    rows = sampler.rows(positions)
    assert ((rows >= distribution.lower) & (rows <= distribution.upper)).all()
    return rows[burn_in:]


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

    def test_bounds_close_together(self, monkeypatch):
        monkeypatch.setattr(reflective_ess, "HORIZON", 1e-4)
        lower = vector(1.0)
        distribution = truncated_normal(vector(0.0), torch.eye(1), lower, lower + 1e-6)
        # a trajectory over 1e-4 goes about a hundred times from wall to wall; in so narrow an interval u is uniform
        rows = draw(distribution, chains=500, steps=1, burn_in=3)
        assert stats.kstest(((rows - lower) / 1e-6).flatten().numpy(), "uniform").pvalue > 1e-4

    @pytest.mark.parametrize("horizon", [0.4, 1.0, 2.5])
    def test_other_horizons(self, horizon, monkeypatch):
        monkeypatch.setattr(reflective_ess, "HORIZON", horizon)
        case = bivariate_orthant()
        check_case(ReflectiveEllipticalSliceSampler(case.distribution), case, 400, 100)


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
        ones = torch.ones(2**15 + 1, dtype=torch.float64)
        many = TruncatedNormal(0 * ones, LowRankPrior(ones.unsqueeze(-1)), 0 * ones, ones, ones)
        with pytest.raises(UnsupportedError, match=r"covariance of all rows, 9 GB for 32769, .* at most 32768"):
            ReflectiveEllipticalSliceSampler(many)

    @pytest.mark.parametrize("compiled", [False, None])
    def test_too_many_reflections(self, compiled, monkeypatch):
        monkeypatch.setattr(reflective_ess, "MAX_REFLECTIONS", 1000)
        lower = vector(1.0)
        distribution = truncated_normal(vector(0.0), torch.eye(1), lower, lower + 1e-6)
        sampler = ReflectiveEllipticalSliceSampler(distribution, compiled=compiled)
        with pytest.raises(TooManyReflectionsError, match=r"1000 reflections.* 0 \(1.0e-06 standard deviations"):
            sampler.run(sampler.init(feasible_start(distribution, 3)), 2, seeded(0))
