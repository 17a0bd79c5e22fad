"""Distribution functions of Student's t and chi-square, against 40-digit arithmetic and scipy."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from botorch_skewgp.transformed import student_t
from botorch_skewgp.truncated.univariate import gauss_rule

DOUBLE = torch.float64
DEGREES = pytest.mark.parametrize("df", [1, 2, 5, 17, 48, 199, 1000])
VALUES = torch.tensor([-1e6, -300.0, -38.0, -6.1, -1.8, -1.6999, -1.0, -0.3, -1e-9, 0.0, 0.2, 1.71, 5.0], dtype=DOUBLE)


def exact_log_cdf(t, df):
    with mpmath.workdps(40):
        t = mpmath.mpf(t)
        tail = mpmath.betainc(mpmath.mpf(df) / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
        return float(mpmath.log(tail if t < 0 else 1 - tail))


@DEGREES
def test_log_cdf_in_both_tails(df):
    exact = [exact_log_cdf(t, df) for t in VALUES.tolist()]
    np.testing.assert_allclose(student_t.log_cdf(VALUES, df).numpy(), exact, rtol=3e-12, atol=3e-12)
    np.testing.assert_allclose(student_t.cdf(VALUES, df).numpy(), np.exp(exact), rtol=3e-11)


@DEGREES
def test_log_density(df):
    expected = stats.t.logpdf(VALUES.numpy(), df)
    np.testing.assert_allclose(student_t.log_density(VALUES, df).numpy(), expected, rtol=1e-11)


@DEGREES
def test_quantiles_undo_the_cdf(df):
    level = torch.tensor([1e-200, 1e-12, 0.01, 0.3, 0.5, 0.7, 1 - 1e-9], dtype=DOUBLE)
    value = student_t.quantile(level, df)
    torch.testing.assert_close(student_t.log_cdf(value, df), level.log(), rtol=1e-10, atol=1e-12)
    assert student_t.quantile(torch.tensor([0.0, 1.0], dtype=DOUBLE), df).tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize("df", [2, 5, 17, 199])
def test_log_excess(df):
    def exact(t):
        with mpmath.workdps(40):
            t, n = mpmath.mpf(t), mpmath.mpf(df)
            size = abs(t)
            density = (1 + t * t / n) ** (-(n + 1) / 2) / (mpmath.sqrt(n) * mpmath.beta(n / 2, 0.5))
            tail = mpmath.betainc(n / 2, 0.5, 0, n / (n + t * t), regularized=True) / 2
            value = (n + t * t) / (n - 1) * density - size * tail
            return float(mpmath.log(value + (size if t < 0 else 0)))

    t = torch.cat([-VALUES, VALUES])
    np.testing.assert_allclose(student_t.log_excess(t, df), [exact(x) for x in t.tolist()], rtol=1e-9, atol=1e-9)
    t = torch.tensor([-3.0, -0.2, 0.0, 0.7, 9.0], dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: student_t.log_excess(x, df), (t,))


def test_values_that_are_not_finite():
    t = torch.tensor([math.nan, 0.0], dtype=DOUBLE)
    for function in (student_t.cdf, student_t.log_cdf, student_t.log_excess):
        assert function(t, 5).isnan().tolist() == [True, False]
    ends = torch.tensor([-math.inf, math.inf], dtype=DOUBLE)
    assert student_t.cdf(ends, 5).tolist() == pytest.approx([0.0, 1.0], abs=1e-300)


@pytest.mark.parametrize("df", [1, 17])
@pytest.mark.parametrize("function", [student_t.cdf, student_t.log_cdf, student_t.log_density])
def test_derivatives(function, df):
    t = VALUES[3:].clone().requires_grad_()
    torch.autograd.gradcheck(lambda t: function(t, df), t)
    torch.autograd.gradgradcheck(lambda t: function(t, df), t)
    level = torch.tensor([0.01, 0.4, 0.9], dtype=DOUBLE, requires_grad=True)
    torch.autograd.gradcheck(lambda level: student_t.quantile(level, df), level)


@DEGREES
def test_chi_square_quantiles(df):
    normal = torch.linspace(-8, 8, 41, dtype=DOUBLE)
    found, half = 0.5 * student_t.chi_square_quantile(normal, df), torch.tensor(0.5 * df, dtype=DOUBLE)
    tail = torch.where(normal < 0, torch.special.gammainc(half, found), torch.special.gammaincc(half, found))
    torch.testing.assert_close(tail.log(), torch.special.log_ndtr(-normal.abs()), rtol=0, atol=1e-7)


@pytest.mark.parametrize("n", [1, 2, 7, 48])
def test_gauss_legendre(n):
    nodes, weights = gauss_rule("legendre", n)
    expected_nodes, expected_weights = np.polynomial.legendre.leggauss(n)
    np.testing.assert_allclose(nodes.numpy(), expected_nodes, atol=1e-14)
    np.testing.assert_allclose(2 * weights.numpy(), expected_weights, rtol=1e-11)
