"""Log probabilities, moments and draws of one truncated normal, against arithmetic of many digits."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import special, stats

from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.univariate import (
    interval_cumulants,
    interval_moments,
    log1mexp,
    log_interval_probability,
    normal_hazard,
    owens_t,
    sample_interval,
    standardise,
    tail_moments,
)

pytestmark = pytest.mark.rounding

INF = math.inf
INTERVALS = [(-INF, INF), (0.0, INF), (-INF, 0.0), (-1.0, INF), (-30.0, INF), (4.9, INF), (-1.0, 1.0), (-3.0, 8.0)]
INTERVALS += [(-8.0, 8.0), (-40.0, 40.0), (5.0, 6.0), (-6.0, -5.0)]
INTERVALS += [(20.0, INF), (-INF, -20.0), (38.0, INF), (-INF, -100.0), (1e4, INF), (30.0, 31.0)]  # far in a tail
INTERVALS += [(10.0, 10.3), (-10.2, -10.0), (2.0, 2.09), (2.0, 2.11), (-0.3, -0.21), (-0.3, -0.19), (-30.0, -29.9)]
INTERVALS += [(-1.0, -0.999), (2.0, 2.001), (0.0, 1e-6), (20.0, 20.000001), (-2.0, -2.0 + 5e-6)]  # narrow
INTERVALS += [(2.0, 2.0 + 3e-6), (-5e-7, 5e-7), (0.0, 1e-12)]
LOWER = torch.tensor([a for a, _ in INTERVALS], dtype=torch.float64)
UPPER = torch.tensor([b for _, b in INTERVALS], dtype=torch.float64)


def precise(lower, upper):
    """Log probability, mean, variance, densities at both ends over it, third and fourth cumulant, by 150 digits."""
    with mpmath.workdps(150):
        a, b = mpmath.mpf(lower), mpmath.mpf(upper)

        def above(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        probability = above(a) - above(b) if lower > -upper else above(-b) - above(-a)
        left, right = mpmath.npdf(a) / probability, mpmath.npdf(b) / probability
        moments = [mpmath.mpf(1), left - right]
        for k in (2, 3, 4):  # by parts
            ends = [end ** (k - 1) * ratio if mpmath.isfinite(end) else 0 for end, ratio in ((a, left), (b, right))]
            moments.append((k - 1) * moments[k - 2] + ends[0] - ends[1])
        mean = moments[1]
        second, third, fourth = (
            sum(mpmath.binomial(k, j) * moments[j] * (-mean) ** (k - j) for j in range(k + 1)) for k in (2, 3, 4)
        )
        found = (mpmath.log(probability), mean, second, left, right, third, fourth - 3 * second**2)
        return [float(x) for x in found]


TRUTH = torch.tensor([precise(a, b) for a, b in INTERVALS], dtype=torch.float64)


@pytest.mark.parametrize("least", [-30.0, -1e6])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_hazard(dtype, least):
    x = torch.cat([torch.linspace(-12, 12, 49), torch.tensor([least])]).to(dtype)
    with mpmath.workdps(40):
        exact = [float(mpmath.npdf(float(v)) / (mpmath.erfc(-mpmath.mpf(float(v)) / mpmath.sqrt(2)) / 2)) for v in x]
    expected = torch.tensor(exact, dtype=torch.float64)
    assert torch.allclose(normal_hazard(x).double(), expected, rtol=400 * torch.finfo(dtype).eps, atol=1e-30)


def test_moments():
    log_probability, mean, variance = interval_moments(LOWER, UPPER)
    torch.testing.assert_close(log_probability, TRUTH[:, 0], rtol=3e-11, atol=1e-15)
    # The mean in units of the spread around it: inside a narrow interval relative accuracy says nothing.
    off = (mean - TRUTH[:, 1]) / TRUTH[:, 2].sqrt()
    rounding = 1e-16 * TRUTH[:, 1].abs() / TRUTH[:, 2].sqrt()
    assert (off.abs() < 1e-10 + 4 * rounding).all()
    torch.testing.assert_close(variance, TRUTH[:, 2], rtol=1e-9, atol=0)
    assert (mean >= LOWER).all()
    assert (mean <= UPPER).all()


def test_moments_of_tails():
    x = torch.tensor([9.0, 1.0, 0.0, -1.0, -9.9, -10.1, -30.0, -38.0, -100.0, -1e4], dtype=torch.float64)
    truth = torch.tensor([precise(-INF, float(v)) for v in x], dtype=torch.float64)
    for part in (slice(None), slice(5)):  # with and without those whose moments cancel
        mean, variance = tail_moments(x[part])
        torch.testing.assert_close(mean, truth[part, 1], rtol=1e-12, atol=1e-18)
        torch.testing.assert_close(variance, truth[part, 2], rtol=1e-9, atol=0)
    assert all(entry.shape == (0,) for entry in tail_moments(x[:0]))


def test_gradients_are_densities_over_the_probability():
    lower, upper = LOWER.clone().requires_grad_(), UPPER.clone().requires_grad_()
    log_interval_probability(lower, upper).sum().backward()
    torch.testing.assert_close(lower.grad, -TRUTH[:, 3], rtol=1e-8, atol=1e-300)
    torch.testing.assert_close(upper.grad, TRUTH[:, 4], rtol=1e-8, atol=1e-300)


def test_log_probabilities_in_single_precision():
    keep = [i for i, (a, b) in enumerate(INTERVALS) if b - a > 1e-2 and a < 100]
    lower, upper = LOWER[keep].float(), UPPER[keep].float()
    truth = log_interval_probability(lower.double(), upper.double())  # of the rounded bounds
    torch.testing.assert_close(log_interval_probability(lower, upper), truth.float(), rtol=1e-5, atol=1e-6)


def test_draws_invert_the_cdf():
    """At given uniforms the draw's probability is the uniform's, or one minus it where the interval is reflected; up to
    the rounding of the draw, which is 1e-8 of the probability of (10,000, inf).
    """
    uniform = torch.tensor([0.001, 0.2, 0.5, 0.77, 0.999], dtype=torch.float64)
    for lower, upper in INTERVALS[:-1]:
        draws = sample_interval(*torch.tensor([lower, upper], dtype=torch.float64), uniform)
        assert ((draws >= lower) & (draws <= upper)).all()
        for w, x in zip(uniform.tolist(), draws.tolist(), strict=True):
            with mpmath.workdps(60):
                side = mpmath.sqrt(2) * (1 if lower > -upper else -1)
                ends = (mpmath.mpf(lower), mpmath.mpf(x), mpmath.mpf(math.nextafter(x, math.inf)), mpmath.mpf(upper))
                tails = [mpmath.erfc(y / side) for y in ends]
                share, following = (float((tails[0] - tails[i]) / (tails[0] - tails[3])) for i in (1, 2))
            assert min(abs(share - w), abs(1 - share - w)) < 1e-9 + abs(following - share), (lower, upper)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_at_the_ends_of_the_uniform(dtype):
    """The largest uniform, and zero, stay inside bounds and are finite; far from bounds that are far."""
    eps = torch.finfo(dtype).eps
    uniform = torch.tensor([0.0, eps / 2, 0.5, 1 - eps / 2], dtype=dtype)
    for lower, upper in [(0.0, INF), (-INF, 1.0), (-2.0, 3.0), (20.0, INF), (-INF, -20.0), (5.0, 5.5)]:
        draws = sample_interval(torch.tensor(lower, dtype=dtype), torch.tensor(upper, dtype=dtype), uniform)
        assert draws.dtype == dtype
        assert draws.isfinite().all()
        assert (draws >= lower).all()
        assert (draws <= upper).all()
    far = sample_interval(torch.tensor(-INF, dtype=dtype), torch.tensor([[50.0], [INF]], dtype=dtype), uniform)
    assert far.abs().max() < 9


def test_draws_in_float32(generator):
    single = {"dtype": torch.float32}
    uniform = torch.rand(20_000, generator=generator, **single)
    draws = sample_interval(torch.tensor(1.5, **single), torch.tensor(INF, **single), uniform).numpy()
    assert draws.dtype == np.float32
    assert stats.kstest(draws, stats.truncnorm(1.5, np.inf).cdf).pvalue > 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("end", [0.0, 1.0])
def test_uniform_draws_are_in_the_open_interval(dtype, end, monkeypatch):
    drawn = torch.tensor([min(end, 1 - 0.5 * torch.finfo(dtype).eps)], dtype=dtype)  # the ends of what is drawn
    monkeypatch.setattr(torch, "rand", lambda *shape, **kind: drawn.clone())
    uniform = open_uniform(drawn, None)
    assert 0 < uniform < 1
    assert sample_interval(torch.tensor([-INF], dtype=dtype), torch.tensor([1.0], dtype=dtype), uniform).isfinite()


def test_log1mexp():
    x = torch.tensor([1e-12, 0.3, math.log(2), 0.8, 40.0], dtype=torch.float64)
    with mpmath.workdps(60):
        expected = [float(mpmath.log(1 - mpmath.exp(-mpmath.mpf(float(y))))) for y in x]
    torch.testing.assert_close(log1mexp(x), torch.tensor(expected, dtype=torch.float64), rtol=1e-13, atol=0)


def test_cumulants():
    third, fourth = interval_cumulants(LOWER, UPPER)
    assert ((third - TRUTH[:, 5]).abs() < 1e-8 * TRUTH[:, 2] ** 1.5).all()
    assert ((fourth - TRUTH[:, 6]).abs() < 1e-8 * TRUTH[:, 2].square()).all()


def test_bounds_beyond_the_mass_are_none():
    """Everything about an interval with a far bound is what it is for an infinite one; on either side."""
    near = torch.tensor([-INF, -3.0, -0.2, 0.0, 0.7, 2.0], dtype=torch.float64).unsqueeze(-1)
    near, far = torch.broadcast_tensors(near, torch.tensor([9.5, 40, 1e3, 1e8, 1e100, 1e300, 1.7e308]).double())
    lower, infinite = torch.maximum(near, -far), torch.full_like(near, INF)
    for a, b, c, d in ((lower, far, near, infinite), (-far, -lower, -infinite, -near)):
        for function in (interval_cumulants, interval_moments, lambda *x: (log_interval_probability(*x),)):
            for found, expected in zip(function(a, b), function(c, d), strict=True):
                torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-14)
        uniform = torch.linspace(0.01, 0.99, 9, dtype=torch.float64).view(-1, 1, 1)
        torch.testing.assert_close(sample_interval(a, b, uniform), sample_interval(c, d, uniform), rtol=1e-9, atol=1e-9)


def test_standardise():
    bound = torch.tensor([-INF, -1.7e308, -1e200, -3.0, 0.5, 1e160, INF], dtype=torch.float64, requires_grad=True)
    location = torch.full_like(bound, 0.2).detach().requires_grad_()
    scale = torch.full_like(bound, 0.01).detach().requires_grad_()
    z = standardise(bound, location, scale)
    expected = torch.tensor([-INF, -INF, -INF, -320.0, 30.0, INF, INF], dtype=torch.float64)
    torch.testing.assert_close(z, expected)
    slopes = torch.autograd.grad(z.sum(), (bound, location, scale))
    inside = torch.tensor([0, 0, 0, 1, 1, 0, 0], dtype=torch.float64)
    finite = torch.where(inside > 0, expected, 0)
    for slope, value in zip(slopes, (100 * inside, -100 * inside, -100 * finite), strict=True):
        torch.testing.assert_close(slope, value)
    assert standardise(torch.tensor(torch.nan), torch.tensor(0.0), torch.tensor(1.0)).isnan()


def test_owens_t_is_scipys():
    h, a = torch.meshgrid(torch.linspace(-6, 6, 25), torch.linspace(0, 1, 11), indexing="ij")
    h, a = h.double(), a.double()
    expected = torch.from_numpy(special.owens_t(h.numpy(), a.numpy()))
    torch.testing.assert_close(owens_t(h, a), expected, rtol=1e-9, atol=1e-14)


def test_quadrature_of_inference_mode_can_be_differentiated_later():
    h = torch.tensor([0.5], dtype=torch.float64)
    with torch.inference_mode():
        owens_t(h, h, order=13)
    owens_t(h.requires_grad_(), h, order=13).sum().backward()
    assert h.grad.isfinite().all()
