"""Compiled trajectories against those in eager torch, and which of them runs where."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from botorch_skewgp.truncated.samplers import reflective_ess
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler, choose_backend
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytestmark = pytest.mark.rounding

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def problem(m: int, walls: str, dtype: torch.dtype = torch.float64) -> tuple[TruncatedNormal, Tensor]:
    """A distribution, and three starts."""
    generator = torch.Generator().manual_seed(m)
    factor = torch.randn(m, m, generator=generator, dtype=torch.float64)
    covariance = factor @ factor.mT / m + 0.1 * torch.eye(m, dtype=torch.float64)
    mean, offset = torch.randn(2, m, generator=generator, dtype=torch.float64)
    if walls == "at the mean":
        offset = torch.zeros_like(offset)
    lower, upper = mean + offset, torch.full_like(mean, math.inf)
    if walls == "one each":
        upper = torch.where(torch.arange(m) % 2 == 0, lower, upper)
        lower = torch.where(upper.isfinite(), -math.inf, lower)
    if walls == "both":
        upper = lower + 0.5 + torch.rand(m, generator=generator, dtype=torch.float64)
        lower[..., ::3] = -math.inf
        upper[..., 1::3] = math.inf
    start = torch.where(lower.isfinite(), lower + 0.25, torch.where(upper.isfinite(), upper - 0.25, mean))
    distribution = TruncatedNormal(
        *(values.to(dtype) for values in (mean, covariance, lower, upper, 0.2 * torch.ones_like(mean)))
    )
    return distribution, start.repeat(3, 1).to(dtype)


def run(distribution: TruncatedNormal, start: Tensor, backend: str, steps: int, horizon: float = math.pi / 2):
    sampler = ReflectiveEllipticalSliceSampler(distribution, horizon=horizon, backend=backend)
    assert sampler.backend == backend
    generator = torch.Generator(device=start.device).manual_seed(7)
    return sampler.run(sampler.init(start), steps, generator)


class TestChooseKernel:
    def test_auto(self, monkeypatch):
        monkeypatch.setattr(reflective_ess, "find_spec", lambda name: object())
        assert choose_backend("auto", CPU) == "numba"
        assert choose_backend("auto", CUDA) == "eager"
        assert choose_backend("auto", torch.device("mps")) == "eager"
        monkeypatch.setattr(reflective_ess, "find_spec", lambda name: None)
        assert choose_backend("auto", CPU) == choose_backend("auto", CUDA) == "eager"
        assert choose_backend("eager", CPU) == "eager"

    def test_missing_numba_is_logged_once_with_the_extra_that_brings_it(self, monkeypatch, caplog):
        reflective_ess.log_missing_numba.cache_clear()
        monkeypatch.setattr(reflective_ess, "find_spec", lambda name: None)
        for device in (CUDA, CPU, CPU):
            choose_backend("auto", device)
        (record,) = caplog.records
        assert "the extra `fast`" in record.message

    def test_missing(self, monkeypatch):
        monkeypatch.setattr(reflective_ess, "find_spec", lambda name: None)
        with pytest.raises(ImportError, match="needs numba; the extra `fast`"):
            choose_backend("numba", CPU)

    def test_wrong_device_or_name(self, monkeypatch):
        monkeypatch.setattr(reflective_ess, "find_spec", lambda name: object())
        with pytest.raises(ValueError, match="runs on cpu"):
            choose_backend("numba", CUDA)
        with pytest.raises(ValueError, match="backend must be one of"):
            choose_backend("cuda", CPU)


class TestNumba:
    @pytest.fixture(autouse=True)
    def numba(self):
        pytest.importorskip("numba")

    # Sizes around the padding of rows to blocks of 16; few steps, because a billiard magnifies rounding.
    @pytest.mark.parametrize("m", [1, 3, 16, 17, 40])
    @pytest.mark.parametrize("walls", ["at the mean", "lower", "one each", "both"])
    def test_agrees_with_eager(self, m, walls):
        distribution, start = problem(m, walls)
        _, eager, eager_info = run(distribution, start, "eager", steps=3)
        _, fast, fast_info = run(distribution, start, "numba", steps=3)
        assert torch.equal(eager_info.num_evaluations, fast_info.num_evaluations)
        assert fast_info.num_evaluations.sum() > 0
        torch.testing.assert_close(fast, eager, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("walls", ["at the mean", "lower", "one each", "both"])
    def test_agrees_with_eager_in_single_precision(self, walls):
        distribution, start = problem(5, walls, torch.float32)
        _, eager, _ = run(distribution, start, "eager", steps=1)
        _, fast, _ = run(distribution, start, "numba", steps=1)
        assert fast.dtype == torch.float32
        torch.testing.assert_close(fast, eager, rtol=0, atol=2e-3)

    def test_dips_below_a_bound_under_the_mean(self):
        # Bounds just under the mean and one wide look ahead: rows fall below them and come back within it.
        distribution, start = problem(4, "at the mean")
        distribution = TruncatedNormal(
            distribution.mean,
            distribution.prior.covariance,
            distribution.lower - 0.3,
            distribution.upper,
            distribution.noise,
        )
        _, eager, eager_info = run(distribution, start, "eager", 40, horizon=3.1)
        _, fast, fast_info = run(distribution, start, "numba", 40, horizon=3.1)
        torch.testing.assert_close(fast[:5], eager[:5], rtol=0, atol=1e-9)
        assert torch.equal(eager_info.num_evaluations, fast_info.num_evaluations)

    def test_threads_do_not_change_draws(self):
        distribution, start = problem(20, "both")
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(1)
            _, one, one_info = run(distribution, start, "numba", 4)
            torch.set_num_threads(3)
            _, three, three_info = run(distribution, start, "numba", 4)
        finally:
            torch.set_num_threads(threads)
        torch.testing.assert_close(one, three, rtol=0, atol=0)
        assert torch.equal(one_info.num_evaluations, three_info.num_evaluations)
