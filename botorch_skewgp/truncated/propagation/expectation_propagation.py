r"""Expectation propagation for the truncated normal of the rows.

Every row contributes the factor `P(lower < h_i + v_i <= upper | h_i)`, which is replaced by a Gaussian site `exp(-tau_i
h_i^2 / 2 + nu_i h_i)`. The sites are chosen so that the Gaussian approximation and the approximation with one exact
factor put back (the tilted distribution) have the same mean and variance in every row.

.. [Minka2001] T. Minka. Expectation propagation for approximate Bayesian inference. UAI 2001.
.. [Cunningham2011] Cunningham, Hennig, Lacoste-Julien. arXiv:1111.6832.
.. [Seeger2005] M. Seeger. Expectation propagation for exponential families. Technical report, 2005.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import torch
from linear_operator.utils.errors import NanError
from torch import Tensor

from botorch_skewgp.exceptions import CompetingExplanationsWarning, ConvergenceWarning
from botorch_skewgp.truncated.derivatives import with_slope
from botorch_skewgp.truncated.priors import SiteProduct, Sites
from botorch_skewgp.truncated.propagation.site_slopes import log_integral_of_site, with_slope_of_sites
from botorch_skewgp.truncated.propagation.steps import Steps, multiply_sites, next_sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

# Sweeps without progress after which the run ends, and the residual at which this counts as rounding, not as failure.
# Censored numbers with a skew prior converge after long stretches without progress.
PATIENCE = 300
# Likewise where answers may be slips, and there may be no fixed point: of 81 such problems 20 leave 14 at that, 60
# leave 8, 300 two, but take 1,500 sweeps where there is none.
PATIENCE_OF_SLIPS = 60
ROUNDING = 1e-6
LEFT_BY_SLIPS = 1e-4  # residual without negative precisions; what these sites leave out is far more
MAX_SWEEPS = 1000
# Without negative precisions: steps, the part of the residual that counts as falling, and sweeps that may pass without.
LONGEST_STEP_WITHOUT, SHORTEST_STEP_WITHOUT, FELL, PATIENCE_WITHOUT = 0.5, 0.1, 0.8, 10
# Variance of a noiseless row given its answer over that given all others, from which on explanations compete. Of 60
# problems of 5 to 11 duels with slips the 26 without such a row had probabilities of slips within .07 of the truth.
WIDENED = 1.3
ALL_NOISE = 1e-14  # variance of a row's noiseless part over its noise's, up to which it is rounding


@dataclass(frozen=True, eq=False)
class ExpectationPropagation:
    """The fixed point: a Gaussian approximation of `h` given the rows, and the log evidence."""

    distribution: TruncatedNormal
    sites: Sites  # sites at the fixed point; of a row that stands for several, the site of one
    product: SiteProduct  # product of prior and sites
    residual: Tensor  # `batch_shape` largest change of a site in units of its row's marginal
    num_iterations: int  # number of sweeps made
    converged: bool  # whether the residual is below the tolerance for the whole batch
    non_negative: bool = False  # whether sites were kept from negative precisions, see `expectation_propagation`

    @property
    def mean(self) -> Tensor:
        """The `batch_shape x m` approximate means of `h` given the rows."""
        return self.product.moments.mean

    @property
    def variance(self) -> Tensor:
        """The `batch_shape x m` approximate variances of `h` given the rows."""
        return self.product.moments.variance

    @property
    def cavity(self) -> tuple[Tensor, Tensor]:
        """The `batch_shape x m` means and variances of `h_i` given all other rows."""
        return self.product.moments.cavity

    @cached_property
    def base(self) -> Tensor:
        """Logarithm of the integral of prior times sites, of shape `batch_shape`."""
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
        """The derivative of `base` in the prior mean, `C^-1 (E h - mean)`; `batch_shape x m`."""
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
            f"Answers contradict each other, and for {int(widened.sum(-1).max())} of {distribution.num_rows} rows it "
            "is open whether these or others are slips"
            + (", so that expectation propagation found no fixed point" if self.non_negative else "")
            + ". Its evidence may be off by half a nat or more, and probabilities of slips by tenths. Use the exact "
            'posterior: leave out approximation="ep", and compute evidence with method="exact".',
            CompetingExplanationsWarning,
            stacklevel=3,
        )

    @property
    def log_normalizer(self) -> Tensor:
        """EP's approximation of `log P(lower < u <= upper)`, of shape `batch_shape`; differentiable once, with sites
        and cavities held, in which it is stationary at the fixed point [Seeger2005]_.
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
        value = self.product.with_slope(value, g)
        value = with_slope(value, distribution.mean, lambda: g)
        return with_slope_of_sites(value, distribution, self.product, self.sites) if self.non_negative else value


