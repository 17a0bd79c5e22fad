r"""Expectation propagation for the truncated normal of the rows.

Every row contributes the factor `P(lower < h_i + v_i <= upper | h_i)`, which is replaced by a Gaussian site `exp(-tau_i
h_i^2 / 2 + nu_i h_i)`. The sites are chosen so that the Gaussian approximation and the approximation with one exact
factor put back (the tilted distribution) have the same mean and variance in every row.

.. [Minka2001] T. Minka. Expectation propagation for approximate Bayesian inference. UAI 2001.
.. [Cunningham2011] Cunningham, Hennig, Lacoste-Julien. arXiv:1111.6832.
.. [Seeger2005] M. Seeger. Expectation propagation for exponential families. Technical report, 2005.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import torch
from linear_operator.utils.errors import NanError
from torch import Tensor

from botorch_skewgp.exceptions import CompetingExplanationsWarning, ConvergenceWarning
from botorch_skewgp.truncated.derivatives import with_slopes
from botorch_skewgp.truncated.priors import SiteProduct, Sites
from botorch_skewgp.truncated.propagation.site_slopes import log_integral_of_site, slopes_of_sites
from botorch_skewgp.truncated.propagation.steps import ShortSteps, Steps, multiply_sites, next_sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

ROUNDING = 1e-6  # residual without progress that counts as rounding, not as failure
LEFT_BY_SLIPS = 1e-4  # residual without negative precisions; what these sites leave out is far more
MAX_SWEEPS = 1000
# Variance of a noiseless row given its answer over that given all others, from which on explanations compete. Of 60
# problems of 5 to 11 duels with slips the 26 without such a row had probabilities of slips within .07 of the truth.
WIDENED = 1.3


@dataclass(frozen=True, eq=False)
class ExpectationPropagation:
    """The fixed point: a Gaussian approximation of `h` given the rows, and the log evidence."""

    distribution: TruncatedNormal
    sites: Sites  # sites at the fixed point; of a row that stands for several, the site of one
    product: SiteProduct  # product of prior and sites
    residual: float  # largest change of a site in units of its row's marginal
    num_iterations: int  # number of sweeps made
    converged: bool  # whether the residual is below the tolerance, or rounding
    non_negative: bool = False  # whether sites were kept from negative precisions, see `expectation_propagation`

    @property
    def mean(self) -> Tensor:
        """The `m` approximate means of `h` given the rows."""
        return self.product.moments.mean

    @property
    def variance(self) -> Tensor:
        """The `m` approximate variances of `h` given the rows."""
        return self.product.moments.variance

    @property
    def cavity(self) -> tuple[Tensor, Tensor]:
        """The `m` means and variances of `h_i` given all other rows."""
        return self.product.moments.cavity

    @cached_property
    def base(self) -> Tensor:
        """Logarithm of the integral of prior times sites."""
        sites, reference = self.product.sites, self.product.moments.reference
        return self._base_at_reference + (sites.shift * reference - 0.5 * sites.precision * reference.square()).sum(-1)

    @cached_property
    def _base_at_reference(self) -> Tensor:
        """`base`, where every site is divided by its value at its reference."""
        product, moments = self.product, self.product.moments
        products = self._reference_shift * (product.prior_mean - moments.reference) + product.offset * moments.deviation
        return 0.5 * products.sum(-1) - product.log_det

    @cached_property
    def _reference_shift(self) -> Tensor:
        """The linear terms of the sites as functions of `h - reference`."""
        reference = self.product.moments.reference
        return torch.where(reference == 0, self.product.sites.shift, 0.0)

    @property
    def mean_slope(self) -> Tensor:
        """The derivative of `base` in the prior mean, `C^-1 (E h - mean)`; `m`."""
        return self._reference_shift - self.product.sites.precision * self.product.moments.deviation

    def warn_of_competition(self) -> None:
        """Warn where a row given its answer has two humps, attentive and slip, which a Gaussian cannot represent."""
        distribution = self.distribution
        if distribution.heights is None or distribution.num_rows == 0:
            return
        with torch.no_grad():
            tilted = distribution.factor.moments(*self.cavity)
            share = self.cavity[1] / tilted.scale.square()  # of the row's variance that is not noise
            widened = 1 + share * (tilted.variance - 1) > WIDENED
        if not (self.non_negative or bool(widened.any())):
            return
        warnings.warn(
            "Answers contradict each other, and for some of them it is open whether these or others are slips"
            + (", so that expectation propagation found no fixed point" if self.non_negative else "")
            + ". Its evidence may be off by half a nat or more, and probabilities of slips by tenths. Use the exact "
            'posterior: leave out approximation="ep", and compute evidence with method="exact".',
            CompetingExplanationsWarning,
            stacklevel=3,
        )

    @property
    def log_normalizer(self) -> Tensor:
        """EP's approximation of `log P(lower < u <= upper)`; differentiable once, with sites and cavities held, in
        which it is stationary at the fixed point [Seeger2005]_.
        """
        distribution, moments = self.distribution, self.product.moments
        nu = torch.where(moments.reference == 0, self.sites.shift, 0.0)
        log_site = log_integral_of_site(self.sites.precision, nu, moments.cavity_deviation, moments.cavity_variance)
        log_factor = distribution.factor.log_probability(*self.cavity)
        value = distribution.times_factors(log_factor - log_site).sum(-1) + self._base_at_reference.detach()
        if not torch.is_grad_enabled():
            return value
        # d/dC of `base` is (g g^T - R) / 2 and d/dmean is g, with R = (C + tau^-1)^-1 and g = C^-1 (E h - mean).
        g = self.mean_slope.detach()
        value = with_slopes(value, [(distribution.mean, lambda: g), *self.product.slopes(g)])
        if not self.non_negative:
            return value
        moved, slopes = slopes_of_sites(distribution, self.product, self.sites)
        return with_slopes(value + moved - moved.detach(), slopes)


def expectation_propagation(
    distribution: TruncatedNormal,
    initial_sites: Sites | None = None,
    tolerance: float = 1e-9,
    non_negative: bool = False,
    warn: bool = True,
) -> ExpectationPropagation:
    """Parallel expectation propagation to its fixed point, up to a `tolerance` in units of a row's marginal; to one
    without negative precisions where answers may be slips and the sweeps circle. It warns by `ConvergenceWarning`
    where it was not reached, and raises `NanError` if the covariance is not finite.
    """
    may_slip = distribution.heights is not None
    with torch.no_grad():
        x, product = _start(distribution, initial_sites)
        sweeps, converged = 0, False
        if not non_negative:
            x, product, residual, sweeps, converged = _sweep(distribution, x, product, tolerance, Steps(may_slip))
            non_negative = not converged and may_slip
        if non_negative:
            x, product = _start(distribution, Sites(x[0].clamp(min=0), x[1]))
            x, product, residual, further, converged = _sweep(distribution, x, product, tolerance, ShortSteps())
            sweeps += further
        if warn and not converged:
            warnings.warn(
                "Expectation propagation stopped with sites still changing by more than was asked for. Give the rows "
                "more noise, merge points that are nearly equal, or state intervals far narrower than the prior as "
                "numbers.",
                ConvergenceWarning,
                stacklevel=2,
            )
    return ExpectationPropagation(distribution, Sites(*x), product, residual, sweeps, converged, non_negative)


def _start(distribution: TruncatedNormal, initial_sites: Sites | None) -> tuple[Tensor, SiteProduct]:
    """The first sites and their product with the prior: those given, or none where the prior does not admit them."""
    if initial_sites is not None:
        x = torch.stack([entry.to(distribution.mean) for entry in initial_sites])
        product = multiply_sites(distribution, x)
        if product is not None:
            return x, product
    x = torch.zeros_like(distribution.mean).expand(2, -1)
    product = multiply_sites(distribution, x)
    if product is None:  # with zero sites the matrix to factor is the identity plus zero times the covariance
        raise NanError("The covariance of the rows contains NaN or infinite values.")
    return x, product


def _sweep(
    distribution: TruncatedNormal, x: Tensor, product: SiteProduct, tolerance: float, steps: Steps | ShortSteps
) -> tuple[Tensor, SiteProduct, float, int, bool]:
    """Sweeps to the fixed point, or to where they end: sites, their product with the prior, the residual, the number of
    sweeps, and whether the residual is below the tolerance, or rounding.
    """
    best, least, progress = x, math.inf, math.inf
    sweeps = last_progress = 0
    while True:
        sweeps += 1
        sweep = next_sites(distribution, product.moments, x, steps.non_negative)
        residual = sweep.residual
        if residual < least:
            best, least = x, residual
        if least < 0.5 * progress:
            last_progress, progress = sweeps, least
        if residual <= tolerance:
            return x, product, residual, sweeps, True
        if sweeps >= MAX_SWEEPS or sweeps - last_progress > steps.patience:
            break
        moved = _move(distribution, x, steps(x, sweep))
        if moved is None:
            break
        x, product = moved
    last = multiply_sites(distribution, best)
    assert last is not None
    if steps.non_negative:
        return best, last, least, sweeps, least <= LEFT_BY_SLIPS
    return best, last, least, sweeps, least <= ROUNDING and sweeps < MAX_SWEEPS


@torch.no_grad()
def product_of_sites(distribution: TruncatedNormal, sites: Sites) -> ExpectationPropagation:
    """The Gaussian approximation with sites that are known; raises `NanError` if the covariance does not admit them."""
    product = multiply_sites(distribution, torch.stack([*sites]))
    if product is None:
        raise NanError("The covariance of the rows does not admit these sites.")
    return ExpectationPropagation(distribution, sites, product, 0.0, 0, converged=True)


def _move(distribution: TruncatedNormal, old: Tensor, new: Tensor) -> tuple[Tensor, SiteProduct] | None:
    """New sites, or part of the way to them, halved until their product with the prior is a distribution."""
    for _ in range(30):
        product = multiply_sites(distribution, new)
        if product is not None:
            return new, product
        new = 0.5 * (old + new)
    return None
