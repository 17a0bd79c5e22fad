"""The fuzzer's reference against closed forms, where there are some."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks.fuzz.cases import INF, Anchors, Case, Noise, Seen, numbered_case
from benchmarks.fuzz.reference import Contradiction, log_difference, reference_of

X = [[0.1], [0.4], [0.8]]


def case_of(*seen, **kwargs):
    return Case(points=X, seen=list(seen), queries=[[0.1], [0.5]], **kwargs)


def covariance(a, b, lengthscale=0.5):
    return math.exp(-0.5 * ((a - b) / lengthscale) ** 2)


def close(estimate, truth, at_least=1e-9):
    value, error = estimate
    assert abs(value - truth) < 5 * error + at_least


def test_numbers_are_gaussian_regression():
    y, noise = np.array([0.3, -0.7, 2.0]), 0.2
    case = case_of(Seen("Numeric", {"values": y.tolist(), "index": [0, 1, 2]}), noise=Noise(numbers=noise), mean=0.4)
    x = np.array([0.1, 0.4, 0.8])
    K = np.exp(-0.5 * ((x[:, None] - x) / 0.5) ** 2) + noise * np.eye(3)
    k = np.array([covariance(0.5, a) for a in x])
    reference = reference_of(case, size=100)
    assert reference.mean()[0][1] == pytest.approx(0.4 + k @ np.linalg.solve(K, y - 0.4))
    assert reference.variance[1] == pytest.approx(1 - k @ np.linalg.solve(K, k))
    log_density = -0.5 * (y - 0.4) @ np.linalg.solve(K, y - 0.4) - 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]
    assert reference.log_evidence == pytest.approx(log_density)


@pytest.mark.parametrize("threshold", [0.0, 7.0, 40.0])
def test_one_row_is_a_truncated_normal(threshold):
    # f + v > threshold with variance 1.5; its mean is the hazard rate
    case = case_of(Seen("Censored", {"lower": [threshold], "upper": [INF], "index": [0]}), noise=Noise(numbers=0.5))
    reference = reference_of(case)
    t = threshold / math.sqrt(1.5)
    hazard = math.exp(norm.logpdf(t) - norm.logsf(t))
    value, error = reference.mean()
    close((value[0], error[0]), hazard / math.sqrt(1.5))
    assert reference.log_evidence == pytest.approx(norm.logsf(t))


def test_orthant_of_two_rows():
    # P(f_a > 0, f_b > 0) has the arcsine form; the noise is that of both labels
    case = case_of(Seen("Binary", {"labels": [1, 1], "index": [0, 1]}), noise=Noise(labels=0.3))
    reference = reference_of(case)
    rho = covariance(0.1, 0.4) / 1.3
    truth = math.log(0.25 + math.asin(rho) / (2 * math.pi))
    close((reference.log_evidence, reference.log_evidence_error), truth)


def test_slope_at_the_point_that_is_asked_for():
    # E[f(x + h) | f'(x) > 0] = cov(f(x + h), f'(x)) / sd(f'(x)) sqrt(2 / pi), the mean of a half-normal slope
    case = Case([[0.2]], [Seen("Slope", {"dims": [0], "signs": [1], "index": [0]})], [[0.5]], mean=0.7)
    reference = reference_of(case)
    value, error = reference.mean()
    close((value[0], error[0]), 0.7 + 0.3 / 0.5 * covariance(0.2, 0.5) * math.sqrt(2 / math.pi))
    assert reference.log_evidence == pytest.approx(-math.log(2))


def test_shared_noise_of_a_choice():
    # equal items: each of three is best with probability one third, whatever the noise
    case = Case([[0.2]] * 3, [Seen("Choice", {"options": [[0, 1, 2]]})], [[0.2]])
    reference = reference_of(case)
    close((reference.log_evidence, reference.log_evidence_error), -math.log(3))


def test_skew_prior_is_normalised():
    # the prior f(0.1) > 0 alone: a half-normal law, whatever is seen with huge noise
    anchors = Anchors([[0.1]], [1.0], [0.0])
    case = case_of(Seen("Binary", {"labels": [1], "index": [2]}), noise=Noise(labels=1e12), anchors=anchors)
    reference = reference_of(case)
    value, error = reference.mean()
    close((value[0], error[0]), math.sqrt(2 / math.pi), at_least=1e-5)
    close((reference.log_evidence, reference.log_evidence_error), -math.log(2), at_least=1e-5)


def test_cdf_against_quadrature():
    case = case_of(Seen("Binary", {"labels": [0, 0], "index": [0, 0]}), noise=Noise(labels=0.1))
    reference = reference_of(case, size=40_000)

    def density(f):
        return norm.pdf(f) * norm.cdf(-f / math.sqrt(0.1)) ** 2

    whole = quad(density, -10, 10, points=[-1, 0, 1])[0]
    truth = quad(density, -10, -0.5, points=[-1])[0] / whole
    value, error = reference.cdf(np.array([-0.5, 0.0]))
    close((value[0], error[0]), truth)


def test_numbers_without_noise_that_contradict_each_other():
    seen = Seen("Numeric", {"values": [1.0, 2.0], "noise": [0.0, 0.0], "index": [0, 0]})
    with pytest.raises(Contradiction):
        reference_of(case_of(seen))


@pytest.mark.parametrize(
    ("a", "b"), [(0.0, 1e-9), (5.0, 5.0 + 1e-8), (30.0, INF), (-INF, INF), (-3.0, 2.0), (100.0, 101.0)]
)
def test_log_difference(a, b):
    from mpmath import erfc, log, mp, mpf, sqrt

    with mp.workdps(60):
        truth = log((erfc(mpf(a) / sqrt(2)) - erfc(mpf(b) / sqrt(2))) / 2)
    # the tolerance is in probability: the width of an interval is only known to rounding of its ends
    assert float(log_difference(np.array(a), np.array(b))) == pytest.approx(float(truth), abs=1e-6)


def test_an_evidence_of_few_draws_says_so():
    # the tilting of this prior's normaliser is not found: points that nearly coincide are asked to be far apart
    case = numbered_case(2762)
    reference = reference_of(case, size=1000)
    assert reference.evidence_size < 10 < reference.effective_size
    plain = reference_of(replace(case, anchors=None), size=1000)
    assert plain.evidence_size == plain.effective_size
