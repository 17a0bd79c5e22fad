"""Expectation propagation: the evidence and its gradient, moments, convergence."""

import math
import warnings
from dataclasses import replace

import pytest
import torch
from row_cases import INF, make, zeros
from scipy import stats
from tensors import tensor

import botorch_skewgp.truncated.propagation.expectation_propagation as module
from botorch_skewgp.exceptions import ConvergenceWarning
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation import expectation_propagation as propagation
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


def equicorrelated(m, noise):
    """`Gamma` has unit diagonal and correlation 1/2, whose orthant has probability `1 / (m + 1)`."""
    covariance = torch.full((m, m), 0.5, dtype=torch.float64) + (0.5 - noise) * torch.eye(m, dtype=torch.float64)
    return make(zeros(m), covariance, noise=noise)


def random_rows(generator, m=6, r=3, noise=0.3):
    """One- and two-sided rows whose covariance has a low-rank root; and the root."""

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    mean, root, lower = 0.5 * normal(m), normal(m, r), normal(m) - 1
    upper = lower + 1 + torch.rand(lower.shape, dtype=torch.float64, generator=generator)
    lower[..., 1], upper[..., 2] = -INF, INF
    return TruncatedNormal(mean, root @ root.mT, lower, upper, torch.full_like(mean, noise)), root


# The evidence


# The errors are EP's own: 0.0018, 0.0037, 0.0068, 0.012 and 0.018 nats
@pytest.mark.parametrize(("m", "error"), [(2, 0.002), (3, 0.004), (5, 0.008), (10, 0.014), (20, 0.02)])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_equicorrelated_orthant(m, error, noise):
    value = expectation_propagation(equicorrelated(m, noise)).log_normalizer
    assert abs(float(value) + math.log(m + 1)) < error, float(value) + math.log(m + 1)


@pytest.mark.parametrize(
    ("lower", "upper"), [(0.4, INF), (-INF, -0.7), (-0.2, 0.5), (-INF, INF), (6.0, INF), (-9.0, -7.0)]
)
@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_one_row_is_exact(lower, upper, noise):
    distribution = TruncatedNormal(tensor(0.3), tensor(0.8).view(1, 1), tensor(lower), tensor(upper), tensor(noise))
    ep = expectation_propagation(distribution)
    scale = math.sqrt(0.8 + noise)
    reference = stats.truncnorm((lower - 0.3) / scale, (upper - 0.3) / scale, loc=0.3, scale=scale)
    gain = 0.8 / (0.8 + noise)
    a, b = (lower - 0.3) / scale, (upper - 0.3) / scale
    expected = stats.norm.logsf(a) if b == INF else math.log(stats.norm.cdf(b) - stats.norm.cdf(a))
    assert float(ep.log_normalizer) == pytest.approx(expected, abs=1e-10, rel=1e-10)
    assert float(ep.mean) == pytest.approx(0.3 + gain * (reference.mean() - 0.3), rel=1e-7)
    assert float(ep.variance) == pytest.approx(0.8 * (1 - gain) + gain**2 * reference.var(), rel=1e-5)


def test_no_rows():
    none = torch.zeros(0, dtype=torch.float64)
    ep = expectation_propagation(TruncatedNormal(none, torch.zeros(0, 0, dtype=torch.float64), none, none, none))
    assert float(ep.log_normalizer) == 0
    assert ep.converged


# Two ways to the same fixed point


def test_warm_start_reaches_the_same_fixed_point_sooner(generator):
    distribution, _ = random_rows(generator)
    cold = expectation_propagation(distribution)
    assert cold.num_iterations > 5
    near = replace(distribution, prior=1.001 * distribution.prior.covariance)
    warm = expectation_propagation(near, initial_sites=cold.sites)
    fresh = expectation_propagation(near)
    assert warm.num_iterations < fresh.num_iterations
    assert torch.allclose(warm.log_normalizer, fresh.log_normalizer, rtol=0, atol=1e-9)
    assert torch.allclose(warm.sites.precision, fresh.sites.precision, rtol=1e-6)
    assert expectation_propagation(distribution, initial_sites=cold.sites).num_iterations == 1


