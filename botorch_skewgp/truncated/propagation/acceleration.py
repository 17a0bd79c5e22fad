r"""Acceleration of expectation propagation towards its fixed point, which stays the same.

A sweep factors a matrix of all rows, or of all latent coordinates. The covariance of the last factorisation nearly
determines what a change of sites does to the marginals: with many rows several sweeps with such marginals cost less
than an exact one. Near the fixed point, where sweeps act linearly, the last two are extrapolated
([Walker2011anderson]_).

.. [Walker2011anderson] H. F. Walker, P. Ni. Anderson acceleration for fixed-point iterations. SIAM Journal on Numerical
   Analysis 49, 2011.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import Factor, Sites
from botorch_skewgp.truncated.priors.base import Map
from botorch_skewgp.truncated.propagation.sites import match_moments
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

SHARES = (-10.0, 0.5)  # of the last sites in an extrapolated step
# Factors of a step towards the next sites, which is at most 1, where the residual has grown and where it has not.
SHORTER, LONGER, SHORTEST_STEP = 0.5, 1.2, 0.02
NEAR = 0.1  # residual up to which steps are extrapolated
MOST_FAILURES = 2  # of either kind of step
# Where answers may be slips: how many past sites an extrapolation is of, the residual up to which there are any, the
# growth of the residual over its least value at which they are forgotten, and the ridge of their least squares.
MEMORY_OF_SLIPS, NEAR_OF_SLIPS, GROWTH_OF_SLIPS, RIDGE = 8, 0.3, 5.0, 1e-10
MANY_ROWS = 150  # from which on a factorisation costs more than sweeps with approximate marginals
LEAST_PART = 0.1  # of a precision that a change of sites may leave, for its effect to be foreseen


class Acceleration:
    """Steps ahead of the next sites, for each distribution of the batch by itself.

    Extrapolation ends when the residual has grown after it `MOST_FAILURES` times, and so do sweeps with approximate
    marginals.

    Args:
        distribution: The truncated normal.
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        self._distribution = distribution
        self.taken = torch.zeros_like(distribution.mean[..., :1], dtype=torch.bool)
        self._was_extrapolated, self._failures = self.taken, self.taken.long()
        self._left_to_look_ahead = MOST_FAILURES if distribution.num_rows >= MANY_ROWS else 0
        self._was_foreseen = False
        self._last: tuple[Tensor, Tensor] | None = None
        self._past: list[tuple[Tensor, Tensor]] = []
        self._least = torch.full_like(distribution.mean[..., :1], torch.inf)

    def __call__(
        self, factor: Factor, sites: Sites, target: Sites, residual: Tensor, grew: Tensor, is_full: Tensor
    ) -> Sites:
        r"""The sites to go to.

        Args:
            factor: The marginals at the present sites.
            sites: The present sites.
            target: The next sites, which match moments.
            residual: The distance to these, `batch_shape x 1`.
            grew: Whether the residual has just grown, `batch_shape x 1`.
            is_full: Whether steps are not shortened, `batch_shape x 1`.
        """
        if self._distribution.heights is not None:
            return self._extrapolated_far(factor, sites, target, residual)
        failed = grew & self.taken
        self._failures = self._failures + (failed & self._was_extrapolated)
        self._left_to_look_ahead -= bool((failed & ~self._was_extrapolated).any())
        self.taken = ~grew & is_full
        looks_ahead = self._left_to_look_ahead > 0 and bool(self.taken.any())
        responses = factor.responses() if looks_ahead else None
        if (responses is not None) != self._was_foreseen:
            self._was_foreseen, self._last = responses is not None, None
        ahead = target if responses is None else self._foreseen(factor, sites, target, *responses)
        extrapolates = self.taken & (residual <= NEAR) & (self._failures < MOST_FAILURES)
        ahead, self._was_extrapolated = self._extrapolated(factor, sites, ahead, extrapolates)
        if responses is None:
            self.taken = self._was_extrapolated
        usable = self.taken & ahead.precision.isfinite() & ahead.shift.isfinite() & (ahead.precision >= 0)
        return Sites(*(torch.where(usable, new, plain) for new, plain in zip(ahead, target, strict=True)))

    def _foreseen(
        self, factor: Factor, sites: Sites, target: Sites, times_covariance: Map, times_squares: Map
    ) -> Sites:
        r"""The sites after further sweeps, with marginals from the present covariance `V`.

        A change `d` of precisions makes the covariance `V - V (diag(1 / d) + V)^-1 V`; its diagonal is approximated by
        inverting the diagonal alone, which is exact where one site changes. A change `s` of shifts makes the mean
        `E h + V p` with `p = s - d * (E h + V p)`, for which every sweep takes one step.
        """
        moments = factor.moments
        ahead, mean, pull = target, moments.mean, torch.zeros_like(moments.mean)
        for _ in range(factor.num_foreseen):
            change, shift = (self._distribution.times_count(new - old) for new, old in zip(ahead, sites, strict=True))
            spread = (1 + change * moments.variance).clamp(min=LEAST_PART)
            pull = pull + (shift - change * mean - pull) / spread
            mean = moments.mean + times_covariance(pull)
            variance = moments.variance - times_squares(change / spread)
            left = 1 - ahead.precision * variance
            if not bool(((variance > 0) & (left > 0)).all()):
                break
            ahead = match_moments(self._distribution, (mean - ahead.shift * variance) / left, variance / left)
        return ahead

    def _extrapolated(self, factor: Factor, sites: Sites, target: Sites, wanted: Tensor) -> tuple[Sites, Tensor]:
        """The affine combination of the last two sweeps with the least residual; and where it was taken, `batch x 1`.

        The residual is in units of the rows' marginals.
        """
        x = torch.stack(sites)
        change = torch.stack(target) - x
        last, self._last = self._last, (x, change)
        if last is None or not bool(wanted.any()):
            return target, torch.zeros_like(wanted)
        d_x, d_change = x - last[0], change - last[1]
        variance = factor.moments.variance.clamp(min=0)
        weighted = torch.stack([variance.square(), variance]) * d_change
        share = (weighted * change).sum((0, -1)) / (weighted * d_change).sum((0, -1))
        share = share.nan_to_num(0.0).clamp(*SHARES).unsqueeze(-1)
        return Sites(*torch.where(wanted, x + change - share * (d_x + d_change), torch.stack(target))), wanted

    def _extrapolated_far(self, factor: Factor, sites: Sites, target: Sites, residual: Tensor) -> Sites:
        r"""The affine combination of up to `MEMORY_OF_SLIPS` sweeps with the least residual.

        Sweeps over answers that may be slips circle about the fixed point, in several directions at once.
        """
        x = torch.stack(sites)
        change = torch.stack(target) - x
        if bool((residual > GROWTH_OF_SLIPS * self._least).any()):
            self._past, self._least = [], torch.full_like(residual, torch.inf)
        self._least = torch.minimum(self._least, residual)
        past, self._past = self._past, [*self._past, (x, change)][-MEMORY_OF_SLIPS:]
        self.taken = (residual <= NEAR_OF_SLIPS) & bool(past)
        if not bool(self.taken.any()):
            return target
        variance = factor.moments.variance.clamp(min=0)
        weight = torch.stack([variance, variance.sqrt()])
        d_x = torch.stack([x - old for old, _ in past], -1)  # 2 x batch x m x k
        d_change = torch.stack([change - old for _, old in past], -1)
        weighted = (weight.unsqueeze(-1) * d_change).movedim(0, -3).flatten(-3, -2)  # batch x 2m x k
        aim = (weight * change).movedim(0, -2).flatten(-2)
        scale = weighted.norm(dim=-2, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
        weighted = weighted / scale
        gram = weighted.mT @ weighted + RIDGE * torch.eye(len(past), dtype=x.dtype, device=x.device)
        share = torch.linalg.solve(gram, (weighted.mT @ aim.unsqueeze(-1))) / scale.mT
        step = ((d_x + d_change) @ share).squeeze(-1)
        ahead = x + change - step
        usable = self.taken & ahead.isfinite().all(0)
        return Sites(*torch.where(usable, ahead, torch.stack(target)))
