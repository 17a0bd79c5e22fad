"""What every sampler of a truncated normal does, against closed forms, exact draws and the other samplers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from row_cases import INF, low_rank, make
from sampler_cases import (
    DENSE,
    LOW_RANK,
    bivariate_orthant,
    check_case,
    check_invariance,
    check_same_means,
    independent,
    poor_sites,
    slab,
    start,
    trivariate_orthant,
)

from benchmarks.samplers import GibbsSampler
from botorch_skewgp.papers.linear_ess import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.hamiltonian import HamiltonianSampler
from botorch_skewgp.truncated.samplers.reflective_ess import ReflectiveEllipticalSliceSampler
from botorch_skewgp.truncated.samplers.sampler import RowSampler, Sampler
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class Kind(NamedTuple):
    """How a sampler is made, and how many steps of how many chains show what it does."""

    make: Callable[[TruncatedNormal], Sampler]
    steps: int
    chains: int


def with_poor_sites(distribution: TruncatedNormal) -> Sampler:
    return HamiltonianSampler(distribution, poor_sites(distribution))


def with_good_sites(distribution: TruncatedNormal) -> Sampler:
    return HamiltonianSampler(distribution, expectation_propagation(distribution))


KINDS = {
    "reflective": Kind(ReflectiveEllipticalSliceSampler, 60, 100),
    "eager": Kind(lambda distribution: ReflectiveEllipticalSliceSampler(distribution, compiled=False), 40, 200),
    "gibbs": Kind(GibbsSampler, 200, 64),
    "linear": Kind(LinearEllipticalSliceSampler, 500, 64),
    "hamiltonian": Kind(with_good_sites, 50, 100),
    "poor sites": Kind(with_poor_sites, 50, 100),
}


def kinds(*names: str, slow: tuple[str, ...] = ()):
    return pytest.mark.parametrize(
        "kind",
        [pytest.param(KINDS[name], id=name, marks=[pytest.mark.slow] if name in slow else []) for name in names + slow],
    )


def run(kind: Kind, distribution: TruncatedNormal, generator: torch.Generator) -> torch.Tensor:
    """Rows of all steps after the first sixth, `steps x chains x m`, inside their bounds."""
    sampler = kind.make(distribution)
    state = start(sampler, kind.chains, generator)
    _, positions, info = sampler.run(state, kind.steps, generator)
    rows = sampler.rows(positions, generator)
    assert rows.shape == (kind.steps, kind.chains, distribution.num_rows)
    assert info.num_evaluations.shape == (kind.chains,)
    assert ((rows >= distribution.lower) & (rows <= distribution.upper)).all()
    return rows[kind.steps // 6 :]


# what is fast: all cases of the defaults, with sites that are none of theirs, and one or two of the others
FAST = {
    "reflective": DENSE + LOW_RANK,
    "poor sites": DENSE + LOW_RANK,
    "eager": [bivariate_orthant],
    "gibbs": [bivariate_orthant],
    "linear": [trivariate_orthant, slab],
    "hamiltonian": [independent],
}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, marks=[] if case in FAST[name] else [pytest.mark.slow])
        for name in KINDS
        for case in DENSE + LOW_RANK
    ],
)
def test_closed_forms(name, case):
    case, kind = case(), KINDS[name]
    check_case(kind.make(case.distribution), case, kind.steps, kind.chains)


@kinds("reflective", "linear", slow=("eager", "gibbs"))
@pytest.mark.parametrize("case", [independent, bivariate_orthant, trivariate_orthant, slab])
def test_exact_draws_stay_exact(kind, case):
    check_invariance(kind.make(case().distribution))


def wrong_gamma(sampler: Sampler) -> None:
    gamma = sampler._trajectories.gamma
    gamma.copy_(gamma.diagonal().diag())  # velocities lose only their own component


def wrong_weight(sampler: Sampler) -> None:
    sampler._weight *= 0.9  # conditional means that are off by a tenth


def wrong_sites(sampler: Sampler) -> None:
    sampler._shift += 0.3  # not those of the Gaussian around which the ellipse is drawn


@pytest.mark.parametrize(
    ("name", "spoil"), [("eager", wrong_gamma), ("gibbs", wrong_weight), ("poor sites", wrong_sites)]
)
def test_a_planted_fault_is_seen(name, spoil):
    sampler = KINDS[name].make(bivariate_orthant().distribution)
    spoil(sampler)
    with pytest.raises((AssertionError, RuntimeError), match=r"standard errors|left their bounds"):
        check_invariance(sampler)


@kinds("linear", "hamiltonian", slow=("gibbs",))
def test_far_in_the_tail(kind, generator):
    distribution = make([0.0, 0.0], [[0.5, 0.2], [0.2, 0.5]], [20.0, -INF], [INF, -20.0], [0.5, 0.5])
    rows = run(kind, distribution, generator)
    assert rows.isfinite().all()
    assert (rows[-1] != rows[0]).all()
    if kind is KINDS["linear"]:  # chains move little there
        return
    # At the corner a = (20, -20) the density is close to exp(-(u - a)^T Gamma^-1 a): independent exponentials.
    corner = torch.tensor([20.0, -20.0], dtype=torch.float64)
    rate = torch.linalg.solve(distribution.gamma, corner).abs()
    torch.testing.assert_close((rows - corner).abs().mean((0, 1)), 1 / rate, rtol=0.08, atol=0)


@kinds("linear", "hamiltonian", slow=("gibbs",))
def test_bounds_that_nearly_touch(kind, generator):
    lower = torch.tensor([0.5, -0.2, 0.0])
    distribution = make([0.0] * 3, torch.eye(3) + 0.5, lower, lower.double() + 1e-6, [0.1] * 3)
    rows = run(kind._replace(chains=400), distribution, generator)[-kind.steps // 2 :]
    # So short an interval has a nearly flat density: the draws fill it evenly.
    share = (rows - distribution.lower) / 1e-6
    assert (share.mean((0, 1)) - 0.5).abs().max() < 0.05
    assert (share.std((0, 1)) - math.sqrt(1 / 12)).abs().max() < 0.03


@kinds("reflective", "poor sites", slow=("eager", "gibbs", "linear", "hamiltonian"))
def test_dense_and_low_rank_agree_on_duplicate_and_contradictory_rows(kind, generator):
    root = torch.tensor([[1.0], [1.0], [1.0], [-1.0]])
    runs = []
    for prior in (root @ root.mT, low_rank(root)):
        distribution = make([0.2] * 4, prior, [0.0, 0.0, 0.5, 0.5], [INF, INF, INF, 3.0], [0.3] * 4)
        runs.append(run(kind, distribution, generator))
    check_same_means(*runs)


@kinds("reflective", "eager", "gibbs", "linear")
def test_starts_outside_the_bounds(kind):
    sampler = kind.make(independent().distribution)
    assert isinstance(sampler, RowSampler)
    with pytest.raises(ValueError, match="not inside their bounds"):
        sampler.init(torch.zeros(3, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match="not inside their bounds"):
        sampler.init(torch.full((3, 4), math.nan, dtype=torch.float64))
    with pytest.raises(ValueError, match="rows must be num_chains x 4"):
        sampler.init(torch.ones(4, dtype=torch.float64))


@kinds("linear", "hamiltonian")
def test_many_rows_over_few_coordinates(kind, generator):
    m, r = 2000, 20
    root = torch.randn(m, r, generator=generator, dtype=torch.float64)
    signs = torch.sign(root @ torch.randn(r, 1, generator=generator, dtype=torch.float64))
    distribution = make([0.0] * m, low_rank(signs * root), [0.0] * m, [INF] * m, [1.0] * m)
    run(kind._replace(chains=2, steps=2), distribution, generator)
    assert "covariance" not in distribution.prior.__dict__


@kinds("reflective", "eager", "linear", "hamiltonian")
def test_rows_without_noise_over_few_coordinates(kind, generator):
    """A quarter of the plane: the angle of `z` is uniform in it, its squared radius is chi-squared."""
    root = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    distribution = make([0.0] * 4, low_rank(root), [0.0] * 4, [INF] * 4, [0.0] * 4)
    rows = run(kind._replace(chains=200), distribution, generator)
    z = distribution.noisy_prior.draw_latent(rows.flatten(0, 1), generator)
    torch.testing.assert_close(distribution.noiseless(z), rows.flatten(0, 1), rtol=0, atol=1e-12)
    angle = torch.atan2(z[..., 1], z[..., 0])
    assert abs(angle.mean() - math.pi / 4) < 0.02
    assert abs(angle.std() - math.pi / 2 / math.sqrt(12)) < 0.02
    assert abs(z.square().sum(-1).mean() - 2.0) < 0.06
