r"""Derivatives of a log evidence that is not stationary in its sites.

Expectation propagation's log evidence is stationary in its sites, except where these are kept from negative precisions.
There sites follow the hyperparameters by the implicit function theorem: with the evidence `L(s)` at the sites `s =
T(s)` and multipliers `p = dL/ds + (dT/ds)^T p`, `L + p (T - s)` is stationary in `s`, so that its explicit derivatives
are those of the evidence at the fixed point ([Christianson1994reverse]_).

.. [Christianson1994reverse] Christianson. Reverse accumulation and attractive fixed points. 1994.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import Slope
from botorch_skewgp.truncated.priors import Moments, SiteProduct, Sites
from botorch_skewgp.truncated.propagation.steps import match_moments
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

MAX_ROWS = 256  # with more, systems of equations take long, and sites are held


def slopes_of_sites(distribution: TruncatedNormal, product: SiteProduct, sites: Sites) -> tuple[Tensor, list[Slope]]:
    """What derivatives at constant sites lack, those through sites that are not negative: a tensor that has
    some of them, and the others as slopes.
    """
    m = distribution.num_rows
    if not 0 < m <= MAX_ROWS:
        return distribution.mean.new_zeros(()), []
    fixed = distribution.map(Tensor.detach)
    mean, variance = product.moments.mean.detach(), product.moments.variance.detach()
    with torch.no_grad():
        covariance = product.covariance_rows(torch.arange(m, device=mean.device))
        squares = covariance.square()
    inputs = [tensor.detach().requires_grad_() for tensor in (mean, variance, *sites)]
    terms, target = _terms(fixed, *inputs)
    explicit = torch.autograd.grad(terms.sum(), inputs, retain_graph=True)
    local = _local_derivatives(distribution, inputs, target)
    with torch.no_grad():
        count = distribution.times_factors(torch.ones_like(mean)).unsqueeze(-1)
        # what moves mean and variance of the rows moves the sites, by `d mean = V (d nu - mean d tau)` and the like
        response = covariance @ local[0]
        by_precision = local[2] - count * (mean.unsqueeze(-1) * response + squares @ local[1])
        by_shift = local[3] + count * response
        response = covariance @ explicit[0]
        of_precision = explicit[2] - distribution.times_factors(
            mean * response + squares @ explicit[1] + 0.5 * (variance + mean.square())
        )
        of_shift = explicit[3] + distribution.times_factors(response + mean)
        system = torch.eye(2 * m).to(mean) - torch.cat([by_precision, by_shift], dim=-2)
        multipliers = torch.linalg.solve(system, torch.cat([of_precision, of_shift], dim=-1))
        of_mean, of_variance = (e + d @ multipliers for e, d in zip(explicit[:2], local[:2], strict=True))
        response = covariance @ of_mean
    target = match_moments(distribution, *Moments.with_cavity(mean, variance, sites).cavity, non_negative=True)
    moved = (multipliers * target.flatten()).sum(-1)
    # d mean = W^T (d prior mean + dC g) and d covariance = W^T dC W, with W = I - T covariance and g = shift - T mean
    precision, shift = (distribution.times_factors(entry) for entry in sites)
    pull = of_mean - precision * response

    def of_prior() -> Tensor:
        W = torch.eye(m).to(mean) - precision.unsqueeze(-1) * covariance
        outer = pull.unsqueeze(-1) * (shift - precision * mean).unsqueeze(-2)
        return 0.5 * (outer + outer.mT) + (W * of_variance.unsqueeze(-2)) @ W.mT

    # what is kept of the prior may be without a graph
    covariance_of_prior = distribution.prior.map(lambda tensor: tensor).covariance
    return moved, [(distribution.mean, lambda: pull), (covariance_of_prior, of_prior)]


def log_integral_of_site(precision: Tensor, shift: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """The log of the expected site for `h ~ N(mean, variance)`."""
    spread = 1 + precision * variance
    quadratic = 2 * mean * shift + shift.square() * variance - precision * mean.square()
    return 0.5 * quadratic / spread - 0.5 * spread.log()


def _terms(
    distribution: TruncatedNormal, mean: Tensor, variance: Tensor, precision: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor]:
    """The rows' terms of the evidence, log ratios of the integrals of factors and of sites; and the next sites."""
    cavity = Moments.with_cavity(mean, variance, Sites(precision, shift)).cavity
    log_ratio = distribution.factor.log_probability(*cavity) - log_integral_of_site(precision, shift, *cavity)
    return distribution.times_factors(log_ratio), match_moments(distribution, *cavity, non_negative=True)


def _local_derivatives(distribution: TruncatedNormal, inputs: list[Tensor], target: Tensor) -> list[Tensor]:
    """The derivatives of the next sites in each input of `_terms`, as if independent; `m x 2m` each."""
    m = distribution.num_rows
    answer = None if distribution.heights is None else distribution.heights.answer
    label = torch.arange(m).to(inputs[0]) if answer is None else answer
    same = label.unsqueeze(-1) == label.unsqueeze(-2)
    place = same.tril(-1).sum(-1)
    derivatives = [inputs[0].new_zeros(m, 2 * m) for _ in inputs]
    for c in range(int(place.max()) + 1):
        own = place == c
        for half, output in enumerate(target):
            pulls = torch.autograd.grad(output, inputs, own.to(output), retain_graph=True)
            for derivative, pull in zip(derivatives, pulls, strict=True):
                derivative[:, half * m : (half + 1) * m] += pull.unsqueeze(-1) * (same & own)
    return derivatives
