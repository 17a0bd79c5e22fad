r"""Rows that leave little room and act on the others like a number with Gaussian noise.

An interval far narrower than its noise is a number; a row that is almost impossible under the prior, far in a tail,
is pressed against its bound and acts like one. A trajectory needs as many reflections for such a row as its standard
deviation is wider than the room that is left. What the row tells the others is nearly Gaussian, however: its site of
expectation propagation. Such rows are replaced by their sites, and drawn exactly given all others at the end.

How nearly is measured by the third and fourth cumulants of what the row says of the others, under the exact row and
the sites of the others (the tilted distribution), in units of its standard deviation. Mean and variance agree; by
Edgeworth's expansion a cdf is off by less than a tenth of the skewness plus a tenth of the excess kurtosis.
"""

from __future__ import annotations

import torch
from linear_operator.operators import RootLinearOperator
from torch import Tensor

from botorch_skewgp.truncated.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.factorization import (
    RELATIVE_JITTER,
    cholesky_of_precision,
    cholesky_with_noise,
)
from botorch_skewgp.truncated.start import latent_given_rows
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import interval_cumulants, interval_moments, sample_interval, standardise

LEAST_ROOM = 0.02  # standard deviation of a row between its bounds over that without them, below which it is replaced
MOST_SKEWNESS = 0.01  # and excess kurtosis
SOME_ROOM = 0.1  # below which a row is replaced whose message is Gaussian to 1e-4
NO_SKEWNESS = 1e-4
SWEEPS = 3


def gaussian_rows(approximation: ExpectationPropagation) -> Tensor:
    r"""Which rows leave little room and act like a number with Gaussian noise (see this module's first lines).

    Args:
        approximation: The expectation propagation fixed point.

    Returns:
        A boolean tensor of length `m`; a row counts if it does so in the whole batch. None do where rows stand for
        several.
    """
    distribution = approximation.distribution
    if distribution.count is not None:
        return torch.zeros(distribution.num_rows, dtype=torch.bool, device=distribution.mean.device)
    variance = approximation.cavity_variance + distribution.noise
    proper = (variance > 0) & approximation.cavity_mean.isfinite() & (approximation.site_precision > 0)
    scale = torch.where(proper, variance, torch.ones_like(variance)).sqrt()
    location = torch.where(proper, approximation.cavity_mean, torch.zeros_like(scale))
    bounds = tuple(standardise(bound, location, scale) for bound in (distribution.lower, distribution.upper))
    _, _, left = interval_moments(*bounds)
    replaced = proper & (left < SOME_ROOM**2)
    if bool(replaced.any()):
        own = _own_variance(distribution)
        shared = (variance - own).clamp(min=0)  # zero, up to rounding, for a row that says nothing of the others
        share = shared / scale  # of the standardised row
        tilted = shared - share.square() * (1 - left)
        third, fourth = interval_cumulants(*bounds)
        most = torch.where(left < LEAST_ROOM**2, MOST_SKEWNESS, NO_SKEWNESS)
        small = (third * share.pow(3)).abs() <= most * tilted.pow(1.5)
        small = small & ((fourth * share.pow(4)).abs() <= most * tilted.square())
        replaced = replaced & small & (own > 0)
    return replaced.flatten(0, -2).all(0) if replaced.dim() > 1 else replaced


def _own_variance(distribution: TruncatedNormal) -> Tensor:
    """The variance of every row given all others, before truncation; of a low-rank root only the noise in it."""
    if distribution.row_root is not None:
        return distribution.noise
    eye = torch.eye(distribution.num_rows, dtype=distribution.mean.dtype, device=distribution.mean.device)
    inverse = torch.linalg.solve_triangular(distribution.gamma_cholesky, eye, upper=False)
    return 1 / inverse.square().sum(-2)