@pytest.mark.parametrize(
    ("num_rows", "variance", "part", "low_rank", "counted"),
    [
        (100, 1.0, 0.9, False, False),
        (100, 20.0, 0.9, False, False),
        (200, 5.0, 0.6, False, False),
        (400, 5.0, 0.6, True, False),
        (200, 5.0, 0.6, True, True),
    ],
)
def test_extrapolation_saves_sweeps_and_changes_nothing(
    num_rows, variance, part, low_rank, counted, generator, monkeypatch
):
    X = torch.rand(num_rows, 2, dtype=torch.float64, generator=generator)
    signs = torch.where(torch.sin(7 * X).sum(-1) > 0.5, 1.0, -1.0).double()
    if low_rank:
        angle = X @ (6 * torch.randn(2, 20, dtype=torch.float64, generator=generator))
        root = signs.unsqueeze(-1) * torch.cat([angle.cos(), angle.sin()], dim=-1) * (variance / 20) ** 0.5
        covariance = LowRankPrior(root)
    else:
        covariance = signs.unsqueeze(-1) * variance * torch.exp(-5 * torch.cdist(X, X).square()) * signs
    count = torch.randint(1, 9, (num_rows,), generator=generator).double() if counted else None
    distribution = replace(make(torch.zeros_like(signs), covariance, noise=1.0), count=count)
    fast = expectation_propagation(distribution)
    monkeypatch.setattr(propagation.Steps, "__call__", lambda self, x, sweep: sweep.target)
    plain = expectation_propagation(distribution)
    assert fast.num_iterations < part * plain.num_iterations
    torch.testing.assert_close(fast.mean, plain.mean, rtol=0, atol=1e-7)
    torch.testing.assert_close(fast.log_normalizer, plain.log_normalizer, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_narrow_rows_of_a_wide_prior_keep_their_digits(seed):
    """Rows that nearly tell their values, more than coordinates: the same by rows and by the coordinates of a root."""
    generator = torch.Generator().manual_seed(seed)
    root = 30 * torch.randn(8, 5, dtype=torch.float64, generator=generator)
    sign = (root @ torch.randn(5, dtype=torch.float64, generator=generator)).sign()
    root = sign.unsqueeze(-1) * root
    zeros, value = torch.zeros(8, dtype=torch.float64), 3 * sign
    by_rows, by_root = (
        TruncatedNormal(zeros, covariance, value - 0.1, value + 0.5, zeros + 1)
        for covariance in (root @ root.mT, LowRankPrior(root))
    )
    one, other = (expectation_propagation(distribution, tolerance=1e-12) for distribution in (by_rows, by_root))
    assert one.num_iterations < 2 * other.num_iterations
    torch.testing.assert_close(one.mean, other.mean, rtol=0, atol=1e-10)
    torch.testing.assert_close(one.log_normalizer, other.log_normalizer, rtol=0, atol=1e-10)


# Moments


def test_moment_matching_at_the_fixed_point(generator):
    """Every tilted distribution, integrated on a grid, has the approximation's mean and variance."""
    distribution, _ = random_rows(generator, noise=0.3)
    ep = expectation_propagation(distribution)
    grid = torch.linspace(-12, 12, 50_001, dtype=torch.float64).unsqueeze(-1)
    density = torch.exp(-0.5 * grid.square())
    grid, scale = grid * ep.cavity[1].sqrt() + ep.cavity[0], distribution.noise.sqrt()
    inside = [torch.special.ndtr((bound - grid) / scale) for bound in (distribution.upper, distribution.lower)]
    density = density * (inside[0] - inside[1])
    weight = density / density.sum(0)
    mean = (weight * grid).sum(0)
    variance = (weight * (grid - mean).square()).sum(0)
    assert torch.allclose(ep.mean, mean, rtol=0, atol=1e-7)
    assert torch.allclose(ep.variance, variance, rtol=1e-6)


# The gradient


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize(("sides", "noise"), [("lower", 0.0), ("both", 0.0), ("upper", 0.3), ("both", 0.3)])
def test_gradient_in_every_tensor_equals_finite_differences(low_rank, sides, noise, generator):
    m, r = (4, 2) if low_rank else (3, 3)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    mean, root, lower = normal(m), normal(m, r), normal(m) - 1
    upper = lower + 1 + torch.rand(lower.shape, dtype=torch.float64, generator=generator)
    if sides == "lower":
        upper = torch.full_like(lower, math.inf)
    if sides == "upper":
        lower = torch.full_like(lower, -math.inf)
    # more rows than coordinates need some noise for their orthant not to be empty; it is still held fixed there
    variances = torch.full_like(mean, 0.1 if low_rank and not noise else noise)
    tensors = (mean, root, lower, upper, variances)
    # an infinite bound, and noise on the edge of its domain, have no finite differences
    moved = (True, True, sides != "upper", sides != "lower", noise > 0)
    inputs = [tensor.clone().requires_grad_(wanted) for tensor, wanted in zip(tensors, moved, strict=True)]

    def log_evidence(mean, root, lower, upper, noise):
        covariance = LowRankPrior(root) if low_rank else root @ root.mT
        distribution = TruncatedNormal(mean, covariance, lower, upper, noise)
        return expectation_propagation(distribution, tolerance=1e-12).log_normalizer

    assert torch.autograd.gradcheck(log_evidence, inputs, eps=1e-5, atol=1e-6, rtol=1e-4)


# Hard cases end, and say so if they have not converged


def pairs_rows(pairs, variances, noise):
    """Rows `f_a - f_b > 0` of independent values."""
    A = torch.zeros(len(pairs), len(variances), dtype=torch.float64)
    for i, (a, b) in enumerate(pairs):
        A[i, a], A[i, b] = 1, -1
    covariance = A @ torch.diag(tensor(*variances)) @ A.mT
    return make(zeros(len(pairs)), covariance, noise=noise)


@pytest.mark.parametrize(("further", "noise", "error"), [([(0, 2), (0, 3)], 1e-8, 0.2), ([], 0.0, 0.02)])
def test_one_of_the_orders_of_four_values(further, noise, error):
    ep = expectation_propagation(pairs_rows([(0, 1), (1, 2), (2, 3), *further], [1.0] * 4, noise))
    assert ep.converged
    assert abs(float(ep.log_normalizer) + math.log(24)) < error


def test_row_without_any_variance():
    """A constant that holds is certain; one that does not is impossible."""
    covariance = torch.diag(tensor(1.0, 0.0))
    for constant, expected in [(0.3, math.log(0.5)), (-0.3, -INF)]:
        ep = expectation_propagation(make(tensor(0.0, constant), covariance))
        assert float(ep.log_normalizer) == pytest.approx(expected)


def test_too_few_iterations_warn(generator, monkeypatch):
    distribution, _ = random_rows(generator)
    monkeypatch.setattr(module, "MAX_SWEEPS", 3)
    with pytest.warns(ConvergenceWarning, match="stopped with sites still changing"):
        ep = expectation_propagation(distribution)
    assert not ep.converged
    assert ep.num_iterations == 3
    assert ep.residual > 1e-9


def test_unconverged_result_is_the_best_seen(generator, monkeypatch):
    distribution, _ = random_rows(generator)
    residuals, step = [], propagation.Steps.__call__

    def too_far_at_times(self, x, sweep):
        ahead = step(self, x, sweep)
        return ahead if sweep.residual > 0.05 else 5 * ahead

    monkeypatch.setattr(propagation.Steps, "__call__", too_far_at_times)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for k in range(1, 8):
            monkeypatch.setattr(module, "MAX_SWEEPS", k)
            residuals.append(expectation_propagation(distribution).residual)
    assert residuals == sorted(residuals, reverse=True)
    assert residuals[-1] < 0.1 * residuals[0]
