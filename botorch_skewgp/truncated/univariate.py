r"""One normal variable in an interval: log probability, moments and exact draws, stable far in the tails.

All functions are elementwise and broadcast. An interval that lies in the right tail is reflected into
the left one, where `log_ndtr` is accurate; differences of logarithms go through `log1p` and `expm1`.

.. [Golub1969quadrature] Golub, Welsch. Calculation of Gauss quadrature rules. Mathematics of Computation 23, 1969.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

EXPONENTIAL = -1e5  # bound below which the tail of a normal variable is exponential up to rounding
HARD = 0.1  # scale of an interval in standard deviations, below which differences of moments cancel
FAR = {torch.float64: 30.0, torch.float32: 10.0}  # standard deviations, beyond which probabilities lose their digits
MASS = 9.0  # standard deviations of a normal variable beyond which its moments up to the fourth are below rounding


def log_normal_density(x: Tensor) -> Tensor:
    """The log density of a standard normal variable."""
    return -0.5 * x.square() - 0.5 * math.log(2 * math.pi)


def normal_cdf(x: Tensor) -> Tensor:
    """The standard normal cdf with all digits in the left tail, where `torch.special.ndtr` is zero from -8.3 on."""
    return 0.5 * torch.special.erfc(-x * math.sqrt(0.5))


def normal_hazard(x: Tensor) -> Tensor:
    """The density over the cdf of a standard normal variable, with all digits in both tails."""
    return math.sqrt(2 / math.pi) / torch.special.erfcx(x * -math.sqrt(0.5))


def standardise(bound: Tensor, location: Tensor, scale: Tensor) -> Tensor:
    """`(bound - location) / scale`, infinite and without derivatives where its square would overflow."""
    with torch.no_grad():
        far = ((bound - location) / scale).abs() > math.sqrt(torch.finfo(scale.dtype).max)
        infinite = torch.copysign(torch.full_like(scale, torch.inf), bound - location)
    return torch.where(far, infinite, (torch.where(far, location, bound) - location) / scale)


def log1mexp(x: Tensor) -> Tensor:
    """`log(1 - exp(-x))` for `x > 0`."""
    small = x < math.log(2.0)
    left = torch.log(-torch.expm1(-torch.where(small, x, 1.0)))
    right = torch.log1p(-torch.exp(-torch.where(small, 1.0, x)))
    return torch.where(small, left, right)


def _into_left_tail(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reflect intervals whose middle is positive; also returns where this was done."""
    flip = lower + upper > 0  # false for (-inf, inf), whose sum is NaN
    return torch.where(flip, -upper, lower), torch.where(flip, -lower, upper), flip