class SiteConditioned:
    r"""A truncated normal without some of its rows, whose sites take their place.

    Args:
        distribution: The truncated normal, in float64.
        approximation: Its expectation propagation fixed point.
        which: The rows to replace, a boolean tensor of length `m`; with noise if the covariance is a low-rank root.

    Attributes:
        rest: The truncated normal of the other rows given the sites.
    """

    def __init__(self, distribution: TruncatedNormal, approximation: ExpectationPropagation, which: Tensor) -> None:
        self.distribution, self.which = distribution, which
        precision, shift = approximation.site_precision[..., which], approximation.site_shift[..., which]
        root, mean = distribution.root, distribution.mean
        offset = (shift / precision - mean[..., which]).unsqueeze(-1)
        if root is not None:
            self._factor = cholesky_of_precision(root[..., which, :], precision)
            weighted = root[..., which, :].mT @ (precision.unsqueeze(-1) * offset)
            self._centre = torch.cholesky_solve(weighted, self._factor).mT
            self._mean = mean + (root @ self._centre.mT).squeeze(-1)
            self._root = torch.linalg.solve_triangular(self._factor, root.mT, upper=False).mT
            covariance: Tensor | RootLinearOperator = RootLinearOperator(self._root[..., ~which, :])
        else:
            C = distribution.dense_covariance
            L = cholesky_with_noise(C[..., which, :][..., which], 1 / precision)
            half = torch.linalg.solve_triangular(L, C[..., which, :], upper=False)
            self._mean = mean + (half.mT @ torch.linalg.solve_triangular(L, offset, upper=False)).squeeze(-1)
            self._covariance = C - half.mT @ half
            covariance = self._covariance[..., ~which, :][..., ~which]
        self.rest = TruncatedNormal(
            mean=self._mean[..., ~which],
            covariance=covariance,
            lower=distribution.lower[..., ~which],
            upper=distribution.upper[..., ~which],
            noise=distribution.noise[..., ~which],
            has_jitter=distribution.has_jitter,
        )

    def latent(self, rest: Tensor) -> Tensor:
        """Latent coordinates of the distribution at those of `rest`, `batch_shape x k x r`; for a low-rank root."""
        return self._centre + torch.linalg.solve_triangular(self._factor.mT, rest.mT, upper=True).mT

    def latent_of_rest(self, latent: Tensor) -> Tensor:
        """The inverse of `latent`."""
        return (self._factor.mT @ (latent - self._centre).mT).mT

    def latent_given_rest(self, rest: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw latent coordinates of `rest` given its rows, `batch_shape x k x (m - s)`; for a low-rank root."""
        least = RELATIVE_JITTER[torch.float64] * self.rest.gamma_diagonal
        root, noise = self._root[..., ~self.which, :], torch.maximum(self.rest.noise, least)
        return latent_given_rows(root, noise, rest - self.rest.mean.unsqueeze(-2), generator)

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
        lower, upper = (bound[..., which].unsqueeze(-2) for bound in (distribution.lower, distribution.upper))
        rows = rest.new_empty(*rest.shape[:-1], len(which))
        rows[..., ~which] = rest
        if latent is None:
            rows[..., which] = torch.maximum(torch.minimum(self._mean[..., which].unsqueeze(-2), upper), lower)
            self._sweep(rows, generator)
            return rows
        h = self._mean[..., which].unsqueeze(-2) + latent @ self._root[..., which, :].mT
        scale = distribution.noise[..., which].sqrt().unsqueeze(-2)
        uniform = torch.rand(h.shape, dtype=h.dtype, device=h.device, generator=generator)
        drawn = h + scale * sample_interval((lower - h) / scale, (upper - h) / scale, uniform)
        rows[..., which] = torch.maximum(torch.minimum(drawn, upper), lower)  # rounding only
        return rows

    def _sweep(self, rows: Tensor, generator: torch.Generator | None) -> None:
        """Gibbs sampling of the replaced rows in place; the others given, they hardly depend on each other."""
        distribution = self.distribution
        precision = torch.cholesky_inverse(distribution.gamma_cholesky)
        centred = rows - distribution.mean.unsqueeze(-2)
        for _ in range(SWEEPS):
            for i in self.which.nonzero().squeeze(-1).tolist():
                row, own = precision[..., i, :].unsqueeze(-1), precision[..., i, i].unsqueeze(-1)
                mean = rows[..., i] - (centred @ row).squeeze(-1) / own
                scale = own.rsqrt()
                lower, upper = distribution.lower[..., i].unsqueeze(-1), distribution.upper[..., i].unsqueeze(-1)
                uniform = torch.rand(mean.shape, dtype=mean.dtype, device=mean.device, generator=generator)
                drawn = mean + scale * sample_interval((lower - mean) / scale, (upper - mean) / scale, uniform)
                rows[..., i] = torch.maximum(torch.minimum(drawn, upper), lower)  # rounding only
                centred[..., i] = rows[..., i] - distribution.mean[..., i].unsqueeze(-1)
