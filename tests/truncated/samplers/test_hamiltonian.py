"""Hamiltonian Monte Carlo around a Gaussian: its potential, walls, tails, and what sees them missing."""

import math
import warnings

import numpy as np
import pytest
import torch
from row_cases import INF, low_rank, make
from sampler_cases import check_invariance
from scipy.special import log_ndtr

from botorch_skewgp.exceptions import ConvergenceWarning, PoorDrawsWarning, UnsupportedError
from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.priors import BorderedPrior, LowRankPrior, WeightedPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.hamiltonian import HamiltonianSampler, Preconditioner
from botorch_skewgp.truncated.samplers.sampler import SamplerState
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytestmark = pytest.mark.rounding

double = torch.double


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=double, generator=torch.Generator().manual_seed(seed))


def counts_at_one_point(n: int, variance: float) -> TruncatedNormal:
    """`n` yes of `n` at one point."""
    zero = torch.zeros(1, dtype=double)
    return TruncatedNormal(zero, low_rank([[math.sqrt(variance)]]), zero, zero + INF, zero + 1, count=zero + n)


def truth(n: int, variance: float, levels) -> tuple[float, np.ndarray]:
    f = np.linspace(-5, 40, 200_001)
    weight = np.exp(-f * f / 2 / variance + n * log_ndtr(f))
    weight /= weight.sum()
    mean = (weight * f).sum()
    return math.sqrt((weight * (f - mean) ** 2).sum()), np.interp(levels, weight.cumsum(), f)


def propagated(distribution: TruncatedNormal):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where all answers go one way; any Gaussian will do
        return expectation_propagation(distribution, tolerance=1e-3)


