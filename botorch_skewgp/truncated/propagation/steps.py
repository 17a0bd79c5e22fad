r"""Sites that match moments, and steps to their fixed point, extrapolated where they are near ([Walker2011anderson]_).

The sites of all rows are one tensor `x`, `2 x m`: precisions, and linear terms.

.. [Walker2011anderson] Walker, Ni. Anderson acceleration for fixed-point iterations. 2011.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import Moments, SiteProduct, Sites
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
    # sweeps without progress after which the run ends. Censored numbers with a skew prior converge after long stretches
    patience: int = 300
    # likewise where answers may be slips, and there may be no fixed point: of 81 such problems 20 leave 14 at that, 60
    # leave 8, 300 two, but take 1,500 sweeps where there is none
    patience_of_slips: int = 60
    # without negative precisions: steps, the part of the residual that counts as falling, and sweeps that may pass
    # without
    longest_without: float = 0.5
    shortest_without: float = 0.1
    shorter_without: float = 0.7
    fell: float = 0.8
    patience_without: int = 10


SETTINGS = StepSettings()


def multiply_sites(distribution: TruncatedNormal, x: Tensor) -> SiteProduct | None:
    """The product of the prior and sites; `None` where rounding leaves no positive definite matrix."""
    sites = Sites(*x.unbind())
    total = sites if distribution.num_factors is None else Sites(*(x * distribution.num_factors).unbind())
    return distribution.prior.given(distribution.mean, sites, total)


def match_moments(distribution: TruncatedNormal, mean: Tensor, variance: Tensor, non_negative: bool = False) -> Tensor:
    """The sites that match the tilted distributions' moments; or the means alone, for precisions not to be negative."""
    scale, t_mean, t_variance = distribution.factor.moments(mean, variance)
    lost = 1 - t_variance
    if non_negative or distribution.heights is None:
        lost = lost.clamp(min=0)  # truncation to an interval never widens a normal; rounding only
    left = distribution.noise + variance * (1 - lost if non_negative else t_variance)
    numerators = torch.stack([lost, torch.addcmul(t_mean * scale, mean, lost)])
    if distribution.factor.has_noise:
        return numerators / left
    certain = (variance <= 0) & (distribution.noise <= 0)
    return (numerators / torch.where(left > 0, left, 1.0)).masked_fill(certain, 0.0)


class Sweep(NamedTuple):
    """What a sweep finds.

    Args:
        target: The sites that match moments, `2 x m`.
        change: What they differ by from the present ones.
        weight: What makes changes of precisions and shifts those of the rows' marginals, in units of these.
        residual: The largest change of a site in units of its row's marginal, times the row's count.
    """

    target: Tensor
    change: Tensor
    weight: Tensor
    residual: float


def next_sites(distribution: TruncatedNormal, moments: Moments, x: Tensor, non_negative: bool = False) -> Sweep:
    """The sites that match moments. A row without a proper cavity keeps its site, or half of it beside slips."""
    mean, variance = moments.cavity
    if variance.numel() == 0:
        return Sweep(x, x, x, 0.0)
    weight = torch.stack([moments.variance, moments.variance.sqrt()])
    target = match_moments(distribution, mean, variance, non_negative)
    change = target - x
    read = torch.stack([_residual(distribution, moments, change, weight), variance.amin()])
    residual, least = read.tolist()
    if math.isfinite(residual) and least > 0:
        return Sweep(target, change, weight, residual)
    proper = (variance >= 0) & mean.isfinite() & variance.isfinite()
    target = match_moments(
        distribution,
        torch.where(proper, mean, distribution.mean),
        torch.where(proper, variance, 1.0),
        non_negative,
    )
    proper = proper & target.isfinite().all(0)
    target = torch.where(proper, target, x if distribution.heights is None else 0.5 * x)
    change = target - x
    weight = torch.stack([moments.variance, moments.variance.clamp(min=0).sqrt()])
    vanishes = (moments.variance <= 0) & (distribution.prior.variances > 0)  # no digits are left
    if distribution.informative is not None:
        vanishes = vanishes & (distribution.informative > 0)
    residual = math.inf if bool(vanishes.any()) else float(_residual(distribution, moments, change, weight))
    return Sweep(target, change, weight, residual)


