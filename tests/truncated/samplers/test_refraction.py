"""Trajectories through walls of finite height: against importance sampling, and compiled against eager ones."""

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from botorch_skewgp.papers import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.trajectories.eager import next_crossing
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytestmark = pytest.mark.rounding


def make(answers: bool = False, closed: bool = False) -> TruncatedNormal:
    g = torch.Generator().manual_seed(3)
    m = 6
    root = torch.randn(m, 3, dtype=torch.double, generator=g)
    outside = torch.tensor([0.1, 0.02, 0.2, 0.1, 0.3, 0.05], dtype=torch.double)
    gain, answer = 1 - 2 * outside, None
    if answers:
        answer = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 2.0], dtype=torch.double)
        outside = torch.tensor([0.1, 0.1, 0.2, 0.2, 0.2, 0.05], dtype=torch.double)
        gain = 1 - outside
    if closed:
        outside[1] = 0.0
    lower = torch.zeros(m, dtype=torch.double)
    upper = torch.full_like(lower, torch.inf)
    lower[2], upper[2] = -0.4, 0.9
    lower[4], upper[4] = -torch.inf, -0.3
    return TruncatedNormal(
        mean=torch.tensor([-1.0, -0.3, 0.5, -2.0, 0.7, 0.1], dtype=torch.double),
        prior=LowRankPrior(root),
        lower=lower,
        upper=upper,
        noise=torch.full_like(lower, 0.3),
        heights=Heights(outside, gain, answer),
    )


def weights_of(distribution: TruncatedNormal, u: torch.Tensor) -> torch.Tensor:
    """The product of steps at rows `n x m`, one for each answer."""
    heights = distribution.heights
    assert heights is not None
    inside = (u > distribution.lower) & (u <= distribution.upper)
    answer = torch.arange(u.shape[-1]) if heights.answer is None else heights.answer.long()
    value = torch.ones(len(u), dtype=u.dtype)
    for a in answer.unique():
        rows = (answer == a).nonzero().squeeze(-1)
        value = value * (heights.outside[rows[0]] + heights.gain[rows[0]] * inside[:, rows].all(-1))
    return value


@pytest.mark.parametrize(("answers", "closed"), [(False, False), (True, False), (False, True)])
def test_agrees_with_importance_sampling(answers: bool, closed: bool) -> None:
    distribution = make(answers, closed)
    g = torch.Generator().manual_seed(0)
    n = 400_000
    L = torch.linalg.cholesky(distribution.gamma)
    u = distribution.mean + torch.randn(n, 6, dtype=torch.double, generator=g) @ L.mT
    w = weights_of(distribution, u)
    w = w / w.sum()
    mean, inside = w @ u, w @ ((u > distribution.lower) & (u <= distribution.upper)).double()
    sd = (w @ (u - mean).square()).sqrt()

    chains = 200
    sampler = ReflectiveEllipticalSliceSampler(distribution)
    start = torch.where(inside > 0.5, distribution.lower.clamp(min=-0.35) + 0.1, -distribution.upper.clamp(max=1))
    start = distribution.factor.clamp(start).expand(chains, 6)
    state, _, _ = sampler.run(sampler.init(start), 60, g)
    _, positions, info = sampler.run(state, 150, g)
    rows = sampler.rows(positions)
    by_chain = rows.mean(0)  # independent chains: their averages have an error of their own
    error = by_chain.std(0) / chains**0.5
    assert bool(((by_chain.mean(0) - mean).abs() < 4 * error + 4 * sd / (n * 0.1) ** 0.5).all())
    found = ((rows > distribution.lower) & (rows <= distribution.upper)).double().mean(0)
    assert bool(((found.mean(0) - inside).abs() < 4 * found.std(0) / chains**0.5 + 0.005).all())
    assert float(info.num_evaluations.double().mean()) > 0
    if closed:
        assert bool((rows[..., 1] >= distribution.lower[1]).all())


@pytest.mark.parametrize("answers", [False, True])
def test_compiled_trajectories_are_the_eager_ones(answers: bool) -> None:
    pytest.importorskip("numba")
    distribution = make(answers)
    start = torch.zeros(5, 6, dtype=torch.double) + 0.2
    ends = []
    for backend in ("eager", "numba"):
        sampler = ReflectiveEllipticalSliceSampler(distribution, backend=backend)
        g = torch.Generator().manual_seed(7)
        ends.append(sampler.run(sampler.init(start), 20, g)[1])
    assert torch.allclose(*ends, atol=1e-9)


def test_crossings_solve_their_equation_and_are_the_first() -> None:
    g = torch.Generator().manual_seed(0)
    x, v, bound = torch.randn(3, 2000, dtype=torch.double, generator=g)
    half = next_crossing(x, v, bound)
    t = 2 * torch.atan(half)
    reached = half.isfinite()
    value = x * t.cos() + v * t.sin()
    assert torch.allclose(value[reached], bound[reached], atol=1e-9)
    times = torch.linspace(1e-6, torch.pi - 1e-6, 4001, dtype=torch.double).unsqueeze(-1)
    path = x * times.cos() + v * times.sin() - bound
    crossed = (path[1:] * path[:-1] < 0).long()
    first = times[crossed.argmax(0)].squeeze(-1)
    crosses = crossed.any(0)
    assert bool((first[crosses] <= t[crosses] + 1e-3).all())
    assert bool(((t[crosses] - first[crosses]).abs() < 2e-3).all())


def test_a_row_at_its_bound_does_not_cross_it_at_once() -> None:
    one = torch.ones(2, dtype=torch.double)
    half = next_crossing(one, torch.tensor([0.5, -0.5], dtype=torch.double), one)
    assert float(half[0]) == pytest.approx(0.5)  # back at 1 after a rise
    assert float(half[1]) == torch.inf


def test_refractions_and_hamiltonian_trajectories_agree() -> None:
    distribution = make()
    with pytest.raises(UnsupportedError, match="may be slips"):
        draw(distribution, DrawSettings(sampler=LinearEllipticalSliceSampler))
    reference, found = (draw(distribution, DrawSettings(4096, sampler=name)) for name in ("reflective", "hamiltonian"))
    for power in (1, 2):
        a, b = (entry.rows.pow(power) for entry in (reference, found))
        error = (a.var(0) / reference.effective_size.min() + b.var(0) / found.effective_size.min()).sqrt()
        assert bool(((a.mean(0) - b.mean(0)).abs() < 4.5 * error).all())
