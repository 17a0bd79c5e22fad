r"""Ways to the fixed point of expectation propagation that take fewer sweeps than going from sites to sites.

A sweep factors a matrix of all rows. What a change of sites does to the marginals is known nearly from the covariance
that the last factorisation leaves: with many rows several sweeps with such marginals cost less than one that is exact.
Where that covariance is not at hand, the last two sweeps are extrapolated ([Walker2011anderson]_). Neither changes the
fixed point.

.. [Walker2011anderson] H. F. Walker, P. Ni. Anderson acceleration for fixed-point iterations. SIAM Journal on Numerical
   Analysis 49, 2011.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.sites import Gaussian, Sites, match_moments
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

SHARES = (-10.0, 0.5)  # of the last sites in an extrapolated step
MOST_FAILURES = 2  # of extrapolated steps
MANY_ROWS = 150  # from which on a factorisation costs more than sweeps with approximate marginals
APPROXIMATE_SWEEPS = 4
LEAST_PART = 0.1  # of a precision that a change of sites may leave, for its effect to be foreseen


class Acceleration:
    """Steps ahead of the next sites, for each distribution of the batch by itself.

    Where the residual has grown after sweeps with approximate marginals, steps are extrapolated; and where it has grown
    after `MOST_FAILURES` of these, no more are taken.

    Args:
        distribution: The truncated normal.
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        self._distribution = distribution
        self.taken = torch.zeros_like(distribution.mean[..., :1], dtype=torch.bool)
        self._failures = self.taken.long()
        self._looks_ahead = distribution.num_rows >= MANY_ROWS
        self._was_foreseen = False
        self._last: tuple[Tensor, Tensor] | None = None

    def __call__(self, gaussian: Gaussian, sites: Sites, target: Sites, grew: Tensor, is_full: Tensor) -> Sites:
        r"""The sites to go to.

        Args:
            gaussian: The marginals at the present sites.
            sites: The present sites.
            target: The next sites, which match moments.
            grew: Whether the residual has just grown, `batch_shape x 1`.
            is_full: Whether steps are not shortened, `batch_shape x 1`.
        """
        failed = grew & self.taken
        if self._was_foreseen:
            self._looks_ahead = self._looks_ahead and not bool(failed.any())
        else:
            self._failures = self._failures + failed
        self.taken = ~grew & is_full & (self._failures < MOST_FAILURES)
        self._was_foreseen = self._looks_ahead and gaussian.inverse is not None and bool(self.taken.any())
        if self._was_foreseen:
            self._last = None
            ahead = self._foreseen(gaussian, sites, target)
        else:
            ahead = self._extrapolated(gaussian, sites, target)
        usable = self.taken & (ahead.precision >= 0) & ahead.precision.isfinite() & ahead.shift.isfinite()
        return Sites(*(torch.where(usable, new, plain) for new, plain in zip(ahead, target, strict=True)))

    def _foreseen(self, gaussian: Gaussian, sites: Sites, target: Sites) -> Sites:
        r"""The sites after further sweeps, with marginals from the present covariance `V`.

        A change `d` of precisions makes the covariance `V - V (diag(1 / d) + V)^-1 V`. Here the off-diagonal part of
        what is inverted is left out, which is exact where one site changes; so that no more than products with `V`
        and with its squares are needed.
        """
        assert gaussian.inverse is not None
        S = sites.precision.sqrt()
        V = gaussian.inverse / (-S.unsqueeze(-1))
        V /= S.unsqueeze(-2)
        V.diagonal(dim1=-2, dim2=-1).copy_(gaussian.variance)
        squares = V.square()
        ahead = target
        for _ in range(APPROXIMATE_SWEEPS):
            change = ahead.precision - sites.precision
            part = change / (1 + change * gaussian.variance).clamp(min=LEAST_PART)
            pull = _times(V, ahead.shift - sites.shift - change * gaussian.mean)
            mean = gaussian.mean + pull - _times(V, part * pull)
            variance = gaussian.variance - _times(squares, part)
            left = 1 - ahead.precision * variance
            if not bool(((variance > 0) & (left > 0)).all()):
                break
            ahead = match_moments(self._distribution, (mean - ahead.shift * variance) / left, variance / left)
        return ahead

    def _extrapolated(self, gaussian: Gaussian, sites: Sites, target: Sites) -> Sites:
        """Of the last two sites and what follows from each, the affine combination whose residual is least.

        The residual is in units of the rows' marginals.
        """
        x = torch.stack(sites)
        change = torch.stack(target) - x
        last, self._last = self._last, (x, change)
        if last is None:
            self.taken = torch.zeros_like(self.taken)
        if last is None or not bool(self.taken.any()):
            return target
        d_x, d_change = x - last[0], change - last[1]
        variance = gaussian.variance.clamp(min=0)
        weighted = torch.stack([variance.square(), variance]) * d_change
        share = (weighted * change).sum((0, -1)) / (weighted * d_change).sum((0, -1))
        share = share.nan_to_num(0.0).clamp(*SHARES).unsqueeze(-1)
        return Sites(*(x + change - share * (d_x + d_change)))


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
