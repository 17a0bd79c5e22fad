"""Squared exponential covariances with fixed hyperparameters, in a handful of operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import AdditiveKernel, ConstantKernel, Kernel, ProductKernel
from torch import Tensor

from botorch_skewgp.kernels.checked import RBF_KERNELS, SCALE_KERNELS

# Squared distance in lengthscales from the points' mean up to which a squared difference, expanded into products, keeps
# enough digits for factorisations.
MAX_SPREAD = 100.0


class Categories(NamedTuple):
    """Coordinates that are categories: two points agree in them or not."""

    numbers: Tensor  # the coordinates that are numbers, `d`
    dims: Tensor  # the coordinates that are categories, `k`
    weights: Tensor  # the decrease of the logarithm of the scaled covariance where points differ in each, `k`

    def agreement(self, X: Tensor, Z: Tensor) -> Tensor:
        """The sums of the weights of the coordinates in which points agree, `batch_shape x q x q'`."""
        X, Z = X.detach()[..., self.dims], Z.detach()[..., self.dims]
        return (X.unsqueeze(-2) == Z.unsqueeze(-3)).to(self.weights) @ self.weights


@dataclass(frozen=True, eq=False)
class SquaredExponential:
    r"""`scale exp(-|x - z|^2 / 2) + constant`, the first part times `exp(-w_j)` for each category `j` that differs."""

    scale: Tensor  # a number
    lengthscale: Tensor  # `1 x d` or `1 x 1`
    constant: Tensor | None  # a number
    categories: Categories | None = None

    @classmethod
    def of(cls, kernel: Kernel) -> Self | None:
        """The covariance of a kernel; `None` if it has another form or parameters to be learned."""
        if any(parameter.requires_grad for parameter in kernel.parameters()):
            return None
        if any(part.batch_shape for part in kernel.modules() if isinstance(part, Kernel)):
            return None
        constant = scale = None
        if type(kernel) is AdditiveKernel and [type(part) for part in kernel.kernels][1:] == [ConstantKernel]:
            kernel, constant = kernel.kernels[0], kernel.kernels[1].constant.squeeze()
        if type(kernel) in SCALE_KERNELS:
            kernel, scale = kernel.base_kernel, kernel.outputscale
        categories = None
        if type(kernel) is ProductKernel and len(kernel.kernels) == 2 and type(kernel.kernels[1]) is CategoricalKernel:
            kernel, of_categories = kernel.kernels
            if kernel.active_dims is None or of_categories.active_dims is None:
                return None
            count = len(of_categories.active_dims)
            weights = (1 / (count * of_categories.lengthscale)).expand(1, count).squeeze(0)
            categories = Categories(kernel.active_dims, of_categories.active_dims, weights)
        if type(kernel) not in RBF_KERNELS or (kernel.active_dims is not None and categories is None):
            return None
        lengthscale = kernel.lengthscale
        return cls(lengthscale.new_ones(()) if scale is None else scale, lengthscale, constant, categories)

    def among(self, X: Tensor) -> Tensor:
        """The covariance among points, `batch_shape x q x q`. `X` is `batch_shape x q x d`."""
        x = self.numbers(X)
        white = (x - x.detach().mean(-2, keepdim=True)) / self.lengthscale
        half = self.half_exponent(white)
        exponent = white @ white.mT
        exponent += half  # in place, for it may be large
        exponent += half.mT
        if self.categories is not None:
            exponent += self.categories.agreement(X, X)
        return self.of_exponent(exponent)

    def variance(self, X: Tensor) -> Tensor:
        """The variances at points, `batch_shape x q`. `X` is `batch_shape x q x d`."""
        variance = self.scale if self.constant is None else self.scale + self.constant
        return variance.expand(X.shape[:-1])

    def with_points(self, Z: Tensor) -> CovarianceWithPoints | None:
        """The covariance with fixed points; `None` if it would keep too few digits, or there are no points."""
        if Z.shape[-2] == 0:
            return None
        z = self.numbers(Z)
        centre = z.mean(-2, keepdim=True)
        white = (z - centre) / self.lengthscale
        if Z.dtype != torch.float64 or not bool((white.square().sum(-1) <= MAX_SPREAD).all()):
            return None
        columns = torch.cat([white, torch.ones_like(white[..., :1]), self.half_exponent(white)], dim=-1)
        return CovarianceWithPoints(self, Z, centre, columns.mT.contiguous())

    def numbers(self, X: Tensor) -> Tensor:
        """The coordinates that are no categories. `X` is `... x d`."""
        return X if self.categories is None else X[..., self.categories.numbers]

    def half_exponent(self, white: Tensor) -> Tensor:
        """Each point's term of the log scaled covariance with a point of other categories, `... x n x 1`."""
        level = self.scale.log()
        if self.categories is not None:
            level = level - self.categories.weights.sum()
        return 0.5 * (level - white.square().sum(-1, keepdim=True))

    def of_exponent(self, exponent: Tensor) -> Tensor:
        """The covariance whose scaled part has a given logarithm."""
        covariance = exponent.exp_()
        if self.constant is None:
            return covariance
        if covariance.requires_grad:  # the exponential's derivative is its value
            return covariance + self.constant
        return covariance.add_(self.constant)


@dataclass(frozen=True, eq=False)
class CovarianceWithPoints:
    """The covariance of any points with fixed ones."""

    kernel: SquaredExponential
    points: Tensor  # the points that stay, `... x n x d`
    centre: Tensor  # the mean of their numbers, `... x 1 x d`
    columns: Tensor  # the factor of a point's numbers, its part of the exponent and one, `... x (d + 2) x n`

    def __call__(self, X: Tensor) -> Tensor:
        """The covariance with points, `batch_shape x q x n`. `X` is `batch_shape x q x d`."""
        kernel = self.kernel
        white = (kernel.numbers(X) - self.centre) / kernel.lengthscale
        rows = torch.cat([white, kernel.half_exponent(white), torch.ones_like(white[..., :1])], dim=-1)
        exponent = rows @ self.columns
        if kernel.categories is not None:
            exponent += kernel.categories.agreement(X, self.points)
        return kernel.of_exponent(exponent)
