"""Rows that leave little room and act on the others like a number with Gaussian noise, their site.

They are replaced by their sites and drawn exactly given all others at the end. The error is measured by the third and
fourth cumulants of a row's message under the tilted distribution: by Edgeworth's expansion a cdf is off by less than a
tenth of the skewness plus a tenth of the excess kurtosis.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import LowRankPrior, Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import interval_cumulants, standardise

MIN_ROOM = 0.02  # standard deviation of a row between its bounds over that without them, below which it is replaced
MAX_SKEWNESS = 0.01  # and excess kurtosis
SOME_ROOM = 0.1  # below which a row is replaced if its message is Gaussian to NO_SKEWNESS
NO_SKEWNESS = 1e-4


def gaussian_rows(approximation: ExpectationPropagation) -> Tensor:
    """A mask, `m`, of rows that act like numbers at the fixed point; none where rows stand for several or may slip."""
    distribution = approximation.distribution
    if distribution.count is not None or distribution.heights is not None:
        return torch.zeros(distribution.num_rows, dtype=torch.bool, device=distribution.mean.device)
    location, variance = approximation.cavity
    proper = (variance + distribution.noise > 0) & location.isfinite() & (approximation.sites.precision > 0)
    variance = torch.where(proper, variance, 1.0)
    location = torch.where(proper, location, 0.0)
    scale, _, left = distribution.factor.moments(location, variance)
    replaced = proper & (left < SOME_ROOM**2)
    if bool(replaced.any()):
        own = distribution.noisy_prior.own_variances
        # zero, up to rounding, for a row that is independent of the others
        shared = (variance + distribution.noise - own).clamp(min=0)
        share = shared / scale  # of the standardised row
        tilted = shared - share.square() * (1 - left)
        bounds = (standardise(bound, location, scale) for bound in (distribution.lower, distribution.upper))
        third, fourth = interval_cumulants(*bounds)
        most = torch.where(left < MIN_ROOM**2, MAX_SKEWNESS, NO_SKEWNESS)
        small = (third * share.pow(3)).abs() <= most * tilted.pow(1.5)
        small = small & ((fourth * share.pow(4)).abs() <= most * tilted.square())
        replaced = replaced & small & (own > 0)
    return replaced


class SiteConditioned:
    """A truncated normal `given` the sites of some rows, and the `rest` of its rows given them."""

    def __init__(self, distribution: TruncatedNormal, approximation: ExpectationPropagation, which: Tensor) -> None:
        self.distribution, self.which = distribution, which
        sites = Sites(*(torch.where(which, entry, 0.0) for entry in approximation.sites))
        product = distribution.prior.wide.given(distribution.mean, sites, sites)
        assert product is not None
        prior = LowRankPrior(distribution.prior.times(product.latent_root.mT).mT)
        self.given = replace(distribution, mean=product.moments.mean, prior=prior)
        self.rest = self.given.select(~which)

    def complete(self, rest: Tensor, generator: torch.Generator | None) -> Tensor:
        """All rows, `k x m`, with the replaced ones drawn given the others, `k x (m - s)`."""
        which = self.which
        factor = self.distribution.factor.map(lambda values: values[which])
        rows = rest.new_empty(len(rest), len(which))
        rows[:, ~which] = rest
        if self.distribution.prior.is_low_rank:
            latent = self.rest.noisy_prior.draw_latent(rest - self.rest.mean, generator)
            h = self.given.noiseless(latent)[:, which]
            rows[:, which] = factor.draw(h, factor.noise.sqrt(), open_uniform(h, generator))
        else:
            rows[:, which] = factor.clamp(self.given.mean[which])
            self._sweep(rows, generator)
        return rows

    def _sweep(self, rows: Tensor, generator: torch.Generator | None) -> None:
        """Gibbs sampling of the replaced rows in place; given the others, they are nearly independent."""
        distribution = self.distribution
        precision = torch.cholesky_inverse(distribution.gamma_cholesky)
        centred = rows - distribution.mean
        for _ in range(3):
            for i in self.which.nonzero().squeeze(-1).tolist():
                mean, scale = rows[:, i] - centred @ precision[i] / precision[i, i], precision[i, i].rsqrt()
                factor = distribution.factor.map(lambda values: values[i])  # noqa: B023
                rows[:, i] = factor.draw(mean, scale, open_uniform(mean, generator))
                centred[:, i] = rows[:, i] - distribution.mean[i]