def _residual(distribution: TruncatedNormal, moments: Moments, change: Tensor, weight: Tensor) -> Tensor:
    precision, shift = change.unbind()
    # the shift's change at the marginal's mean, where the site acts
    shift = torch.addcmul(shift, precision, moments.mean, value=-1)
    change = distribution.times_factors(torch.stack([precision, shift]) * weight).abs()
    return change.amax() if distribution.informative is None else (change * distribution.informative).amax()


class Steps:
    """Steps towards the next sites: part of the way where the residual grows, and extrapolated near the fixed point."""

    non_negative = False

    def __init__(self, may_slip: bool) -> None:
        self.patience = SETTINGS.patience_of_slips if may_slip else SETTINGS.patience
        self._max_failures = math.inf if may_slip else SETTINGS.max_failures
        self._memory = SETTINGS.memory_of_slips if may_slip else SETTINGS.memory
        self._least_precision = -math.inf if may_slip else 0.0
        self._past: list[tuple[Tensor, Tensor]] = []  # the targets of sweeps, and the changes to these
        self._failures = 0
        self._step, self._last, self._min_residual = 1.0, math.inf, math.inf

    def __call__(self, x: Tensor, sweep: Sweep) -> Tensor:
        """The sites to go to."""
        target, change, weight, residual = sweep
        if residual > SETTINGS.growth * self._min_residual:
            self._past, self._min_residual = [], residual
            self._failures += 1
        self._min_residual = min(self._min_residual, residual)
        past, last = self._past, self._last
        if self._failures < self._max_failures:
            self._past = [*past, (target, change)][-self._memory :]
        if past and residual <= SETTINGS.near:
            self._last = math.inf  # an extrapolation may make it grow
            ahead = target - _overshoot(target, change, weight, past)
            return torch.where(ahead[0] >= self._least_precision, ahead, target)
        self._last = residual
        if residual > last:
            self._step = max(SETTINGS.shorter * self._step, SETTINGS.shortest)
        else:
            self._step = min(SETTINGS.longer * self._step, 1.0)
        return target if self._step == 1 else x + self._step * change


class ShortSteps:
    """Short steps, for sites without negative precisions, around which sweeps circle; shorter where they are stuck."""

    non_negative, patience = True, math.inf

    def __init__(self) -> None:
        self._step, self._least, self._sweeps = SETTINGS.longest_without, math.inf, 0

    def __call__(self, x: Tensor, sweep: Sweep) -> Tensor:
        """As `Steps`."""
        fell = sweep.residual < SETTINGS.fell * self._least
        if fell:
            self._step = min(SETTINGS.longer * self._step, SETTINGS.longest_without)
        elif self._sweeps >= SETTINGS.patience_without:
            self._step = max(SETTINGS.shorter_without * self._step, SETTINGS.shortest_without)
        if fell or self._sweeps >= SETTINGS.patience_without:
            self._least, self._sweeps = sweep.residual, 0
        self._sweeps += 1
        return x + self._step * sweep.change


def _overshoot(target: Tensor, change: Tensor, weight: Tensor, past: list[tuple[Tensor, Tensor]]) -> Tensor:
    """What the combination of `k` sweeps with the least residual takes from the next sites, `2 x m`."""
    d_target, d_change = (
        (present - torch.stack(before)).flatten(1)
        for present, before in zip((target, change), zip(*past, strict=True), strict=True)
    )
    weight = weight.flatten()
    weighted = weight * d_change  # k x 2m
    gram = weighted @ weighted.mT
    gram.diagonal().mul_(1 + SETTINGS.ridge).add_(torch.finfo(gram.dtype).tiny)
    share = torch.linalg.solve(gram, weighted @ (weight * change.flatten()))
    return (share @ d_target).view_as(target)
