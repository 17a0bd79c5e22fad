"""Squared exponential covariances with fixed hyperparameters, in a handful of operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from gpytorch.kernels import AdditiveKernel, ConstantKernel, Kernel
from torch import Tensor

from botorch_skewgp.kernels.checked import RBF_KERNELS, SCALE_KERNELS

# Squared distance in lengthscales from the points' mean up to which a squared difference, expanded into products, has
# as many digits left as factorisations need.
MOST_SPREAD = 100.0


@dataclass(frozen=True, eq=False)
class SquaredExponential:
    r"""The covariance `scale exp(-|x - z|^2 / 2) + constant`, with distances in units of the lengthscales.

    Equal to GPyTorch's kernels up to rounding. They look up and transform their parameters at every call and
    record three times as many operations, which for the few points of an acquisition function takes most of the time.

    Args:
        scale: The scale, a number.
        lengthscale: The lengthscales, `1 x d` or `1 x 1`.
        constant: The constant, a number; zero if `None`.
    """

    scale: Tensor
    lengthscale: Tensor
    constant: Tensor | None

    @classmethod
    def of(cls, kernel: Kernel) -> Self | None:
        r"""The same covariance as a kernel's, or `None` where it is another one or has parameters to be learned.

        Args:
            kernel: An `RBFKernel`, possibly in a `ScaleKernel`, possibly with a `ConstantKernel` added.
        """
        if any(parameter.requires_grad for parameter in kernel.parameters()):
            return None
        kernels = [part for part in kernel.modules() if isinstance(part, Kernel)]
        if any(part.batch_shape or part.active_dims is not None for part in kernels):
            return None
        constant = scale = None
        if type(kernel) is AdditiveKernel and [type(part) for part in kernel.kernels][1:] == [ConstantKernel]:
            kernel, constant = kernel.kernels[0], kernel.kernels[1].constant.squeeze()
        if type(kernel) in SCALE_KERNELS:
            kernel, scale = kernel.base_kernel, kernel.outputscale
        if type(kernel) not in RBF_KERNELS:
            return None
        lengthscale = kernel.lengthscale
        return cls(lengthscale.new_ones(()) if scale is None else scale, lengthscale, constant)

    def among(self, X: Tensor) -> Tensor:
        r"""The covariance among points, `batch_shape x q x q`.

        Args:
            X: A `batch_shape x q x d` tensor.
        """
        white = (X - X.detach().mean(-2, keepdim=True)) / self.lengthscale
        half = self.half_exponent(white)
        exponent = white @ white.mT
        exponent += half  # in place, for it may be large
        exponent += half.mT
        return self.of_exponent(exponent)

    def variance(self, X: Tensor) -> Tensor:
        r"""The variances at points, `batch_shape x q`.

        Args:
            X: A `batch_shape x q x d` tensor.
        """
        variance = self.scale if self.constant is None else self.scale + self.constant
        return variance.expand(X.shape[:-1])

    def with_points(self, Z: Tensor) -> CovarianceWithPoints | None:
        r"""The covariance with fixed points; `None` where too few digits would be left of it, or
        there are none.

        Args:
            Z: A `batch_shape x n x d` tensor.
        """
        if Z.shape[-2] == 0:
            return None
        centre = Z.mean(-2, keepdim=True)
        white = (Z - centre) / self.lengthscale
        if Z.dtype != torch.float64 or not bool((white.square().sum(-1) <= MOST_SPREAD).all()):
            return None
        columns = torch.cat([white, torch.ones_like(white[..., :1]), self.half_exponent(white)], dim=-1)
        return CovarianceWithPoints(self, centre, columns.mT.contiguous())

    def half_exponent(self, white: Tensor) -> Tensor:
        r"""The contribution of each point to the logarithm of the scaled covariance, `... x n x 1`.

        Args:
            white: The point in units of the lengthscales, `... x n x d`.
        """
        return 0.5 * (self.scale.log() - white.square().sum(-1, keepdim=True))

    def of_exponent(self, exponent: Tensor) -> Tensor:
        r"""The covariance whose scaled part has a given logarithm.

        Args:
            exponent: The logarithm, which is overwritten.
        """
        covariance = exponent.exp_()
        if self.constant is None:
            return covariance
        if covariance.requires_grad:  # the exponential's derivative is its value
            return covariance + self.constant
        return covariance.add_(self.constant)


@dataclass(frozen=True, eq=False)
class CovarianceWithPoints:
    r"""The covariance of any points with fixed ones.

    Args:
        kernel: The covariance function.
        centre: The mean of the points that stay, `... x 1 x d`.
        columns: What is multiplied with a point's coordinates, its part of the exponent and one, `... x (d + 2) x n`.
    """

    kernel: SquaredExponential
    centre: Tensor
    columns: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        r"""The covariance with points, `batch_shape x q x n`.

        Args:
            X: A `batch_shape x q x d` tensor of double precision.
        """
        white = (X - self.centre) / self.kernel.lengthscale
        rows = torch.cat([white, self.kernel.half_exponent(white), torch.ones_like(white[..., :1])], dim=-1)
        return self.kernel.of_exponent(rows @ self.columns)
