r"""Integrals of look-aheads: the expected entropy of an answer, and the cdf of two normal variables.

The expected entropy once the latent function is known, `E[H(y | f)]`, is an integral over a normal distribution for
each draw, by quadrature in factors that leave a smooth integrand at every ratio of noise to uncertainty: with `b_j` the
cut-points, `s^2` the noise variance and `g_j(f) = exp(-(f - b_j)^2 / (pi log(2) s^2))`, the approximation of the binary
entropy in [Houlsby2011bald]_, it is `sum_j E[g_j(f) (H(f) / sum_i g_i(f))]`, and a normal density times `g_j` is normal
up to a factor. Answers that may be slips have an entropy even far from cut-points, which is added in closed form; `H`
is the rest.

.. [Drezner1990bivariate] Drezner, Wesolowsky. On the computation of the bivariate normal integral. 1990.
.. [Genz2004bivariate] Genz. Statistics and Computing 14, 2004.
.. [Houlsby2011bald] Houlsby et al. arXiv 1112.5745, 2011.
.. [Trefethen2019approximation] Trefethen. Approximation Theory and Approximation Practice, extended edition. SIAM 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from botorch.utils.probability.bvn import bvnu
from torch import Tensor

from botorch_skewgp.rows.reading import Reading
from botorch_skewgp.truncated.univariate import hermite, legendre, normal_cdf

NUM_ENTROPY_NODES = 10  # of the quadrature; the integrand is close to a constant
NODES_PER_WIDTH = 4.5  # of interpolation of its logarithm, for an error of at most 1e-9
MIN_NODES = 12
MIN_REACH = 0.01  # widths from the middle; derivatives between closer nodes have few digits
NUM_CDF_NODES = {0.3: 6, 0.75: 12, 0.925: 20}  # up to these correlations; beyond, the integrand is too narrow
FAR_CORRELATION = 0.925
MIN_SAVING = 4  # draws for each node, below which the function itself is cheaper


def expected_entropy(means: Tensor, variance: Tensor, weights: Tensor, reading: Reading) -> Tensor:
    """`E[H(y | f)]` of a single reading of `B` mixtures: `B x S` means, `B` variances, `S` probabilities; `B`."""
    variance = variance.unsqueeze(-1)
    wide = (variance + _width(reading)).sqrt().detach()
    nodes_per_width = NODES_PER_WIDTH
    if reading.num_outcomes > 2:  # the likeliest outcome changes half way between cut-points, sharply if these are far
        gaps = reading.cutpoints[0].detach().diff().max() / wide  # apart
        nodes_per_width *= 2 + float(gaps.max())
    log_entropies = _interpolated(lambda at: _log_mean_entropy(at, variance, reading), means, wide, nodes_per_width)
    expected = log_entropies.exp() @ weights
    if reading.slips is None:
        return expected
    attentive = replace(reading, slips=None).log_outcome_probabilities(means, variance).exp()  # B x S x K
    return expected + (weights @ attentive * _entropies_of_slips(reading)).sum(-1)


def _interpolated(function: Callable[[Tensor], Tensor], x: Tensor, width: Tensor, nodes_per_width: float) -> Tensor:
    """An analytic function that changes over a width, at `... x S` arguments, from its values at Chebyshev nodes."""
    # the error falls geometrically in their number ([Trefethen2019approximation]_, chapter 8)
    low, high = x.detach().aminmax(dim=-1, keepdim=True)
    middle, half = 0.5 * (low + high), torch.maximum(0.5 * (high - low), MIN_REACH * width)
    num_nodes = MIN_NODES + nodes_per_width * float((2 * half / width).max())
    if not num_nodes * MIN_SAVING < x.shape[-1]:
        return function(x)
    order = torch.arange(math.ceil(num_nodes), dtype=x.dtype, device=x.device)
    angle = (order + 0.5) * (math.pi / len(order))
    coefficients = function(middle + half * angle.cos()) @ (angle.unsqueeze(-1) * order).cos() * (2 / len(order))
    y = (x - middle) / half
    twice, later, latest = 2 * y, torch.zeros_like(y), torch.zeros_like(y)
    first, *others = coefficients.unsqueeze(-1).unbind(-2)
    for coefficient in reversed(others):  # Clenshaw's recurrence
        later, latest = torch.addcmul(coefficient - latest, twice, later), later
    return torch.addcmul(0.5 * first - latest, y, later)


def _entropies_of_slips(reading: Reading) -> Tensor:
    """The entropy of an answer with slips for each outcome of a certain attentive answer, `K`."""
    assert reading.slips is not None
    certain = torch.eye(reading.num_outcomes).to(reading.slips)
    return torch.special.entr(reading.with_slips(certain)).sum(-1)


def _width(reading: Reading) -> Tensor:
    """The variance of `g_j`, were it a density; see the module's text."""
    return 0.5 * math.pi * math.log(2.0) * reading.variance


