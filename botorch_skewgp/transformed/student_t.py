r"""The distribution functions of Student's t, which torch lacks, with accurate logarithms of both tails.

A model has one number of degrees of freedom: the logarithm of the tail is tabulated once for each, by quadrature, and
interpolated to nearly all digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor

Slope = Callable[[Tensor, Tensor], Tensor]  # of a function, from the argument and the value

STEP = 0.04  # of the table: the error of its interpolation is of order 1e-13


def log_density(t: Tensor, df: float) -> Tensor:
    """The logarithm of the density."""
    log_beta = math.lgamma(0.5 * (df + 1)) - math.lgamma(0.5 * df)
    constant = log_beta - 0.5 * math.log(math.pi * df)
    return constant - 0.5 * (df + 1) * _log1p_square(t, df)


def log_cdf(t: Tensor, df: float) -> Tensor:
    """The logarithm of `P(T <= t)`, accurate in both tails and differentiable."""

    def value(t: Tensor) -> Tensor:
        tail = _log_tail(t, df)
        return torch.where(t > 0, torch.log1p(-tail.exp()), tail)

    return _WithSlope.apply(t, value, lambda t, value: (log_density(t, df) - value).exp())


def cdf(t: Tensor, df: float) -> Tensor:
    """`P(T <= t)`, accurate where it is small, and differentiable."""

    def value(t: Tensor) -> Tensor:
        tail = _log_tail(t, df).exp()
        return torch.where(t > 0, 1 - tail, tail)

    return _WithSlope.apply(t, value, lambda t, _: log_density(t, df).exp())


def quantile(level: Tensor, df: float) -> Tensor:
    """The values `t` with `P(T <= t)` equal to given levels, differentiable."""

    def value(level: Tensor) -> Tensor:
        return _solve_quantile(torch.minimum(level, 1 - level), df) * torch.where(level > 0.5, 1.0, -1.0).to(level)

    return _WithSlope.apply(level, value, lambda _, t: (-log_density(t, df)).exp())


def log_excess(t: Tensor, df: float) -> Tensor:
    """The logarithm of `E[max(T - t, 0)] = (df + t^2) / (df - 1) f(t) - t P(T > t)`, accurate and differentiable."""

    def value(t: Tensor) -> Tensor:
        size = t.double().abs()
        unit = size.clamp_min(1.0)  # the square of t may overflow
        log_f = log_density(size, df)
        tail = (_log_tail(size, df) - log_f).exp()  # P(T > t) / f(t)
        terms = (df / unit + size / unit * size) / (df - 1) - size / unit * tail
        log_value = log_f + unit.log() + terms.log()
        value = torch.where(size == math.inf, -math.inf, log_value)
        return torch.where(t < 0, torch.log(value.exp() + size), value).to(t)

    return _WithSlope.apply(t, value, lambda t, value: -(log_cdf(-t, df) - value).exp())


def chi_square_quantile(normal: Tensor, df: float) -> Tensor:
    """The chi-square number at the level of a standard normal number, a base sample; not differentiable."""
    z = normal.detach().cpu().numpy()
    lower = special.gammaincinv(0.5 * df, special.ndtr(z))
    upper = special.gammainccinv(0.5 * df, special.ndtr(-z))  # keeps digits where the level is near one
    return torch.as_tensor(2 * np.where(z > 0, upper, lower)).to(normal)


def _log1p_square(t: Tensor, df: float) -> Tensor:
    """`log(1 + t^2 / df)`, without overflow."""
    size = t / math.sqrt(df)
    large = 2 * size.abs().clamp_min(1e8).log()
    return torch.where(size.abs() > 1e8, large, torch.log1p(size.clamp(-1e8, 1e8).square()))


@lru_cache(maxsize=64)
def _table(df: float) -> Tensor:
    """Polynomials of degree 5 that agree with `log P(T > t) + s^2 / 2` and its first two derivatives in `s`, where
    `s^2 = df log(1 + t^2 / df)`, at all multiples of `STEP`; `6 x number of intervals`, lowest power first.
    """
    end = math.sqrt(df * math.log1p(1e16))  # beyond, the tail is a power of t to all digits, and this a constant
    s = torch.arange(math.ceil(end / STEP) + 1, dtype=torch.float64) * STEP
    t = math.sqrt(df) * torch.expm1(s.square() / df).sqrt()
    log_tail = _log_tail_by_quadrature(t, df)
    # h(s) = log P(T > t(s)): with dt/ds = s (1 + t^2 / df) / t and the hazard f / P, h' = -f / P dt/ds, and h'' / h'
    # is the derivative of log |h'|
    dt = torch.where(s > 0, s * (1 + t.square() / df) / t, 1.0)
    slope = -(log_density(t, df) - log_tail).exp() * dt
    change = torch.where(s > 0, 1 / s - dt / t, 0.0)
    relative_bend = change - (df - 1) / df * s - slope
    # of h + s^2 / 2, in units of the step
    value = log_tail + 0.5 * s.square()
    d = STEP * (slope + s)
    b = STEP**2 * (slope * relative_bend + 1)
    # Hermite's quintic polynomial
    rise = value.diff()
    d0, d1, b0, b1 = d[:-1], d[1:], b[:-1], b[1:]
    third = 10 * rise - 6 * d0 - 4 * d1 - 1.5 * b0 + 0.5 * b1
    fourth = -15 * rise + 8 * d0 + 7 * d1 + 1.5 * b0 - b1
    fifth = 6 * rise - 3 * d0 - 3 * d1 - 0.5 * b0 + 0.5 * b1
    return torch.stack([value[:-1], d0, 0.5 * b0, third, fourth, fifth])


def _log_tail_by_quadrature(t: Tensor, df: float) -> Tensor:
    """The logarithm of `P(T > t)` for `t >= 0`, `n`, by the exp-sinh rule for the density relative to that at `t`."""
    w = torch.arange(-64, 65, dtype=t.dtype) / 16
    x = torch.exp(0.5 * math.pi * torch.sinh(w))
    weight = x * 0.5 * math.pi * torch.cosh(w) / 16
    scale = (1 + t.square() / df) / (1 + t)  # of the decay
    step = scale.unsqueeze(-1) * x
    rise = torch.log1p(step * (2 * t.unsqueeze(-1) + step) / (df + t.square()).unsqueeze(-1))
    return log_density(t, df) + scale.log() + (torch.exp(-0.5 * (df + 1) * rise) @ weight).log()


def _log_tail(t: Tensor, df: float) -> Tensor:
    """The logarithm of `P(T > |t|)`."""
    return _log_tail_of_score((df * _log1p_square(t.double(), df)).sqrt(), df).to(t)


def _log_tail_of_score(s: Tensor, df: float) -> Tensor:
    """The logarithm of `P(T > t)` for `t` with `s^2 = df log(1 + t^2 / df)`."""
    table = _table(df).to(s.device)
    position = s / STEP
    index = position.floor().clamp_max(table.shape[-1] - 1)
    position = (position - index).clamp_max(1.0)
    index = index.nan_to_num(0.0).long().flatten()  # NaN stays in the position
    value = table[5].index_select(0, index).view(s.shape)
    for power in range(4, -1, -1):
        value = value * position + table[power].index_select(0, index).view(s.shape)
    return value - 0.5 * s.square()


class _WithSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Tensor], slope: Slope) -> Tensor:
        value = function(x)
        ctx.save_for_backward(x, value)
        ctx.slope = slope
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient * ctx.slope(*ctx.saved_tensors), None, None


def _solve_quantile(tail: Tensor, df: float) -> Tensor:
    """The `t >= 0` with `P(T > t) = tail`, by Newton's method for the logarithm of the tail in `s`; see `_table`."""
    wanted = tail.double().log()
    infinite = tail <= 0
    wanted = torch.where(infinite, -1.0, wanted)
    constant = float(log_density(torch.zeros((), dtype=torch.float64), df))
    s = (-2 * (wanted + math.log(2.0))).clamp_min(0.0).sqrt()
    for _ in range(50):
        square = s.square()
        log_tail = _log_tail_of_score(s, df)
        t = _from_score(s, df)
        stretch = torch.where(s > 0, s / torch.where(s > 0, t, 1.0), 1.0)
        log_hazard = constant - 0.5 * (df - 1) / df * square - log_tail
        slope = log_hazard.exp() * stretch
        step = (log_tail - wanted) / slope
        s = (s + step).clamp_min(0.0)
        if bool((step.abs() <= 1e-15 * (1 + s)).all()):
            break
    return torch.where(infinite, math.inf, _from_score(s, df)).to(tail)


def _from_score(s: Tensor, df: float) -> Tensor:
    """The `t >= 0` with `s^2 = df log(1 + t^2 / df)`, without overflow of its square."""
    square = s.square() / df
    return torch.exp(0.5 * square) * (-df * torch.expm1(-square)).sqrt()