class _LogIntervalProbability(torch.autograd.Function):
    """`log(Phi(upper) - Phi(lower))` with gradients written as ratios of density to probability."""

    @staticmethod
    def forward(ctx: Any, lower: Tensor, upper: Tensor) -> Tensor:
        a, b, _ = _into_left_tail(lower, upper)
        log_b = torch.special.log_ndtr(b)
        if not bool((a > -torch.inf).any()):  # one bound in every row
            ctx.save_for_backward(lower, upper, log_b)
            return log_b
        # log Phi(b) - log Phi(a): for a narrow interval the difference of the two cancels, so the
        # width times the density at the middle takes over, with an error of order width^2 / 24.
        width = b - a
        middle = 0.5 * (a + b)
        narrow = width * (1 + middle.abs()) < torch.finfo(width.dtype).eps ** (1 / 3)
        gap = log_b - torch.special.log_ndtr(a)
        safe = torch.where(narrow, torch.ones_like(gap), gap)
        wide_value = log_b + log1mexp(safe)
        safe_middle = torch.where(narrow, middle, 0.0)
        safe_width = torch.where(narrow, width, 1.0)
        value = torch.where(narrow, log_normal_density(safe_middle) + safe_width.log(), wide_value)
        ctx.save_for_backward(lower, upper, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        lower, upper, value = ctx.saved_tensors
        return (
            -grad * torch.exp(log_normal_density(lower) - value),
            grad * torch.exp(log_normal_density(upper) - value),
        )


def log_interval_probability(lower: Tensor, upper: Tensor) -> Tensor:
    """`log(Phi(upper) - Phi(lower))`, finite for any finite interval; once differentiable."""
    lower, upper = torch.broadcast_tensors(lower, upper)
    return _LogIntervalProbability.apply(lower, upper)


def interval_moments(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log probability, mean and variance of a standard normal variable restricted to `(lower, upper]`, in float64."""
    lower, upper = torch.broadcast_tensors(lower, upper)
    log_probability = log_interval_probability(lower, upper)
    a, b, flip = _into_left_tail(lower, upper)
    ratio_a = torch.exp(log_normal_density(a) - log_probability)
    ratio_b = torch.exp(log_normal_density(b) - log_probability)
    mean = ratio_a - ratio_b
    a_finite = torch.where(a.isfinite(), a, 0.0)
    b_finite = torch.where(b.isfinite(), b, 0.0)
    # Var = 1 + a r_a - b r_b - mean^2 = 1 - r_a (mean - a) - r_b (b - mean), which cancels far in the
    # tail and in narrow intervals: there use the exponential, respectively uniform, expansions below.
    variance = 1 + ratio_a * a_finite - ratio_b * b_finite - mean.square()
    variance, mean = _tail_moments(a, b, b - a, mean, variance)
    return log_probability, torch.where(flip, -mean, mean), variance


def tail_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance in `(-inf, x]` in double precision, quicker than `interval_moments`."""
    mean = -normal_hazard(x)
    variance = 1 + mean * (x - mean)
    if x.numel() and float(x.amin()) < -1 / HARD:
        infinite = torch.full_like(x, torch.inf)
        variance, mean = _tail_moments(-infinite, x, infinite, mean, variance)
    return mean, variance


def _tail_moments(a: Tensor, b: Tensor, width: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Replace variance and mean by Gauss-Legendre quadrature where their closed form cancels."""
    # The variable x = b - t lies in the left tail; its density over t >= 0 is proportional to
    # exp(b t - t^2 / 2). Its scale is min(width, 1/|b|): cancellation hurts where that is small.
    scale = torch.minimum(width, 1 / torch.where(b < -1, -b, 1.0))
    hard = scale < HARD
    if not bool(hard.any()):
        return variance, mean
    t, density = _below(b[hard], torch.minimum(width, 45 * scale)[hard])
    t_mean = (density * t).sum(-1)
    t_variance = (density * (t - t_mean.unsqueeze(-1)).square()).sum(-1)
    return variance.masked_scatter(hard, t_variance), mean.masked_scatter(hard, b[hard] - t_mean)


def _below(b: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
    """Distances below `b` of nodes between `b - length` and `b`, and their weights under a normal variable there."""
    nodes, weights = legendre(b)
    t = length.unsqueeze(-1) * nodes
    density = weights * torch.exp(b.unsqueeze(-1) * t - 0.5 * t.square())  # at most exp(MASS^2 / 2)
    return t, density / density.sum(-1, keepdim=True)


def interval_cumulants(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Third and fourth cumulants of a standard normal variable restricted to `(lower, upper]`, by quadrature."""
    lower, upper = torch.broadcast_tensors(lower, upper)
    a, b, flip = _into_left_tail(lower, upper)
    free = b >= MASS  # and a <= -b
    b = torch.where(free, 0.0, b)
    # as in _tail_moments the variable is b - t, of density proportional to exp(b t - t^2 / 2), t >= 0
    reach = b.clamp(min=0) + (40 / (-b).clamp(min=1)).clamp(max=MASS)  # what lies beyond has no mass
    t, density = _below(b, torch.minimum(b - a, reach))
    centred = (density * t).sum(-1, keepdim=True) - t  # of b - t about its mean
    second, third, fourth = ((density * centred.pow(k)).sum(-1) for k in (2, 3, 4))
    third = torch.where(flip, -third, third)
    zero = torch.zeros_like(third)
    return torch.where(free, zero, third), torch.where(free, zero, fourth - 3 * second.square())


def legendre(like: Tensor, order: int = 96) -> tuple[Tensor, Tensor]:
    """Gauss-Legendre nodes and weights on `(0, 1)`."""
    nodes, weights = gauss_rule("legendre", order)
    return (0.5 * (nodes + 1)).to(like), weights.to(like)


def sample_interval(lower: Tensor, upper: Tensor, uniform: Tensor) -> Tensor:
    """Inverse-cdf draws of a standard normal variable in `(lower, upper]`, from uniform draws in `[0, 1)`."""
    a, b, flip = _into_left_tail(lower, upper)
    a, b, flip = torch.broadcast_tensors(a, b, flip)
    uniform = uniform.clamp(min=0.5 * torch.finfo(uniform.dtype).eps)  # one minus it is less than one
    if b.numel() and not bool((a > -torch.inf).any()) and float(b.amin()) > -FAR[b.dtype]:
        x = torch.minimum(torch.special.ndtri((1 - uniform) * normal_cdf(b)), b)
        return torch.where(flip, -x, x)
    # log cdf of the draw: log(Phi(b) - w (Phi(b) - Phi(a))) with w uniform
    log_b = torch.special.log_ndtr(b)
    # one-sided intervals need no second cdf
    shrink = torch.ones_like(log_b)
    if bool((a > -torch.inf).any()):
        shrink = -torch.expm1(torch.special.log_ndtr(a) - log_b)
    log_cdf = log_b + torch.log1p(-uniform * shrink)
    x = _inverse_log_ndtr(log_cdf)
    deep = b < EXPONENTIAL
    if bool(deep.any()):  # the density over t = b - x is exp(b t) to within 1 / b^2, and log cdfs have no digits left
        rate = torch.where(deep, -b, 1.0)
        x = torch.where(deep, b + torch.log1p(uniform * torch.expm1(-rate * (b - a))) / rate, x)
    x = torch.maximum(torch.minimum(x, b), a)  # rounding of the inverse only
    return torch.where(flip, -x, x)


def _inverse_log_ndtr(log_p: Tensor) -> Tensor:
    """Solve `log Phi(x) = log_p` for `log_p < 0`: directly, and by Newton steps in the log domain far in the tail."""
    upper = log_p > -0.5  # the cdf is rounded to one, its complement is not to zero
    x = torch.special.ndtri(torch.where(upper, -torch.expm1(log_p), log_p.exp()))
    x = torch.where(upper, -x, x)
    tail = log_p < -10.0
    if not bool(tail.any()):
        return x
    deep = log_p[tail]
    # about -sqrt(-2 log p - log(4 pi) - log(-log p))
    y = -torch.sqrt(-2 * deep - math.log(4 * math.pi) - torch.log(-deep))
    for _ in range(4):
        log_cdf = torch.special.log_ndtr(y)
        y = y - (log_cdf - deep) * torch.exp(log_cdf - log_normal_density(y))
    return x.masked_scatter(tail, y)


def hermite(like: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """Nodes and log weights of Gauss-Hermite quadrature for averages over a standard normal variable."""
    nodes, weights = gauss_rule("hermite", order)
    return nodes.to(like), weights.log().to(like)


def owens_t(h: Tensor, a: Tensor, order: int = 16) -> Tensor:
    """Owen's function `T(h, a) = int_0^a exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx / (2 pi)` for `0 <= a <= 1`,
    differentiable, by Gauss-Legendre quadrature (Owen, Annals of Mathematical Statistics 27, 1956).
    """
    total = torch.zeros_like(h)
    for node, weight in zip(*legendre(h, order), strict=True):  # one at a time: h may be large
        square = 1 + (a * node).square()
        total = total + weight * torch.exp(-0.5 * h.square() * square) / square
    return a * total / (2 * math.pi)


@lru_cache
def gauss_rule(kind: Literal["legendre", "hermite"], order: int) -> tuple[Tensor, Tensor]:
    """Gauss quadrature by the Jacobi matrix ([Golub1969quadrature]_): increasing nodes, weights that sum to one."""
    with torch.inference_mode(False):  # cached for calls that are differentiated
        k = torch.arange(1, order, dtype=torch.float64)
        off_diagonal = k.sqrt() if kind == "hermite" else k / torch.sqrt(4 * k.square() - 1)
        nodes, vectors = torch.linalg.eigh(torch.diag(off_diagonal, 1) + torch.diag(off_diagonal, -1))
        return nodes, vectors[0].square()
