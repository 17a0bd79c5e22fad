"""Factors of the joint density that depend on one row each: probabilities, moments under a normal `h`, draws of rows.

.. [Fleishman1978method] A. I. Fleishman. A method for simulating non-normal distributions. Psychometrika 43, 1978.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from botorch_skewgp.truncated.univariate import (
    FAR,
    interval_moments,
    log_interval_probability,
    log_normal_density,
    normal_hazard,
    sample_interval,
    standardise,
    tail_moments,
)


class TiltedMoments(NamedTuple):
    """Moments of a normal row under its factor, as of `(u - mean) / scale`, whose moments without it are 0 and 1."""

    scale: Tensor  # standard deviation of the row without its factor; 1 where that is zero
    mean: Tensor
    variance: Tensor


def mapped(part: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A tensor changed, or a data class with all of its tensors changed; `None` stays."""
    if part is None or isinstance(part, Tensor):
        return None if part is None else change(part)
    return replace(part, **{entry.name: mapped(getattr(part, entry.name), change) for entry in fields(part)})


@dataclass(eq=False)
class RowFactor:
    """Independent factors of rows `u = h + v`: one inside their intervals, zero outside; all `... x m`."""

    lower: Tensor
    upper: Tensor
    noise: Tensor

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The factors with all of their tensors changed."""
        return mapped(self, change)

    def with_noise(self, noise: Tensor) -> Self:
        """The factors with other noise."""
        return replace(self, noise=noise)

    def scale(self, variance: Tensor) -> Tensor:
        """The standard deviation of rows whose noiseless parts have these variances; 1 where it is zero."""
        total = variance + self.noise
        return total.sqrt() if self.has_noise else torch.where(total > 0, total, 1.0).sqrt()

    def clamp(self, u: Tensor) -> Tensor:
        """Rows moved inside their bounds, which rounding may leave."""
        return torch.maximum(torch.minimum(u, self.upper), self.lower)

    def _standard(self, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        if torch.is_grad_enabled():
            return standardise(self.lower, mean, scale), standardise(self.upper, mean, scale)
        return (self.lower - mean) / scale, (self.upper - mean) / scale  # in half of the time

    def log_probability(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The log of the expected factor, `log P(lower < u <= upper)`, for `h ~ N(mean, variance)`; differentiable."""
        scale = self.scale(variance)
        if self._side is None:
            value = log_interval_probability(*self._standard(mean, scale))
        else:  # a quarter of the operations
            bound = torch.where(self._side > 0, self.lower, self.upper)  # not what is kept, which may lack derivatives
            value = torch.special.log_ndtr(self._side * (mean - bound) / scale)
        if self.has_noise:
            return value
        holds = (self.lower < mean) & (mean <= self.upper)
        return torch.where(variance + self.noise > 0, value, torch.where(holds, 0.0, -torch.inf).to(value))

    def log_likelihood(self, h: Tensor) -> Tensor:
        """`log P(lower < u <= upper | h)`; of rows without noise zero at or between the bounds, `-inf` beyond."""
        if torch.is_grad_enabled():
            return RowFactor.log_probability(self, h, torch.zeros_like(self.noise))
        noisy = self.noise > 0
        scale = torch.where(noisy, self.noise, 1.0).sqrt()
        value = log_interval_probability(*self._standard(h, scale))
        if bool(noisy.all()):
            return value
        inside = (h >= self.lower) & (h <= self.upper)
        return torch.where(noisy, value, torch.where(inside, 0.0, -torch.inf).to(value))

    def log_likelihood_and_slope(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """`log P(lower < u <= upper | h)` and its derivative in `h`, of rows with noise."""
        if not self.has_one_bound:
            scale = self.noise.sqrt()
            value, mean, _ = interval_moments(*self._standard(h, scale))
            return value, mean / scale
        x = (h - self._bound).mul_(self._margin)
        if float(x.amin()) > -FAR[x.dtype]:
            value = (x * -math.sqrt(0.5)).erfc_().mul_(0.5)
            slope = x.square_().mul_(-0.5).exp_().mul_(self._margin / math.sqrt(2 * math.pi)).div_(value)
            return value.log_(), slope
        # Phi(x) = t exp(-x^2 / 2) / 2 with the scaled error function t, which would overflow far inside
        x = x.clamp_(max=FAR[x.dtype])
        t = torch.special.erfcx(x * -math.sqrt(0.5))
        return (0.5 * t).log_().sub_(x.square_(), alpha=0.5), math.sqrt(2 / math.pi) * self._margin / t

    def moments(self, mean: Tensor, variance: Tensor) -> TiltedMoments:
        """The moments of `u` under its factor, for `h ~ N(mean, variance)`."""
        scale = self.scale(variance)
        if self._side is not None and not torch.is_grad_enabled():
            t_mean, t_variance = tail_moments((mean - self._bound) * self._side / scale)
            return TiltedMoments(scale, -self._side * t_mean, t_variance)
        return TiltedMoments(scale, *interval_moments(*self._standard(mean, scale))[1:])

    def draw(self, centre: Tensor, scale: Tensor, uniform: Tensor) -> Tensor:
        """Draws of `u`, normal without its factor, under its factor; `uniform` is in the open interval (0, 1)."""
        return self.clamp(centre + scale * sample_interval(*self._standard(centre, scale), uniform))

    def draw_given(self, h: Tensor, uniform: Tensor) -> Tensor:
        """Draws of rows `u` given `h`, from uniform draws in the open interval (0, 1); `h` itself without noise."""
        noisy = self.noise > 0
        return torch.where(noisy, self.draw(h, torch.where(noisy, self.noise, 1.0).sqrt(), uniform), h)

    def draw_mean_given(self, h: Tensor, count: Tensor, uniform: Tensor) -> Tensor:
        """Draws of the mean of `count` rows `u` of the same `h`, with exact mean, variance and skewness."""
        return self.clamp(self._draw_mean(h, count, uniform))

    def _draw_mean(self, h: Tensor, count: Tensor, uniform: Tensor) -> Tensor:
        """`b z + c (z^2 - 1)` of variance `b^2 + 2 c^2 = 1` and skewness `6 c - 4 c^3` ([Fleishman1978method]_)."""
        mean, variance, skewness = self._moments_given(h)
        z = torch.special.ndtri(uniform)
        sine = (skewness / (2 * math.sqrt(2) * count.sqrt())).clamp(-1, 1)
        c = math.sqrt(2) * (sine.asin() / 3).sin()
        z = (1 - 2 * c.square()).sqrt() * z + c * (z.square() - 1)
        return h + self.noise.sqrt() * (mean + (variance / count).sqrt() * z)

    @cached_property
    def has_noise(self) -> bool:
        """Whether every row has noise."""
        return bool((self.noise > 0).all())

    @cached_property
    def has_one_bound(self) -> bool:
        """Whether every row has noise and one bound, which has quicker formulas."""
        return self._side is not None and self.has_noise

    @cached_property
    def _side(self) -> Tensor | None:
        """1 for rows with a lower bound and -1 for those with an upper one, where every row has one of both."""
        above, below = self.lower.isfinite(), self.upper.isfinite()
        return above.to(self.noise) - below.to(self.noise) if bool((above != below).all()) else None

    @cached_property
    def _bound(self) -> Tensor:
        return torch.where(self.lower.isfinite(), self.lower, self.upper)

    @cached_property
    def _margin(self) -> Tensor:
        """The factor that makes `h - bound` the distance inside the bound, in units of the noise."""
        return (self.lower.isfinite().to(self.noise) - self.upper.isfinite().to(self.noise)) / self.noise.sqrt()

    def _moments_given(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, variance and skewness of the noise given `h`, in units of its standard deviation."""
        if self.has_one_bound:
            margin = (h - self._bound).mul_(self._margin)
            hazard = normal_hazard(margin)
            excess = margin + hazard
            variance = 1 - hazard * excess
            third = hazard * (excess * (excess + hazard) - 1)
            skewness = third / (variance * variance.sqrt())
            far = margin < -FAR[margin.dtype]  # exponential there, where differences cancel
            if bool(far.any()):
                variance = torch.where(far, margin.square().reciprocal(), variance)
                skewness = torch.where(far, 2.0, skewness)
            sign = self._margin.sign()
            return sign * hazard, variance, sign * skewness
        bounds = self._standard(h, self.noise.sqrt())
        log_probability, mean, variance = interval_moments(*bounds)
        pulls = [
            torch.where(bound.isfinite(), bound.square() * torch.exp(log_normal_density(bound) - log_probability), 0.0)
            for bound in bounds
        ]
        third = 2 * mean + pulls[0] - pulls[1] - 3 * mean * variance - mean.pow(3)
        return mean, variance, (third / variance.pow(1.5)).nan_to_num(0.0).clamp(-2, 2)  # cancels in narrow intervals


def standard_normal(shape: Sequence[int], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal draws of a tensor's dtype and device."""
    return torch.randn(shape, dtype=like.dtype, device=like.device, generator=generator)


def open_uniform(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Uniform draws in the open interval (0, 1), of a tensor's shape; zero counts as half the smallest other draw."""
    uniform = torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator)
    return uniform.clamp_(min=0.25 * torch.finfo(like.dtype).eps)
