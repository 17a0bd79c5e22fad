r"""The cdf of two normal variables, with derivatives.

.. [Drezner1990bivariate] Drezner, Wesolowsky. On the computation of the bivariate normal integral. 1990.
.. [Genz2004bivariate] Genz. Statistics and Computing 14, 2004.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from botorch.utils.probability.bvn import bvnu
from torch import Tensor

from botorch_skewgp.truncated.univariate import legendre, normal_cdf

NUM_NODES = {0.3: 6, 0.75: 12, 0.925: 20}  # up to these correlations; beyond, the integrand is too narrow
FAR_CORRELATION = 0.925


def bivariate_normal_cdf(h: Tensor, k: Tensor, correlation: Tensor) -> Tensor:
    """`P(Z_1 <= h, Z_2 <= k)` of standard normal variables, with an error of rounding; tensors are broadcast."""
    return _BivariateNormalCDF.apply(h, k, correlation)


class _BivariateNormalCDF(torch.autograd.Function):
    """The cdf of independent variables plus an integral over the angle of the correlation ([Drezner1990bivariate]_).

    `Phi(h) Phi(k) + 1 / (2 pi) int_0^asin(rho) exp(-(h^2 + k^2 - 2 h k sin(t)) / (2 cos(t)^2)) dt`, with more nodes for
    larger correlations ([Genz2004bivariate]_).
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, k: Tensor, correlation: Tensor) -> Tensor:
        ctx.save_for_backward(h, k, correlation)
        is_far = correlation.abs() > FAR_CORRELATION
        angle = correlation.masked_fill(is_far, 0.0).asin()
        largest = float(angle.sin().abs().max()) if angle.numel() else 0.0
        num_nodes = next(num for limit, num in NUM_NODES.items() if largest <= limit + 1e-9)
        half_squares = 0.5 * (h.square() + k.square())
        product = h * k
        integral = torch.zeros(torch.broadcast_shapes(product.shape, angle.shape)).to(product)
        for node, weight in zip(*legendre(h, num_nodes), strict=True):  # one at a time: there may be many entries
            t = angle * node
            precision = t.cos().square().reciprocal()
            exponent = torch.addcmul(product * (t.sin() * precision), half_squares, precision, value=-1.0)
            integral = torch.addcmul(integral, weight, exponent.exp_())
        value = normal_cdf(h) * normal_cdf(k) + angle * integral / (2 * math.pi)
        if bool(is_far.any()):  # BoTorch's is slower
            where = is_far.expand(value.shape)
            far_h, far_k, far_correlation = (x.expand(value.shape)[where] for x in (h, k, correlation))
            value[where] = bvnu(far_correlation, -far_h, -far_k)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        h, k, correlation = ctx.saved_tensors
        rest = 1 - correlation.square()
        rest = rest.clamp(min=torch.finfo(h.dtype).eps).rsqrt()  # exactly 1 has no derivative
        above_h = (h - correlation * k) * rest
        above_k = (k - correlation * h) * rest
        of_h = of_k = of_correlation = None
        if ctx.needs_input_grad[0]:
            of_h = (gradient * normal_cdf(above_k) * _density(h)).sum_to_size(h.shape)
        if ctx.needs_input_grad[1]:
            of_k = (gradient * normal_cdf(above_h) * _density(k)).sum_to_size(k.shape)
        if ctx.needs_input_grad[2]:
            # the density of both: that of the second, times that of the first given the second
            exponent = -0.5 * (above_h.square() + k.square())
            slope = gradient * exponent.exp() * rest / (2 * math.pi)
            of_correlation = slope.sum_to_size(correlation.shape)
        return of_h, of_k, of_correlation


def _density(z: Tensor) -> Tensor:
    return (-0.5 * z.square()).exp() / math.sqrt(2 * math.pi)
