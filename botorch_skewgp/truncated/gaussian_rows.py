r"""Rows that leave little room and act on the others like a number with Gaussian noise.

An interval far narrower than its noise is a number; a row far in a tail of the prior is pressed against its bound and
acts like one. A trajectory needs many reflections for such a row: its standard deviation over the room that is left.
But its message to the others is nearly Gaussian, the site of expectation propagation. Such rows are replaced by their
sites, and drawn exactly given all others at the end.

The error is measured by the third and fourth cumulants of that message under the tilted distribution (the exact row and
the sites of the others), in units of its standard deviation. Mean and variance agree; by Edgeworth's expansion a cdf is
off by less than a tenth of the skewness plus a tenth of the excess kurtosis.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import PriorGivenSites, Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

MIN_ROOM = 0.02  # standard deviation of a row between its bounds over that without them, below which it is replaced
MAX_SKEWNESS = 0.01  # and excess kurtosis
SOME_ROOM = 0.1  # below which a row is replaced if its message is Gaussian to NO_SKEWNESS
NO_SKEWNESS = 1e-4
SWEEPS = 3


def gaussian_rows(approximation: ExpectationPropagation) -> Tensor:
    r"""A mask of the rows that leave little room and act like a number with Gaussian noise.

    Args:
        approximation: The expectation propagation fixed point.

    Returns:
        A boolean tensor of length `m`, true for a row that does so in the whole batch. All false where rows stand for
        several, or answers may be slips.
    """
    distribution = approximation.distribution
    if distribution.count is not None or distribution.heights is not None:
        return torch.zeros(distribution.num_rows, dtype=torch.bool, device=distribution.mean.device)
    variance, location = approximation.cavity_variance, approximation.cavity_mean
    proper = (variance + distribution.noise > 0) & location.isfinite() & (approximation.site_precision > 0)
    variance = torch.where(proper, variance, torch.ones_like(variance))
    location = torch.where(proper, location, torch.zeros_like(location))
    scale, _, left = distribution.factor.moments(location, variance)
    replaced = proper & (left < SOME_ROOM**2)
    if bool(replaced.any()):
        own = distribution.noisy_prior.own_variances
        # zero, up to rounding, for a row that is independent of the others
        shared = (variance + distribution.noise - own).clamp(min=0)
        share = shared / scale  # of the standardised row
        tilted = shared - share.square() * (1 - left)
        third, fourth = distribution.factor.cumulants(location, variance)
        most = torch.where(left < MIN_ROOM**2, MAX_SKEWNESS, NO_SKEWNESS)
        small = (third * share.pow(3)).abs() <= most * tilted.pow(1.5)
        small = small & ((fourth * share.pow(4)).abs() <= most * tilted.square())
        replaced = replaced & small & (own > 0)
    return replaced.flatten(0, -2).all(0) if replaced.dim() > 1 else replaced


class SiteConditioned:
    r"""A truncated normal without some of its rows, whose sites take their place.

    Args:
        distribution: The truncated normal, in float64.
        approximation: Its expectation propagation fixed point.
        which: The rows to replace, a boolean tensor of length `m`; with noise if the covariance is a low-rank root.

    Attributes:
        given: The prior of all rows given the sites.
        rest: The truncated normal of the other rows given the sites.
    """

    def __init__(self, distribution: TruncatedNormal, approximation: ExpectationPropagation, which: Tensor) -> None:
        self.distribution, self.which = distribution, which
        sites = Sites(*(entry[..., which] for entry in approximation.sites))
        self.given = PriorGivenSites(distribution.prior, which, sites, distribution.mean)
        self.rest = replace(distribution, mean=self.given.mean, prior=self.given.prior).select(~which)

    def latent_given_rest(self, rest: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw latent coordinates of `given` given the other rows, `batch_shape x k x (m - s)`."""
        return self.rest.noisy_prior.draw_latent(rest - self.rest.mean.unsqueeze(-2), generator)

    def complete(self, rest: Tensor, latent: Tensor | None, generator: torch.Generator | None) -> Tensor:
        r"""Draw the replaced rows given the others.

        Args:
            rest: Draws of the other rows, `batch_shape x k x (m - s)`.
            latent: Latent coordinates of `rest` at them, for a low-rank root.
            generator: The source of randomness.

        Returns:
            All rows, `batch_shape x k x m`.
        """
        which, distribution = self.which, self.distribution
        factor = distribution.factor_of_draws.map(lambda values: values[..., which])
        rows = rest.new_empty(*rest.shape[:-1], len(which))
        rows[..., ~which] = rest
        if latent is None:
            rows[..., which] = factor.clamp(self.given.mean[..., which].unsqueeze(-2))
            self._sweep(rows, generator)
            return rows
        h = (self.given.mean.unsqueeze(-2) + self.given.prior.times(latent))[..., which]
        scale = factor.noise.sqrt()
        rows[..., which] = factor.draw(h, scale, open_uniform(h, generator))
        return rows

    def _sweep(self, rows: Tensor, generator: torch.Generator | None) -> None:
        """Gibbs sampling of the replaced rows in place; given the others, they are nearly independent."""
        distribution = self.distribution
        precision = torch.cholesky_inverse(distribution.gamma_cholesky)
        centred = rows - distribution.mean.unsqueeze(-2)
        for _ in range(SWEEPS):
            for i in self.which.nonzero().squeeze(-1).tolist():
                row, own = precision[..., i, :].unsqueeze(-1), precision[..., i, i].unsqueeze(-1)
                mean = rows[..., i] - (centred @ row).squeeze(-1) / own
                scale = own.rsqrt()
                factor = distribution.factor.map(lambda values: values[..., i, None])  # noqa: B023
                rows[..., i] = factor.draw(mean, scale, open_uniform(mean, generator))
                centred[..., i] = rows[..., i] - distribution.mean[..., i].unsqueeze(-1)