def _residual(
    distribution: TruncatedNormal, product: SiteProduct, old: Sites, new: Sites, informative: Tensor | None
) -> Tensor:
    """The largest change of a site, times its row's count, in units of the row's marginal; `batch_shape`."""
    moments = product.moments
    # rounding may make the variance of rows that are all noise negative
    variance = moments.variance if informative is None else moments.variance.clamp(min=0) * informative
    precision, shift = new.precision - old.precision, new.shift - old.shift
    # the shift's change at the marginal's mean, where the site acts
    shift = (shift - precision * moments.mean).abs() * variance.sqrt()
    change = distribution.times_factors(torch.maximum(precision.abs() * variance, shift))
    return change.amax(-1) if change.shape[-1] else change.sum(-1)


def expectation_propagation(
    distribution: TruncatedNormal,
    initial_sites: Sites | None = None,
    tolerance: float = 1e-9,
    non_negative: bool = False,
    warn: bool = True,
) -> ExpectationPropagation:
    """Parallel expectation propagation to its fixed point, up to a `tolerance` in units of a row's marginal; to one
    without negative precisions where answers may be slips and the sweeps of any of a batch circle. It warns by
    `ConvergenceWarning` where it was not reached, and raises `NanError` if the covariance is not finite.
    """
    with torch.no_grad():
        informative, sweeps, converged = _informative(distribution), 0, False
        if non_negative:
            sites = _start(distribution, initial_sites)[0]
        else:
            sites, product, residual, sweeps, converged = _sweep(distribution, initial_sites, tolerance, informative)
            non_negative = not converged and distribution.heights is not None
        if non_negative:
            start = Sites(sites.precision.clamp(min=0), sites.shift)
            sites, product, residual, further = _without_negative_sites(distribution, start, tolerance, informative)
            sweeps += further
            converged = bool((residual <= max(tolerance, LEFT_BY_SLIPS)).all())
        if warn and not converged:
            warnings.warn(
                f"Expectation propagation stopped after {sweeps} sweeps with sites still changing by "
                f"{float(residual.max()):.1e} of a standard deviation (asked for: {tolerance:.0e}). Give the rows more "
                "noise, merge points that are nearly equal, or state intervals far narrower than the prior as numbers.",
                ConvergenceWarning,
                stacklevel=2,
            )
    return ExpectationPropagation(distribution, sites, product, residual, sweeps, converged, non_negative)


def _start(distribution: TruncatedNormal, initial_sites: Sites | None) -> tuple[Sites, SiteProduct]:
    """The first sites and their product with the prior: those given, or none where the prior does not admit them."""
    none = torch.zeros_like(distribution.mean)
    sites = Sites(none, none)
    if initial_sites is not None:
        given = Sites(*(entry.to(none) for entry in initial_sites))
        product = multiply_sites(distribution, given)
        if product is not None:
            return given, product
    product = multiply_sites(distribution, sites)
    if product is None:  # with zero sites the matrix to factor is the identity plus zero times the covariance
        raise NanError("The covariance of the rows contains NaN or infinite values.")
    return sites, product


def _informative(distribution: TruncatedNormal) -> Tensor | None:
    """1 for rows that are informative and 0 for those that are all noise, `batch_shape x m`; `None` if all are."""
    some = distribution.gamma_diagonal - distribution.noise > ALL_NOISE * distribution.noise
    return None if bool(some.all()) else some.to(distribution.noise)


