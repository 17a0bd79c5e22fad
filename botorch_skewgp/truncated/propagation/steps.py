r"""Sites that match moments, and steps to their fixed point, extrapolated where they are near ([Walker2011anderson]_).

.. [Walker2011anderson] Walker, Ni. Anderson acceleration for fixed-point iterations. 2011.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import SiteProduct, Sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class StepSettings(NamedTuple):
    """How long steps are; what other values cost in sweeps is said of fits of 20 to 1,000 rows."""

    shorter: float = 0.5  # factor of a step, the share of the way to the next sites, where the residual has grown
    longer: float = 1.2  # factor of a step where it has not, up to the whole way
    shortest: float = 0.02
    near: float = 0.3  # residual up to which sweeps act linearly, and are extrapolated; 0.1 and 1 take as many
    growth: float = 5.0  # factor of the least residual, beyond which past sweeps are forgotten
    # number of times that they are, after which no more sweeps are extrapolated; any number where answers may be
    # slips. Of a thousand equal rows the sweeps circle for ever without a limit
    max_failures: int = 2
    # number of past sweeps; one takes a tenth more, eight take as many. None takes a quarter more, and two and a half
    # times as many where rows have little noise. Those of a fit's evaluation before would save an eighth
    memory: int = 2
    memory_of_slips: int = 8  # likewise where answers may be slips: sweeps circle there, in several directions at once
    ridge: float = 1e-10  # of the least squares, relative to its diagonal


SETTINGS = StepSettings()


def multiply_sites(distribution: TruncatedNormal, sites: Sites) -> SiteProduct | None:
    """The product of the prior and sites; `None` where rounding leaves no positive definite matrix."""
    total = Sites(*(distribution.times_factors(entry) for entry in sites))
    return distribution.prior.given(distribution.mean, sites, total)


def match_moments(distribution: TruncatedNormal, mean: Tensor, variance: Tensor, non_negative: bool = False) -> Sites:
    """The sites that match the tilted distributions' moments; or the means alone, for precisions not to be negative."""
    scale, t_mean, t_variance = distribution.factor.moments(mean, variance)
    lost = 1 - t_variance
    if non_negative or distribution.heights is None:
        lost = lost.clamp(min=0)  # truncation to an interval never widens a normal; rounding only
    left = distribution.noise + variance * (1 - lost if non_negative else t_variance)
    if distribution.factor.has_noise:
        return Sites(lost / left, (t_mean * scale + mean * lost) / left)
    left = torch.where(left > 0, left, 1.0)
    precision, shift = lost / left, (t_mean * scale + mean * lost) / left
    certain = (variance <= 0) & (distribution.noise <= 0)
    return Sites(precision.masked_fill(certain, 0.0), shift.masked_fill(certain, 0.0))


def next_sites(distribution: TruncatedNormal, product: SiteProduct, sites: Sites, non_negative: bool = False) -> Sites:
    """The sites that match moments; a row without a proper cavity keeps its site, or half of it beside slips."""
    mean, variance = product.moments.cavity_mean, product.moments.cavity_variance
    if variance.numel() == 0:
        return sites
    target = match_moments(distribution, mean, variance, non_negative)
    if float(variance.amin()) >= 0 and math.isfinite(float((target.precision + target.shift).sum())):
        return target
    proper = (variance >= 0) & mean.isfinite() & variance.isfinite()
    target = match_moments(
        distribution,
        torch.where(proper, mean, distribution.mean),
        torch.where(proper, variance, 1.0),
        non_negative,
    )
    proper = proper & target.precision.isfinite() & target.shift.isfinite()
    share = 1.0 if distribution.heights is None else 0.5
    return Sites(*(torch.where(proper, new, share * old) for new, old in zip(target, sites, strict=True)))


class Steps:
    """Steps towards the next sites: part of the way where the residual grows, and extrapolated near the fixed point."""

    def __init__(self, distribution: TruncatedNormal) -> None:
        self._may_slip = distribution.heights is not None
        self._memory = SETTINGS.memory_of_slips if self._may_slip else SETTINGS.memory
        self._sites: list[Tensor] = []
        self._changes: list[Tensor] = []
        self._failures = 0
        self._step = distribution.mean.new_ones(distribution.batch_shape)
        self._last = self._min_residual = torch.full_like(self._step, torch.inf)
        self._was_extrapolated = torch.zeros_like(self._step, dtype=torch.bool)

    def __call__(self, sites: Sites, target: Sites, residual: Tensor, variance: Tensor) -> Sites:
        """The sites to go to, given those that match moments at a distance `residual`, and the marginals' variances."""
        x = torch.stack(sites)
        change = torch.stack(target) - x
        if bool((residual > SETTINGS.growth * self._min_residual).any()):
            self._sites, self._changes, self._min_residual = [], [], residual
            self._failures += 1
        self._min_residual = torch.minimum(self._min_residual, residual)
        past, changes = self._sites, self._changes
        self._remember(x, change)
        extrapolates = residual <= (SETTINGS.near if past else -1.0)
        plain = x + change if bool(extrapolates.all()) else self._damped(x, change, residual)
        self._last, self._was_extrapolated = residual, extrapolates
        if not bool(extrapolates.any()):
            return Sites(*plain)
        ahead = x + change - _overshoot(x, change, torch.stack(past), torch.stack(changes), variance)
        if not math.isfinite(float(ahead.sum())):
            return Sites(*plain)
        usable = extrapolates.unsqueeze(-1)
        if not self._may_slip:
            usable = usable & (ahead[0] >= 0)
        return Sites(*torch.where(usable, ahead, plain))

    def _remember(self, x: Tensor, change: Tensor) -> None:
        """Keep a sweep, and forget the oldest; none any more after too many failures."""
        if self._may_slip or self._failures < SETTINGS.max_failures:
            self._sites = [*self._sites, x][-self._memory :]
            self._changes = [*self._changes, change][-self._memory :]

    def _damped(self, x: Tensor, change: Tensor, residual: Tensor) -> Tensor:
        """Part of the way to the next sites, less where the residual has grown."""
        shorter = (SETTINGS.shorter * self._step).clamp(min=SETTINGS.shortest)
        longer = (SETTINGS.longer * self._step).clamp(max=1.0)
        has_grown = (residual > self._last) & ~self._was_extrapolated
        self._step = torch.where(has_grown, shorter, longer)
        return x + self._step.unsqueeze(-1) * change


def _overshoot(x: Tensor, change: Tensor, past: Tensor, changes: Tensor, variance: Tensor) -> Tensor:
    """What the combination of `k` sweeps with the least residual takes from the next sites, `2 x batch_shape x m`."""
    d_x, d_change = x - past, change - changes
    deviation = variance.clamp(min=0).sqrt()
    weight = torch.stack([variance, deviation])
    weighted = (weight * d_change).movedim((0, 1), (-3, -2)).flatten(-2)  # batch x k x 2m
    aim = (weight * change).movedim(0, -2).flatten(-2).unsqueeze(-1)
    gram = weighted @ weighted.mT
    diagonal = gram.diagonal(dim1=-2, dim2=-1)
    diagonal.mul_(1 + SETTINGS.ridge).add_(torch.finfo(x.dtype).tiny)
    share = torch.linalg.solve(gram, weighted @ aim)  # batch x k x 1
    return ((d_x + d_change).movedim(0, -2) * share).sum(-2)
