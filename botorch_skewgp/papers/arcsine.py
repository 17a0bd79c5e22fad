r"""The arcsine kernel: the covariance of a neural network with one hidden layer of infinitely many units.

.. [Williams1998infinite] C. K. I. Williams. Computation with infinite neural networks. Neural Computation 10, 1998.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.constraints import Interval, Positive
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor

from botorch_skewgp.parameters import constrained_parameter, register_named_prior


class ArcsineKernel(Kernel):
    r"""The covariance of `erf(b + w^T x)` over random biases `b` and weights `w`.

    With `b ~ N(0, bias_variance)` and independent `w_j ~ N(0, weight_variance_j)`, and `c(x, x')` twice the covariance
    `bias_variance + sum_j weight_variance_j x_j x'_j` of their inputs,

        `k(x, x') = 2 / pi arcsin(c(x, x') / sqrt((1 + c(x, x)) (1 + c(x', x'))))`

    ([Williams1998infinite]_, equation (11)). Functions of it are steps and slopes that level off away from the origin,
    the faster the larger the weights. The variance depends on `x` and is below one: put it into a `ScaleKernel`.

    Example:
        >>> kernel = ArcsineKernel(ard_num_dims=2).double()
        >>> model = SkewGP(train_X, Preference(pairs), covar_module=kernel)

    Args:
        weight_variance_prior: A prior on the variances of the weights.
        weight_variance_constraint: A constraint on them; positive by default.
        bias_variance_prior: A prior on the variance of the bias.
        bias_variance_constraint: A constraint on it; positive by default.
        kwargs: `ard_num_dims` for a variance of each input's weight, `active_dims`, `batch_shape`.
    """

    has_lengthscale = False
    is_stationary = False
    weight_variance = constrained_parameter("The variances of the weights, `batch_shape x 1 x d`, or `... x 1`.")
    bias_variance = constrained_parameter("The variance of the bias, `batch_shape x 1 x 1`.")

    def __init__(
        self,
        weight_variance_prior: Prior | None = None,
        weight_variance_constraint: Interval | None = None,
        bias_variance_prior: Prior | None = None,
        bias_variance_constraint: Interval | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        num_weights = self.ard_num_dims or 1
        for name, size, prior, constraint in (
            ("weight_variance", num_weights, weight_variance_prior, weight_variance_constraint),
            ("bias_variance", 1, bias_variance_prior, bias_variance_constraint),
        ):
            self.register_parameter(f"raw_{name}", torch.nn.Parameter(torch.zeros(*self.batch_shape, 1, size)))
            self.register_constraint(f"raw_{name}", Positive() if constraint is None else constraint)
            register_named_prior(self, name, prior)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariances of `batch_shape x n x d` and `batch_shape x m x d` points; of pairs of them if `diag`."""
        root, bias = self.weight_variance.sqrt(), self.bias_variance.squeeze(-1)
        x1, x2 = x1 * root, x2 * root
        first = 2 * (bias + x1.square().sum(-1))
        second = 2 * (bias + x2.square().sum(-1))
        if diag:
            product = 2 * (bias + (x1 * x2).sum(-1))
        else:
            product = 2 * (bias.unsqueeze(-1) + x1 @ x2.mT)
            first, second = first.unsqueeze(-1), second.unsqueeze(-2)
        # arcsin(c / sqrt((1 + a) (1 + b))) without its cancellation near one; a b - c^2 is negative by rounding only,
        # then raised to zero by a constant: a clamp would lose second derivatives where points coincide
        excess = first * second - product.square()
        rest = 1 + first + second + excess + (-excess.detach()).clamp(min=0)
        return 2 / math.pi * torch.atan2(product, rest.sqrt())
