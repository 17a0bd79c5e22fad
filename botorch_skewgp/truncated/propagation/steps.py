r"""Steps of expectation propagation towards its fixed point, extrapolated where they are near ([Walker2011anderson]_).

.. [Walker2011anderson] H. F. Walker, P. Ni. Anderson acceleration for fixed-point iterations. SIAM Journal on Numerical
   Analysis 49, 2011.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import Sites
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
        if self._may_slip or self._failures < SETTINGS.max_failures:
            self._sites, self._changes = [*past, x][-self._memory :], [*changes, change][-self._memory :]
        extrapolates = residual <= (SETTINGS.near if past else -1.0)
        plain = x + change if bool(extrapolates.all()) else x + self._next_step(residual).unsqueeze(-1) * change
        self._last, self._was_extrapolated = residual, extrapolates
        if not bool(extrapolates.any()):
            return Sites(*plain)
        ahead = x + change - _overshoot(x, change, torch.stack(past), torch.stack(changes), variance)
        if not math.isfinite(float(ahead.sum())):
            return Sites(*plain)
        usable = extrapolates.unsqueeze(-1) if self._may_slip else extrapolates.unsqueeze(-1) & (ahead[0] >= 0)
        return Sites(*torch.where(usable, ahead, plain))

    def _next_step(self, residual: Tensor) -> Tensor:
        shorter = (SETTINGS.shorter * self._step).clamp(min=SETTINGS.shortest)
        longer = (SETTINGS.longer * self._step).clamp(max=1.0)
        self._step = torch.where((residual > self._last) & ~self._was_extrapolated, shorter, longer)
        return self._step


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
