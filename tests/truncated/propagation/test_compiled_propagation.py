"""Compiled sweeps of expectation propagation: where they lead, and what they leave to the general ones."""

import math

import pytest
import torch

from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation import expectation_propagation as propagation
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.propagation.sites import Sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytest.importorskip("numba")
from botorch_skewgp.truncated.propagation.compiled_propagation import approach

INF = math.inf
BOUNDS = {
    "above": lambda low: (low, torch.full_like(low, INF)),
    "below": lambda low: (torch.full_like(low, -INF), low),
    "between": lambda low: (low, low + 0.7),
    "wide": lambda low: (low - 6, low + 30),
    "all": lambda low: (torch.full_like(low, -INF), torch.full_like(low, INF)),
}


def rows(m, bounds, generator, *batch_shape, variance=2.0, noise=0.3):
    """Rows of a smooth process with bounds of one sort, or of all sorts in turns."""

    def normal(*shape):
        return torch.randn(*batch_shape, *shape, dtype=torch.float64, generator=generator)

    x = normal(m, 2)
    covariance = variance * torch.exp(-torch.cdist(x, x).square())
    low = 0.5 * normal(m)
    sorts = list(BOUNDS) if bounds == "mixed" else [bounds]
    each = [BOUNDS[sort](low) for sort in sorts]
    which = torch.arange(m) % len(sorts)
    ends = (torch.stack(end).gather(0, which.expand(1, *low.shape))[0] for end in zip(*each, strict=True))
    return TruncatedNormal(0.3 * normal(m), covariance, *ends, torch.full_like(low, noise))


def general(distribution, monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(propagation, "MOST_COMPILED_SWEEPS", 0)
        return expectation_propagation(distribution, **options)


def no_sites(distribution):
    return Sites(torch.zeros_like(distribution.mean), torch.zeros_like(distribution.mean))


@pytest.mark.parametrize("bounds", [*BOUNDS, "mixed"])
@pytest.mark.parametrize(("m", "noise"), [(1, 0.0), (2, 0.0), (7, 0.0), (2, 0.01), (7, 1.0), (60, 0.01), (60, 1.0)])
def test_they_lead_to_the_fixed_point(bounds, m, noise, generator, monkeypatch):
    distribution = rows(m, bounds, generator, noise=noise)
    expected = general(distribution, monkeypatch)
    sites, num_sweeps = approach(distribution, no_sites(distribution), 1e-10, 100)
    assert num_sweeps > 0
    unit = expected.variance.clamp(min=1e-12)
    assert ((sites.precision - expected.sites.precision).abs() * unit).max() < 1e-7
    assert ((sites.shift - expected.sites.shift).abs() * unit.sqrt()).max() < 1e-6
    result = expectation_propagation(distribution)
    assert result.num_iterations <= num_sweeps + 3
    torch.testing.assert_close(result.log_normalizer, expected.log_normalizer, rtol=0, atol=1e-9)
    torch.testing.assert_close(result.mean, expected.mean, rtol=0, atol=1e-7)


def test_batches_and_low_rank_rows(generator, monkeypatch):
    distribution = rows(9, "mixed", generator, 2, 3)
    result, expected = expectation_propagation(distribution), general(distribution, monkeypatch)
    torch.testing.assert_close(result.log_normalizer, expected.log_normalizer, rtol=0, atol=1e-9)
    root = torch.randn(30, 4, dtype=torch.float64, generator=generator)
    zeros = torch.zeros(30, dtype=torch.float64)
    wide = TruncatedNormal(zeros, LowRankPrior(root), zeros - 0.5, zeros + INF, zeros + 0.2)
    result, expected = expectation_propagation(wide), general(wide, monkeypatch)
    torch.testing.assert_close(result.log_normalizer, expected.log_normalizer, rtol=0, atol=1e-9)


def test_one_of_a_batch_out_of_the_ordinary_stays_where_it_was(generator, monkeypatch):
    distribution = rows(5, "above", generator, 2)
    lower = distribution.lower.clone()
    lower[1, 2] = 80.0
    far = TruncatedNormal(
        distribution.mean, distribution.prior.covariance, lower, distribution.upper, distribution.noise
    )
    start = Sites(torch.rand_like(lower), torch.rand_like(lower))
    sites, num_sweeps = approach(far, start, 1e-10, 100)
    assert num_sweeps > 0
    expected = general(far, monkeypatch)
    torch.testing.assert_close(sites.precision[0], expected.sites.precision[0], rtol=1e-6, atol=1e-9)
    assert torch.equal(sites.precision[1], start.precision[1])
    assert torch.equal(sites.shift[1], start.shift[1])
    result = expectation_propagation(far, initial_sites=start)
    torch.testing.assert_close(result.log_normalizer, expected.log_normalizer, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("lower", "upper", "noise"),
    [
        (30.0, INF, 0.1),
        (-INF, -30.0, 0.1),
        (0.2, 0.2 + 1e-4, 1e-3),
        (-1.0, 1e-9, 1e-12),
        (-INF, INF, 0.0),
        (50, 51, 0.0),
    ],
)
def test_what_is_out_of_the_ordinary_comes_out_as_before(lower, upper, noise, generator, monkeypatch):
    distribution = rows(6, "above", generator)
    bounds = distribution.lower.clone(), distribution.upper.clone()
    bounds[0][3], bounds[1][3] = lower, upper
    odd = TruncatedNormal(distribution.mean, distribution.prior.covariance, *bounds, torch.full_like(bounds[0], noise))
    result, expected = expectation_propagation(odd), general(odd, monkeypatch)
    torch.testing.assert_close(result.log_normalizer, expected.log_normalizer, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(result.mean, expected.mean, rtol=1e-6, atol=1e-6)


def test_sites_of_others_are_not_written(generator):
    distribution = rows(5, "above", generator)
    start = no_sites(distribution)
    warm = expectation_propagation(distribution).sites
    kept = [entry.clone() for entry in warm]
    approach(distribution, start, 1e-9, 100)
    approach(distribution, warm, 1e-12, 100)
    assert all(torch.equal(entry, torch.zeros_like(entry)) for entry in start)
    assert all(torch.equal(entry, before) for entry, before in zip(warm, kept, strict=True))


def test_few_sweeps_are_not_exceeded(generator):
    distribution = rows(20, "above", generator)
    sites, num_sweeps = approach(distribution, no_sites(distribution), 1e-9, 2)
    assert num_sweeps == 0
    assert bool((sites.precision == 0).all())


def test_nan_is_left_to_the_general_sweeps(generator):
    distribution = rows(5, "above", generator)
    distribution.prior.covariance[2, 3] = math.nan
    assert approach(distribution, no_sites(distribution), 1e-9, 100)[1] == 0