def _log_mean_entropy(means: Tensor, variance: Tensor, reading: Reading) -> Tensor:
    """`log E[H(y | f)]` of normal `f` with `B x n` means and `B x 1` variances."""
    means, variance = means.unsqueeze(-1), variance.unsqueeze(-1)
    width, cutpoints = _width(reading), reading.cutpoints[0]
    # the normal density times g_j: its log factor, its centre and its variance
    total = variance + width
    log_factor = 0.5 * (width.log() - total.log()) - 0.5 * (means - cutpoints).square() / total
    centre = (means * width + cutpoints * variance) / total  # B x n x (K - 1)
    narrow = (variance * width / total).sqrt()
    nodes, log_weights = hermite(means, NUM_ENTROPY_NODES)
    f = centre.unsqueeze(-1) + narrow.unsqueeze(-1) * nodes  # B x n x (K - 1) x nodes
    log_sum = (-0.5 * (f.unsqueeze(-1) - cutpoints).square() / width).logsumexp(-1)
    terms = log_factor.unsqueeze(-1) + log_weights + _log_entropy(f, reading) - log_sum
    return terms.flatten(-2).logsumexp(-1)


def _log_entropy(f: Tensor, reading: Reading) -> Tensor:
    """The log of the entropy of an outcome given `f`, less that of slips alone; finite far from all cut-points."""
    if reading.slips is not None:  # the information about the attentive answer, which vanishes there
        attentive = replace(reading, slips=None).log_outcome_probabilities(f).exp()
        entropy = torch.special.entr(reading.with_slips(attentive)).sum(-1)
        information = entropy - (attentive * _entropies_of_slips(reading)).sum(-1)
        return information.clamp(min=torch.finfo(f.dtype).tiny).log()  # rounding only
    log_p = reading.log_outcome_probabilities(f)
    certain = log_p > -torch.finfo(log_p.dtype).tiny
    log_surprise = torch.where(certain, -1.0, log_p).neg().log()
    others = torch.where(certain, -torch.inf, log_p).logsumexp(-1, keepdim=True)  # the surprise of a certain outcome
    return (log_p + torch.where(certain, others, log_surprise)).logsumexp(-1)


def bivariate_normal_cdf(h: Tensor, k: Tensor, correlation: Tensor) -> Tensor:
    """`P(Z_1 <= h, Z_2 <= k)` of standard normal variables, with an error of rounding; tensors are broadcast."""
    return _BivariateNormalCDF.apply(h, k, correlation)


class _BivariateNormalCDF(torch.autograd.Function):
    # that of independent variables plus the integral of the density over the angle of the correlation
    # ([Drezner1990bivariate]_), with more nodes for larger correlations ([Genz2004bivariate]_)

    @staticmethod
    def forward(ctx: Any, h: Tensor, k: Tensor, correlation: Tensor) -> Tensor:
        ctx.save_for_backward(h, k, correlation)
        far = correlation.abs() > FAR_CORRELATION
        angle = correlation.masked_fill(far, 0.0).asin()
        squares, product = 0.5 * (h.square() + k.square()), h * k
        total = torch.zeros(torch.broadcast_shapes(product.shape, angle.shape)).to(product)
        largest = float(angle.sin().abs().max()) if angle.numel() else 0.0
        num_nodes = next(num for limit, num in NUM_CDF_NODES.items() if largest <= limit + 1e-9)
        for node, weight in zip(*legendre(h, num_nodes), strict=True):  # one at a time: there may be many entries
            at = angle * node
            precision = at.cos().square().reciprocal()
            exponent = torch.addcmul(product * (at.sin() * precision), squares, precision, value=-1.0)
            total = torch.addcmul(total, weight, exponent.exp_())
        value = normal_cdf(h) * normal_cdf(k) + angle * total / (2 * math.pi)
        if bool(far.any()):  # BoTorch's is slower
            where = far.expand(value.shape)
            value[where] = bvnu(*(x.expand(value.shape)[where] for x in (correlation, -h, -k)))
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        h, k, correlation = ctx.saved_tensors
        (gradient,) = gradients
        rest = (1 - correlation.square()).clamp(min=torch.finfo(h.dtype).eps).rsqrt()  # exactly 1 has no derivative
        results: list[Tensor | None] = [None, None, None]
        for i, one, other in ((0, h, k), (1, k, h)):
            if ctx.needs_input_grad[i]:
                density = (one.square() * -0.5).exp() / math.sqrt(2 * math.pi)
                slope = gradient * normal_cdf((other - correlation * one) * rest) * density
                results[i] = slope.sum_to_size(one.shape)
        if ctx.needs_input_grad[2]:
            exponent = -0.5 * (((h - correlation * k) * rest).square() + k.square())
            results[2] = (gradient * exponent.exp() * rest / (2 * math.pi)).sum_to_size(correlation.shape)
        return tuple(results)