def kinds_of_rows() -> dict[str, TruncatedNormal]:
    m, n = 9, 4
    index = torch.stack([torch.arange(m) % n, (torch.arange(m) + 1 + torch.arange(m) // n) % n], -1)
    weight = torch.tensor([1.0, -1.0], dtype=double).expand(m, 2)
    R = torch.linalg.qr(randn(n, n)).R
    lower, noise = torch.where(torch.arange(m) % 3 == 0, -0.4, 0.0).double(), 0.3 + torch.rand(m).double()
    rest = (lower, torch.where(torch.arange(m) % 3 == 0, 0.8, INF).double(), noise)
    mean, root, count = 0.3 * randn(m), randn(m, 3), torch.arange(1, m + 1).double()
    block = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 4])
    shared = randn(m, 2, seed=1) * torch.tensor([1, 1, 1, 1, 1, 0, 1, 1, 0]).double().unsqueeze(-1)
    slips = Heights(torch.full_like(mean, 0.1), torch.full_like(mean, 0.8), block.double())
    covariance = root @ root.mT + 0.1 * torch.eye(m).double()
    return {
        "dense": TruncatedNormal(mean, covariance, *rest),
        "low rank": TruncatedNormal(mean, LowRankPrior(root), *rest),
        "counts": TruncatedNormal(mean, LowRankPrior(root), *rest, count),
        "pairs": TruncatedNormal(mean, WeightedPrior(index, weight, R), *rest),
        "blocks": TruncatedNormal(mean, BorderedPrior(root, shared, block), *rest),
        "slips": TruncatedNormal(mean, LowRankPrior(root), *rest, heights=slips),
    }


KINDS = kinds_of_rows()


@pytest.mark.parametrize("stretched", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_potential_is_the_log_density_over_that_of_positions(kind, stretched):
    """Rows at positions have the prior's covariance given sites; the density of rows is prior times factors."""
    distribution = KINDS[kind]
    approximation = expectation_propagation(distribution)
    sampler = HamiltonianSampler(distribution, approximation)
    p = sampler._coordinates.size
    if stretched:
        directions = torch.linalg.qr(randn(p, 2, seed=3)).Q.mT
        sampler._preconditioner = Preconditioner(directions, torch.tensor([[2.0], [1.7]]).double())
    w = randn(p, 6, seed=5)
    h = sampler.noiseless(w.mT)
    if not stretched:
        B = sampler.noiseless(torch.eye(p, dtype=double)) - sampler.noiseless(torch.zeros(1, p, dtype=double))
        variance = approximation.variance
        torch.testing.assert_close(B.square().sum(0), variance)
    sites = (
        distribution.times_factors(approximation.sites.precision),
        distribution.times_factors(approximation.sites.shift),
    )
    factors = distribution.times_factors(distribution.factor.log_likelihood(h)).sum(-1)
    of_sites = (-0.5 * sites[0] * h.square() + sites[1] * h).sum(-1)
    first = sampler._preconditioner(w)
    expected = factors - of_sites - 0.5 * first.square().sum(0) + 0.5 * w.square().sum(0)
    value, gradient = sampler.potential(w)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-9)
    step = 1e-6
    for j in range(p):
        unit = torch.zeros(p, 1, dtype=double)
        unit[j] = step
        slope = (sampler.potential(w + unit)[0] - sampler.potential(w - unit)[0]) / (2 * step)
        torch.testing.assert_close(gradient[j], slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "bounds",
    [
        ([0.0, -0.3, 0.2, 0.0], [INF, 0.9, INF, 1.0]),
        ([-INF, 0.0, 0.0, -1.0], [0.5, INF, INF, INF]),
        ([-INF, 0.0, -INF, -1.0], [INF] * 4),
    ],
)
def test_exact_draws_stay_exact_between_walls(bounds):
    root = torch.tensor([[1.0, 0.0], [0.4, 1.0], [1.0, 1.0], [1.0, -0.5]])
    distribution = make([0.1, 0.0, 0.3, 0.2], low_rank(root), *bounds, [0.0, 0.5, 0.0, 0.2])
    check_invariance(HamiltonianSampler(distribution, expectation_propagation(distribution)))


def test_reflections_keep_the_energy():
    """A rotation keeps `|w|^2 + |p|^2`, and so does a momentum whose part across a wall changes its sign."""
    root = torch.tensor([[1.0, 0.0], [0.4, 1.0], [1.0, 1.0], [1.0, -0.5]])
    distribution = make([0.0] * 4, low_rank(root), [0.0] * 4, [INF] * 4, [0.0, 0.5, 0.0, 0.2])
    sampler = HamiltonianSampler(distribution, propagated(distribution))
    w = sampler.start(16, torch.Generator().manual_seed(0)).position.mT
    p = 3 * randn(*w.shape, seed=1)
    moved, momenta = sampler._rotate(w, p, torch.full((16,), 1.5, dtype=torch.double))
    energy = w.square().sum(0) + p.square().sum(0)
    torch.testing.assert_close(moved.square().sum(0) + momenta.square().sum(0), energy)
    assert ((moved - w * math.cos(1.5) - p * math.sin(1.5)).abs().amax(0) > 0.1).any()  # some were reflected


@pytest.mark.parametrize("variance", [4.0, pytest.param(25.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n", [1025, 50_000])
def test_tails_of_an_undefeated_item(n, variance):
    """Against quadrature, where the Gaussian of expectation propagation is too narrow by a factor of up to eleven."""
    distribution, levels = counts_at_one_point(n, variance), np.array([0.01, 0.5, 0.99, 0.999])
    approximation, (sd, quantiles) = propagated(distribution), truth(n, variance, levels)
    spreads, below = [], []
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        sampler = HamiltonianSampler(distribution, approximation)
        positions = sampler.run(sampler.start(64, generator), 32, generator)[1]
        f = sampler.noiseless(positions.flatten(0, 1)).numpy()
        spreads.append(f.std())
        below.append((f <= quantiles).mean(0))
    off = (np.mean(below, 0) - levels) / (np.std(below, 0, ddof=1) / math.sqrt(12))
    assert (np.abs(off) < 4.5).all()
    assert abs(np.mean(spreads) - sd) < 4 * np.std(spreads, ddof=1) / math.sqrt(12)


def light_tailed(self, state, angle, generator):
    """Independent proposals of the Gaussian, accepted in turn: exact in the end, but tails come late."""
    shape = state.position.mT.shape
    w = torch.randn(shape, dtype=double, generator=generator)
    value, slope = self.potential(w)
    level = torch.rand(len(value), dtype=double, generator=generator).log()
    accepted = level < value - state.log_likelihood
    column = accepted.unsqueeze(-1)
    moved = SamplerState(
        torch.where(column, w.mT, state.position),
        torch.where(accepted, value, state.log_likelihood),
        torch.where(column, slope.mT, state.slope),
    )
    return moved, torch.ones_like(value)


@pytest.mark.parametrize("n", [1100, 50_000])
def test_tails_that_are_too_light_are_reported(n, monkeypatch):
    monkeypatch.setattr(HamiltonianSampler, "_trajectory", light_tailed)
    monkeypatch.setattr(HamiltonianSampler, "_fit_preconditioner", lambda *_: False)
    settings = DrawSettings(max_thinning=1, min_effective_size=1)
    for seed in range(1, 4):  # of 24 seeds 23 tell at 1,100
        with pytest.warns(PoorDrawsWarning, match="contradict their density"):
            draw(counts_at_one_point(n, 4.0), settings, torch.Generator().manual_seed(seed))


def test_good_draws_are_not_reported():
    for seed in range(3):
        draws = draw(counts_at_one_point(1100, 4.0), generator=torch.Generator().manual_seed(seed))
        assert draws.thinning <= 16  # warnings are errors here


def test_many_rotations_where_noise_is_small():
    quiet, loud = (make([0.0] * 3, torch.eye(3) + 1, [0.0] * 3, [INF] * 3, [noise] * 3) for noise in (1.0, 1e-3))
    samplers = [HamiltonianSampler(rows, expectation_propagation(rows)) for rows in (quiet, loud)]
    for sampler in samplers:
        sampler.start(64, torch.Generator().manual_seed(0))
    assert samplers[0].num_rotations < samplers[1].num_rotations


def test_what_cannot_be():
    zeros = torch.zeros(2, dtype=double)
    heights = Heights(torch.full((2,), 0.1).double(), torch.full((2,), 0.8).double())
    crisp = TruncatedNormal(zeros, low_rank(torch.eye(2)), zeros, zeros + 1, zeros, heights=heights)
    with pytest.raises(UnsupportedError, match="needs noise in all rows where answers may be slips"):
        HamiltonianSampler(crisp, expectation_propagation(crisp))