def _sweep(
    distribution: TruncatedNormal, initial_sites: Sites | None, tolerance: float, informative: Tensor | None
) -> tuple[Sites, SiteProduct, Tensor, int, bool]:
    """Sweeps to the fixed point, or to where they end: sites, their product with the prior, the residual, the number of
    sweeps, and whether the residual is below the tolerance, or rounding.
    """
    product: SiteProduct | None
    sites, product = _start(distribution, initial_sites)
    patience = PATIENCE if distribution.heights is None else PATIENCE_OF_SLIPS
    steps = Steps(distribution)
    best, least = sites, distribution.mean.new_full(distribution.batch_shape, torch.inf)
    progress, last_progress, sweeps = least, 0, 0
    while True:
        assert product is not None
        sweeps += 1
        target = next_sites(distribution, product, sites)
        residual = _residual(distribution, product, sites, target, informative)
        better = residual < least
        if bool(better.any()):
            column = better.unsqueeze(-1)
            best = Sites(*(torch.where(column, new, old) for new, old in zip(sites, best, strict=True)))
            least = torch.where(better, residual, least)
            if bool((least < 0.5 * progress).any()):
                last_progress, progress = sweeps, torch.minimum(least, progress)
        if bool((residual <= tolerance).all()):
            return sites, product, residual, sweeps, True
        if sweeps >= MAX_SWEEPS or sweeps - last_progress > patience:
            break
        ahead = steps(sites, target, residual, product.moments.variance)
        product = None  # its matrices are as large as those to come
        moved = _move(distribution, sites, ahead)
        if moved is None:
            break
        sites, product = moved
    product = multiply_sites(distribution, best)
    assert product is not None
    is_rounding = bool((least <= max(tolerance, ROUNDING)).all()) and sweeps < MAX_SWEEPS
    return best, product, least, sweeps, is_rounding


@torch.no_grad()
def product_of_sites(distribution: TruncatedNormal, sites: Sites) -> ExpectationPropagation:
    """The Gaussian approximation with sites that are known; raises `NanError` if the covariance does not admit them."""
    product = multiply_sites(distribution, sites)
    if product is None:
        raise NanError("The covariance of the rows does not admit these sites.")
    return ExpectationPropagation(distribution, sites, product, torch.zeros_like(product.log_det), 0, converged=True)


def _move(distribution: TruncatedNormal, old: Sites, new: Sites) -> tuple[Sites, SiteProduct] | None:
    """New sites, or part of the way to them, halved until their product with the prior is a distribution."""
    for _ in range(30):
        product = multiply_sites(distribution, new)
        if product is not None:
            return new, product
        new = Sites(*(0.5 * (a + b) for a, b in zip(old, new, strict=True)))
    return None


def _without_negative_sites(
    distribution: TruncatedNormal, sites: Sites, tolerance: float, informative: Tensor | None
) -> tuple[Sites, SiteProduct, Tensor, int]:
    """The fixed point of sites without negative precisions; with the residual and the number of sweeps."""
    least = distribution.mean.new_full(distribution.batch_shape, torch.inf)
    sweeps, last, step = 0, torch.zeros_like(least), torch.full_like(least, LONGEST_STEP_WITHOUT).unsqueeze(-1)
    while True:
        product = multiply_sites(distribution, sites)
        if product is None:
            raise NanError("The covariance of the rows contains NaN or infinite values.")
        target = next_sites(distribution, product, sites, non_negative=True)
        residual = _residual(distribution, product, sites, target, informative)
        if sweeps >= MAX_SWEEPS or bool((residual <= tolerance).all()):
            return sites, product, residual, sweeps
        fell = residual < FELL * least
        stuck = ~fell & (sweeps - last >= PATIENCE_WITHOUT)
        longer, shorter = (1.2 * step).clamp(max=LONGEST_STEP_WITHOUT), (0.7 * step).clamp(min=SHORTEST_STEP_WITHOUT)
        step = torch.where(fell.unsqueeze(-1), longer, torch.where(stuck.unsqueeze(-1), shorter, step))
        least = torch.where(fell | stuck, residual, least)
        last = torch.where(fell | stuck, sweeps, last)
        sites, sweeps = Sites(*(a + step * (b - a) for a, b in zip(sites, target, strict=True))), sweeps + 1
