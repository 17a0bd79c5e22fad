"""Walls of finite height: moments, probabilities and draws against quadrature and enumeration."""

import math

import pytest
import torch
from scipy import stats

from botorch_skewgp.papers.corrections import _cumulants
from botorch_skewgp.truncated.row_factor import RowFactor
from botorch_skewgp.truncated.step_factor import Heights, StepFactor
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

pytestmark = pytest.mark.rounding

LOWER = torch.tensor([0.0, -torch.inf, -0.5, 1.0], dtype=torch.double)
UPPER = torch.tensor([torch.inf, 0.3, 0.7, torch.inf], dtype=torch.double)
NOISE = torch.tensor([0.5, 0.1, 0.2, 1.0], dtype=torch.double)
MEAN = torch.tensor([-1.5, 1.2, 0.2, -3.0], dtype=torch.double)
VARIANCE = torch.tensor([1.0, 0.6, 2.0, 0.3], dtype=torch.double)
OUTSIDE = torch.tensor([0.05, 0.2, 0.0, 0.5], dtype=torch.double)
GAIN = torch.tensor([0.9, 0.6, 1.0, 0.4], dtype=torch.double)


@pytest.fixture
def factor() -> StepFactor:
    return StepFactor(LOWER, UPPER, NOISE, Heights(OUTSIDE, GAIN))


def tilted_moments(order: int, i: int) -> float:
    """E[u^order step(u)] for one row, on a fine grid."""
    scale = math.sqrt(VARIANCE[i] + NOISE[i])
    u = torch.linspace(-12, 12, 200_001, dtype=torch.double) * scale + MEAN[i]
    step = OUTSIDE[i] + GAIN[i] * ((u > LOWER[i]) & (u <= UPPER[i]))
    density = torch.exp(-0.5 * ((u - MEAN[i]) / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
    return float(torch.trapezoid(u**order * step * density, u))


def test_moments_and_probabilities_are_those_of_the_step(factor: StepFactor) -> None:
    scale, mean, variance = factor.moments(MEAN, VARIANCE)
    log_probability = factor.log_probability(MEAN, VARIANCE)
    for i in range(4):
        total, first, second = (tilted_moments(order, i) for order in range(3))
        assert log_probability[i].exp() == pytest.approx(total, abs=2e-5)
        assert MEAN[i] + scale[i] * mean[i] == pytest.approx(first / total, abs=2e-4)
        assert scale[i] ** 2 * variance[i] == pytest.approx(second / total - (first / total) ** 2, abs=5e-4)


def test_cumulants_are_those_of_the_step(factor: StepFactor) -> None:
    third, fourth = _cumulants(factor, MEAN, VARIANCE)
    scale = factor.scale(VARIANCE)
    for i in range(4):
        total, *raw = (tilted_moments(order, i) for order in range(5))
        first, second, cubed, quartic = (value / total for value in raw)
        variance = second - first**2
        skew = cubed - 3 * first * second + 2 * first**3
        excess = quartic - 4 * first * cubed + 6 * first**2 * second - 3 * first**4 - 3 * variance**2
        assert third[i] * scale[i] ** 3 == pytest.approx(skew, abs=5e-3)
        assert fourth[i] * scale[i] ** 4 == pytest.approx(excess, abs=3e-2)


def test_draws_have_the_distribution_of_the_step(factor: StepFactor) -> None:
    n = 100_000
    uniform = torch.rand(n, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    u = factor.draw_given(MEAN.expand(n, 4), uniform)
    inside = ((u > LOWER) & (u <= UPPER)).double()
    p = (stats.norm.cdf((UPPER - MEAN) / NOISE.sqrt()) - stats.norm.cdf((LOWER - MEAN) / NOISE.sqrt())) * 1.0
    p = torch.as_tensor(p)
    expected = (OUTSIDE + GAIN) * p / (OUTSIDE + GAIN * p)
    error = (expected * (1 - expected) / n).sqrt() + 1e-12
    assert bool(((inside.mean(0) - expected).abs() < 4 * error).all())
    mean = factor.draw_mean_given(MEAN.expand(n, 4), torch.full((4,), 5.0, dtype=torch.double), uniform)
    single = u.mean(0)
    assert torch.allclose(mean.mean(0), single, atol=4 * float((u.std(0) / math.sqrt(n)).max()) + 0.01)
    assert torch.allclose(mean.var(0) * 5, u.var(0), rtol=0.03)


def test_an_answer_of_several_rows_has_one_step() -> None:
    answer = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.double)
    outside, gain = torch.tensor([[0.1, 0.3, 0.1, 0.3], [0.8, 0.5, 0.8, 0.5]], dtype=torch.double)
    factor = StepFactor(LOWER, UPPER, NOISE, Heights(outside, gain, answer))
    p = RowFactor(LOWER, UPPER, NOISE).log_likelihood(MEAN).exp()
    expected = math.log(0.1 + 0.8 * p[0] * p[2]) + math.log(0.3 + 0.5 * p[1] * p[3])
    assert float(factor.log_likelihood(MEAN).sum()) == pytest.approx(expected, rel=1e-12)
    # a slip leaves all rows of the answer alone, so that they are inside together or independently
    n = 100_000
    uniform = torch.rand(n, 4, dtype=torch.double, generator=torch.Generator().manual_seed(1))
    u = factor.draw_given(MEAN.expand(n, 4), uniform)
    inside = (u > LOWER) & (u <= UPPER)
    both = p[0] * p[2]
    together = float(0.9 * both / (0.1 + 0.8 * both))
    found = float((inside[:, 0] & inside[:, 2]).double().mean())
    assert abs(found - together) < 4 * math.sqrt(together * (1 - together) / n)
    # one of them beyond its bounds: never by an attentive answer
    alone = float(0.1 * p[0] * (1 - p[2]) / (0.1 + 0.8 * both))
    found = float((inside[:, 0] & ~inside[:, 2]).double().mean())
    assert abs(found - alone) < 4 * math.sqrt(alone * (1 - alone) / n)


def test_answers_of_parts_are_numbered_one_after_another() -> None:
    one, zero = torch.ones(3, dtype=torch.double), torch.zeros(2, dtype=torch.double)
    joined = Heights(0.1 * one, 0.8 * one, torch.tensor([0.0, 0.0, 1.0], dtype=torch.double))
    heights = Heights.cat([joined, None, joined], [3, 2, 3], one)
    assert heights.answer.tolist() == [0, 0, 1, 2, 3, 4, 4, 5]
    assert torch.equal(heights.outside, torch.cat([0.1 * one, zero, 0.1 * one]))
    assert torch.equal(heights.gain, torch.cat([0.8 * one, zero + 1, 0.8 * one]))
    assert Heights.cat([None, None], [3, 2], one) is None


@pytest.mark.parametrize(
    ("heights", "message"),
    [
        (Heights(torch.full((3,), 0.1), torch.full((3,), 0.9)), "mean's shape"),
        (Heights(torch.full((2,), -0.1), torch.full((2,), 0.9)), "must not be negative"),
        (Heights(torch.full((2,), 0.1), torch.zeros(2)), "must be larger"),
    ],
)
def test_refuses_in_words(heights: Heights, message: str) -> None:
    zeros, eye = torch.zeros(2, dtype=torch.double), torch.eye(2, dtype=torch.double)
    with pytest.raises(ValueError, match=message):
        TruncatedNormal(zeros, eye, zeros, zeros + 1, zeros + 1, heights=heights)
