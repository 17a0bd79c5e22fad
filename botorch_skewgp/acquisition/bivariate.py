r"""The cdf of two standard normal variables, elementwise and differentiable.

.. [Drezner1990bivariate] Z. Drezner, G. O. Wesolowsky. On the computation of the bivariate normal integral. Journal of
   Statistical Computation and Simulation 35, 1990.
.. [Genz2004bivariate] A. Genz. Numerical computation of rectangular bivariate and trivariate normal and t
   probabilities. Statistics and Computing 14, 2004.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from botorch.utils.probability.bvn import bvnu
from torch import Tensor

from botorch_skewgp.truncated.univariate import legendre, normal_cdf

NUM_NODES = {0.3: 6, 0.75: 12, 0.925: 20}  # up to these correlations; beyond, the integrand is too narrow
FAR = 0.925


def bivariate_normal_cdf(h: Tensor, k: Tensor, correlation: Tensor) -> Tensor:
    r"""`P(Z_1 <= h, Z_2 <= k)` of standard normal variables, with an error of rounding; tensors are broadcast.

    The derivative in the correlation is the density: the cdf is that of independent variables plus the integral of the
    density, here by Gauss-Legendre quadrature in the angle whose sine is the correlation ([Drezner1990bivariate]_).
    BoTorch's slower `bvnu` computes correlations near 1 or -1. Derivatives have closed forms. The number of nodes grows
    with the largest correlation ([Genz2004bivariate]_): separate calls for small ones are faster.
    """
    return _BivariateNormalCDF.apply(h, k, correlation)


class _BivariateNormalCDF(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, k: Tensor, correlation: Tensor) -> Tensor:
        ctx.save_for_backward(h, k, correlation)
        far = correlation.abs() > FAR
        angle = correlation.masked_fill(far, 0.0).asin()
        squares, product = 0.5 * (h.square() + k.square()), h * k
        total = torch.zeros(torch.broadcast_shapes(product.shape, angle.shape)).to(product)
        largest = float(angle.sin().abs().max()) if angle.numel() else 0.0
        num_nodes = next(num for limit, num in NUM_NODES.items() if largest <= limit + 1e-9)
        for node, weight in zip(*legendre(h, num_nodes), strict=True):  # one at a time: there may be many entries
            at = angle * node
            precision = at.cos().square().reciprocal()
            exponent = torch.addcmul(product * (at.sin() * precision), squares, precision, value=-1.0)
            total = torch.addcmul(total, weight, exponent.exp_())
        value = normal_cdf(h) * normal_cdf(k) + angle * total / (2 * math.pi)
        if bool(far.any()):
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
