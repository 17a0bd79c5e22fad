"""The corrected evidence against closed forms, cubature and bridge sampling."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from botorch_skewgp.exceptions import LargeCorrectionWarning
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF = math.inf


def rows(covariance, lower, upper, noise):
    return TruncatedNormal(torch.zeros_like(lower), covariance, lower, upper, noise)


@pytest.mark.parametrize("m", [2, 3, 5, 10, 50])
def test_equicorrelated_orthants(m):
    covariance = 0.5 * torch.ones(m, m, dtype=torch.float64) + 0.5 * torch.eye(m, dtype=torch.float64)
    zeros = torch.zeros(m, dtype=torch.float64)
    ep = expectation_propagation(rows(covariance, zeros, zeros + INF, zeros))
    truth = -math.log(m + 1)
    assert abs(float(corrected_log_normalizer(ep.distribution)) - truth) < 0.1 * abs(float(ep.log_normalizer) - truth)


@pytest.mark.parametrize("seed", range(4))
def test_random_boxes(seed):
    generator = torch.Generator().manual_seed(seed)
    m = 4 + seed
    A = torch.randn(m, m, generator=generator, dtype=torch.float64)
    lower = torch.randn(m, generator=generator, dtype=torch.float64) - 1
    upper = torch.where(torch.arange(m) % 2 == 0, INF, lower + 1 + torch.arange(m))
    noise = torch.full((m,), 0.3, dtype=torch.float64)
    distribution = rows(A @ A.mT, lower, upper, noise)
    ep = expectation_propagation(distribution)
    reference = multivariate_normal(cov=distribution.gamma.numpy(), abseps=1e-6, releps=1e-6, maxpts=200_000)
    truth = math.log(reference.cdf(upper.numpy(), lower_limit=lower.numpy()))
    error = abs(float(ep.log_normalizer) - truth)
    assert error > 1e-4, "too easy to tell anything"
    assert abs(float(corrected_log_normalizer(ep.distribution)) - truth) < 0.5 * error


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 1.0), (-1.5, 1.5)])
@pytest.mark.parametrize("correlation", [0.3, 0.5])
def test_symmetric_boxes_need_the_fourth_cumulant(correlation, lower, upper):
    """Their third cumulants are zero. The truth averages products over the rows' common part."""
    m, one = 4, torch.ones(4, dtype=torch.float64)
    covariance = correlation * torch.ones(m, m, dtype=torch.float64) + (1 - correlation) * torch.eye(m)
    ep = expectation_propagation(rows(covariance, lower * one, upper * one, 0 * one))

    def integrand(z):
        z, scale = math.sqrt(correlation) * z, math.sqrt(1 - correlation)
        return (
            norm.pdf(z / math.sqrt(correlation)) * (norm.cdf((upper - z) / scale) - norm.cdf((lower - z) / scale)) ** m
        )

    truth = math.log(quad(integrand, -10, 10, epsabs=0, epsrel=1e-12, limit=400)[0])
    error = float(ep.log_normalizer) - truth
    left = float(corrected_log_normalizer(ep.distribution)) - truth
    assert abs(left) < 0.3 * abs(error)


@pytest.mark.parametrize("bound", [12.0, 1e3, 1e8, 1e100, 1e300])
@pytest.mark.parametrize("low_rank", [False, True])
def test_loose_bounds_are_none(bound, low_rank):
    """A bound that leaves out no mass changes nothing, neither the value nor expectation propagation's derivatives."""
    root = torch.randn(6, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    lower = torch.tensor([0.0, -1.0, 0.5, -INF, -INF, 0.2], dtype=torch.float64)
    upper = torch.tensor([INF, INF, INF, 0.3, INF, INF], dtype=torch.float64)
    found = []
    for infinity in (bound * 10, INF):
        leaf = root.clone().requires_grad_()
        covariance = LowRankPrior(leaf) if low_rank else leaf @ leaf.mT
        a, b = torch.where(lower.isinf(), -infinity, lower), torch.where(upper.isinf(), infinity, upper)
        ep = expectation_propagation(rows(covariance, a, b, torch.full_like(a, 0.3)))
        found.append((corrected_log_normalizer(ep.distribution), *torch.autograd.grad(ep.log_normalizer, leaf)))
    for value, expected in zip(*found, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-7, atol=1e-9)


def test_independent_rows_need_none():
    m = 6
    lower = torch.linspace(-1, 2, m, dtype=torch.float64)
    ep = expectation_propagation(rows(torch.eye(m, dtype=torch.float64), lower, lower + 1, 0 * lower))
    torch.testing.assert_close(corrected_log_normalizer(ep.distribution), ep.log_normalizer)


def test_low_rank_equals_dense(generator):
    root = torch.randn(30, 3, generator=generator, dtype=torch.float64)
    lower = -torch.rand(30, generator=generator, dtype=torch.float64)
    noise = torch.full_like(lower, 0.5)
    low_rank = rows(LowRankPrior(root), lower, lower + INF, noise)
    dense = rows(root @ root.mT, lower, lower + INF, noise)
    torch.testing.assert_close(corrected_log_normalizer(low_rank), corrected_log_normalizer(dense))


def test_blocks_of_rows_add_up(monkeypatch, generator):
    A = torch.randn(9, 9, generator=generator, dtype=torch.float64)
    zeros = torch.zeros(9, dtype=torch.float64)
    ep = expectation_propagation(rows(A @ A.mT, zeros, zeros + INF, zeros + 1))
    whole = corrected_log_normalizer(ep.distribution)
    monkeypatch.setattr("botorch_skewgp.papers.corrections.MAX_ENTRIES", 20)
    torch.testing.assert_close(corrected_log_normalizer(ep.distribution), whole)


def test_a_large_correction_is_told():
    """Forty rows that all but repeat one: the truth is near 1/2, and the series has not converged."""
    m, correlation = 40, 0.999
    covariance = correlation * torch.ones(m, m, dtype=torch.float64) + (1 - correlation) * torch.eye(m)
    zeros = torch.zeros(m, dtype=torch.float64)
    ep = expectation_propagation(rows(covariance.double(), zeros, zeros + INF, zeros))
    with pytest.warns(LargeCorrectionWarning, match="Use the exact method"):
        corrected_log_normalizer(ep.distribution)
