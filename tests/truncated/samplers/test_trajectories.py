"""Trajectories: times of events, compiled ones against eager ones, walls of finite height by importance sampling."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.samplers import reflective_ess
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler, uses_numba
from botorch_skewgp.truncated.samplers.trajectories.eager import half_angle_tangent, next_crossing
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytestmark = pytest.mark.rounding

INF, double = math.inf, torch.double


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=double)


def problem(m: int, walls: str) -> tuple[TruncatedNormal, Tensor]:
    """A distribution, and three starts."""
    generator = torch.Generator().manual_seed(m)
    factor = torch.randn(m, m, generator=generator, dtype=double)
    covariance = factor @ factor.mT / m + 0.1 * torch.eye(m, dtype=double)
    mean, offset = torch.randn(2, m, generator=generator, dtype=double)
    offset = {"at the mean": 0 * offset, "below the mean": 0 * offset - 0.3}.get(walls, offset)
    lower, upper = mean + offset, torch.full_like(mean, INF)
    if walls == "one each":
        upper = torch.where(torch.arange(m) % 2 == 0, lower, upper)
        lower = torch.where(upper.isfinite(), -INF, lower)
    if walls == "both":
        upper = lower + 0.5 + torch.rand(m, generator=generator, dtype=double)
        lower[..., ::3] = -INF
        upper[..., 1::3] = INF
    start = torch.where(lower.isfinite(), lower + 0.25, torch.where(upper.isfinite(), upper - 0.25, mean))
    return TruncatedNormal(mean, covariance, lower, upper, 0.2 * torch.ones_like(mean)), start.repeat(3, 1)


def slips(answers: bool = False, closed: bool = False) -> TruncatedNormal:
    m, root = 6, torch.randn(6, 3, dtype=double, generator=torch.Generator().manual_seed(3))
    outside, answer = vector(0.1, 0.02, 0.2, 0.1, 0.3, 0.05), None
    gain = 1 - 2 * outside
    if answers:
        answer, outside = vector(0, 0, 1, 1, 1, 2), vector(0.1, 0.1, 0.2, 0.2, 0.2, 0.05)
        gain = 1 - outside
    if closed:
        outside[1] = 0.0
    return TruncatedNormal(
        mean=vector(-1.0, -0.3, 0.5, -2.0, 0.7, 0.1),
        prior=LowRankPrior(root),
        lower=vector(0, 0, -0.4, 0, -INF, 0),
        upper=vector(INF, INF, 0.9, INF, -0.3, INF),
        noise=torch.full((m,), 0.3, dtype=double),
        heights=Heights(outside, gain, answer),
    )


def both(distribution: TruncatedNormal, start: Tensor, steps: int):
    """Positions and numbers of events of eager and of compiled trajectories."""
    pytest.importorskip("numba")
    runs = []
    for compiled in (False, True):
        sampler = ReflectiveEllipticalSliceSampler(distribution, compiled=compiled)
        generator = torch.Generator().manual_seed(7)
        _, positions, info = sampler.run(sampler.init(start), steps, generator)
        runs.append((positions, info.num_evaluations))
    return *runs[0], *runs[1]


@pytest.mark.parametrize("time_of", [half_angle_tangent, next_crossing])
def test_events_solve_their_equation_and_are_the_first(time_of):
    x, v, bound = torch.randn(3, 2000, generator=torch.Generator().manual_seed(0), dtype=double)
    if time_of is half_angle_tangent:  # from above
        x = bound + (x - bound).abs()
        x[:200], v[:200] = bound[:200], v[:200].abs()
    time = 2 * torch.atan(time_of(x, v, bound))
    reached = time < math.pi - 1e-6
    height = x * time.cos() + v * time.sin() - bound
    assert height[reached].abs().max() < 1e-9
    if time_of is half_angle_tangent:  # it is falling there
        assert (v * time.cos() - x * time.sin())[reached].max() <= 1e-9
    before = torch.linspace(1e-3, 1 - 1e-3, 1000, dtype=double).unsqueeze(-1) * torch.where(reached, time, math.pi)
    path = (x * before.cos() + v * before.sin() - bound) * torch.where(x == bound, 1, (x - bound).sign())
    assert path.min() > -1e-9
    for sign in (-1, 1):  # both kinds of bound were hit and missed
        assert reached[sign * bound > 0].any()
    assert not reached.all()


def test_infinite_bounds_and_rows_at_their_bounds():
    x, v = vector(1.0, -1.0, 0.5), vector(-2.0, 3.0, 0.0)
    assert half_angle_tangent(x, v, torch.full_like(x, -INF)).isinf().all()
    assert half_angle_tangent(vector(0.3) - 1e-16, vector(-1.0), vector(0.3)) == 0
    # leaving an infeasible mean's bound it comes back after T = v / bound
    torch.testing.assert_close(half_angle_tangent(vector(2.0), vector(0.5), vector(2.0)), vector(0.25))
    torch.testing.assert_close(next_crossing(vector(1, 1), vector(0.5, -0.5), vector(1, 1)), vector(0.5, INF))


def test_numba_serves_cpus_where_it_is_installed(monkeypatch, caplog):
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(reflective_ess, "find_spec", lambda name: object())
    assert uses_numba(cpu)
    assert not uses_numba(cuda)
    reflective_ess.log_missing_numba.cache_clear()
    monkeypatch.setattr(reflective_ess, "find_spec", lambda name: None)
    assert not any(uses_numba(device) for device in (cuda, cpu, cpu))
    (record,) = caplog.records
    assert "the extra `fast`" in record.message


# Sizes around the padding of rows to blocks of 16; few steps, because a billiard magnifies rounding.
@pytest.mark.parametrize("m", [1, 16, 17, 40])
@pytest.mark.parametrize("walls", ["at the mean", "lower", "one each", "both"])
def test_compiled_reflections_are_the_eager_ones(m, walls):
    eager, eager_events, fast, fast_events = both(*problem(m, walls), steps=3)
    assert torch.equal(eager_events, fast_events)
    assert fast_events.sum() > 0
    torch.testing.assert_close(fast, eager, rtol=0, atol=1e-9)


def test_dips_below_a_bound_under_the_mean(monkeypatch):
    """With bounds just under the mean and one wide look ahead rows fall below them and come back within it."""
    monkeypatch.setattr(reflective_ess, "HORIZON", 3.1)
    eager, eager_events, fast, fast_events = both(*problem(4, "below the mean"), steps=40)
    torch.testing.assert_close(fast[:5], eager[:5], rtol=0, atol=1e-9)
    assert torch.equal(eager_events, fast_events)


@pytest.mark.parametrize("answers", [False, True])
def test_compiled_refractions_are_the_eager_ones(answers):
    eager, _, fast, _ = both(slips(answers), torch.full((5, 6), 0.2, dtype=double), steps=20)
    torch.testing.assert_close(eager, fast, rtol=0, atol=1e-9)


def test_threads_do_not_change_draws():
    pytest.importorskip("numba")
    distribution, start = problem(20, "both")
    sampler, threads, ends = ReflectiveEllipticalSliceSampler(distribution), torch.get_num_threads(), []
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            _, positions, info = sampler.run(sampler.init(start), 4, torch.Generator().manual_seed(7))
            ends.append((positions, info.num_evaluations))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, three) for one, three in zip(*ends, strict=True))


def weights_of(distribution: TruncatedNormal, u: Tensor) -> Tensor:
    """The product of steps at rows `n x m`, one for each answer."""
    heights, inside = distribution.heights, (u > distribution.lower) & (u <= distribution.upper)
    answer = torch.arange(u.shape[-1]) if heights.answer is None else heights.answer.long()
    value = torch.ones(len(u), dtype=u.dtype)
    for a in answer.unique():
        rows = (answer == a).nonzero().squeeze(-1)
        value = value * (heights.outside[rows[0]] + heights.gain[rows[0]] * inside[:, rows].all(-1))
    return value


@pytest.mark.parametrize(("answers", "closed"), [(False, False), (True, False), (False, True)])
def test_refractions_agree_with_importance_sampling(answers, closed):
    distribution, g = slips(answers, closed), torch.Generator().manual_seed(0)
    n, chains = 200_000, 200
    L = torch.linalg.cholesky(distribution.gamma)
    u = distribution.mean + torch.randn(n, 6, dtype=double, generator=g) @ L.mT
    w = weights_of(distribution, u)
    w = w / w.sum()
    mean, inside = w @ u, w @ ((u > distribution.lower) & (u <= distribution.upper)).double()
    sd = (w @ (u - mean).square()).sqrt()
    sampler = ReflectiveEllipticalSliceSampler(distribution)
    start = torch.where(inside > 0.5, distribution.lower.clamp(min=-0.35) + 0.1, -distribution.upper.clamp(max=1))
    start = distribution.factor.clamp(start).expand(chains, 6)
    state, _, _ = sampler.run(sampler.init(start), 40, g)
    _, positions, _ = sampler.run(state, 100, g)
    rows = sampler.rows(positions)
    by_chain = rows.mean(0)  # independent chains: their averages have an error of their own
    error = by_chain.std(0) / chains**0.5
    assert bool(((by_chain.mean(0) - mean).abs() < 4 * error + 4 * sd / (n * 0.1) ** 0.5).all())
    found = ((rows > distribution.lower) & (rows <= distribution.upper)).double().mean(0)
    assert bool(((found.mean(0) - inside).abs() < 4 * found.std(0) / chains**0.5 + 0.005).all())
    if closed:
        assert bool((rows[..., 1] >= distribution.lower[1]).all())
