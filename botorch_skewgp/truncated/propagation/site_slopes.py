r"""Derivatives of a log evidence whose sites are no stationary point of it.

Expectation propagation's log evidence is stationary in its sites, and those need not be differentiated. With sites kept
from negative precisions it is not. There they follow the hyperparameters by the implicit function theorem: with the
evidence `L(s)` at the sites `s = T(s)`, the multipliers `p = dL/ds + (dT/ds)^T p` make `L + p (T - s)` stationary in
`s`, so that its explicit derivatives are those of the evidence at the fixed point ([Christianson1994reverse]_).

.. [Christianson1994reverse] B. Christianson. Reverse accumulation and attractive fixed points. Optimization Methods and
   Software 3, 1994.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import with_slope
from botorch_skewgp.truncated.priors import Factor, Sites
from botorch_skewgp.truncated.propagation.sites import match_moments
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

__all__ = ["with_slope_of_sites"]

MOST_ROWS = 2048  # with more, matrices of rows by rows are too large, and sites are held
MOST_STEPS, ENOUGH = 300, 1e-6  # of the multipliers; and their change in units of the rows' marginals


def with_slope_of_sites(value: Tensor, distribution: TruncatedNormal, factor: Factor, sites: Sites) -> Tensor:
    r"""A log evidence with the derivatives that it has by its sites, which are the fixed point without negative ones.

    Args:
        value: The `batch_shape` log evidence, whose derivatives at constant sites are known.
        distribution: The truncated normal.
        factor: The product of prior and sites.
        sites: The sites; of a row that stands for several, the site of one.
    """
    m = distribution.num_rows
    if not 0 < m <= MOST_ROWS:
        return value
    fixed = distribution.map(Tensor.detach)
    mean, variance = factor.moments.mean.detach(), factor.moments.variance.detach()
    with torch.no_grad():
        covariance = factor.covariance_rows()(torch.arange(m, device=mean.device))
    inputs = [tensor.detach().requires_grad_() for tensor in (mean, variance, *sites)]
    terms, target = _terms(fixed, *inputs)
    known = torch.where(variance > 0, variance, torch.inf)
    units = (1 / known, known.rsqrt())
    multipliers = [torch.zeros_like(mean), torch.zeros_like(mean)]
    for _ in range(MOST_STEPS):
        pulls = torch.autograd.grad([terms, *target], inputs, [torch.ones_like(terms), *multipliers], retain_graph=True)
        of_mean, of_variance, of_precision, of_shift = pulls
        response = _times(covariance, of_mean)
        by_variance = _times(covariance.square(), of_variance)
        of_precision = of_precision - distribution.times_count(
            mean * response + by_variance + 0.5 * (variance + mean.square())
        )
        of_shift = of_shift + distribution.times_count(response + mean)
        changes = [new - old for new, old in zip((of_precision, of_shift), multipliers, strict=True)]
        if all(bool(((c * unit).abs() <= ENOUGH).all()) for c, unit in zip(changes, units, strict=True)):
            break
        # half of the way, as the sites came to their fixed point
        multipliers = [old + 0.5 * change for old, change in zip(multipliers, changes, strict=True)]
    target = match_moments(distribution, *_cavity(mean, variance, *sites), non_negative=True)
    explicit = (multipliers[0] * target.precision + multipliers[1] * target.shift).sum(-1)
    value = value + explicit - explicit.detach()
    # d mean = W^T (d prior mean + dC g) and d covariance = W^T dC W, with W = I - T covariance
    precision, shift = (distribution.times_count(entry) for entry in sites)
    g = shift - precision * mean
    pull = of_mean - precision * response
    if distribution.mean.requires_grad:
        value = with_slope(value, distribution.mean, pull)
    prior = distribution.prior.map(lambda tensor: tensor).covariance  # what is kept may be without a graph
    if prior.requires_grad:
        W = torch.eye(m).to(mean) - precision.unsqueeze(-1) * covariance
        outer = pull.unsqueeze(-1) * g.unsqueeze(-2)
        value = with_slope(value, prior, 0.5 * (outer + outer.mT) + (W * of_variance.unsqueeze(-2)) @ W.mT)
    return value


def _cavity(mean: Tensor, variance: Tensor, precision: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Means and variances of rows without their own site."""
    left = 1 - precision * variance
    return (mean - shift * variance) / left, variance / left


def _terms(
    distribution: TruncatedNormal, mean: Tensor, variance: Tensor, precision: Tensor, shift: Tensor
) -> tuple[Tensor, Sites]:
    """What rows add to the evidence, log ratios of the integrals of factors and of sites; and the next sites."""
    cavity_mean, cavity_variance = _cavity(mean, variance, precision, shift)
    spread = 1 + precision * cavity_variance
    quadratic = 2 * cavity_mean * shift + shift.square() * cavity_variance - precision * cavity_mean.square()
    log_factor = distribution.factor.log_probability(cavity_mean, cavity_variance)
    terms = distribution.times_count(log_factor - 0.5 * quadratic / spread + 0.5 * spread.log())
    return terms, match_moments(distribution, cavity_mean, cavity_variance, non_negative=True)


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
