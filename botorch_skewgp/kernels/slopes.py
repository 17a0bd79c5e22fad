r"""Covariances of slopes: derivatives of a kernel in its inputs ([Rasmussen2006]_, section 9.4).

The derivatives are automatic ones of the kernel at single pairs of points, where GPyTorch computes squared distances
without cancellation. The kernel is evaluated by itself, with distances that have derivatives at zero. GPyTorch's Matern
and periodic kernels are functions of the distance, which has none there; here they are functions of its square.

.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning. MIT Press 2006.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch import settings
from gpytorch.kernels import Kernel, MaternKernel, PeriodicKernel
from torch import Tensor

from botorch_skewgp.kernels.evaluation import with_changed_parts

VALUE = -1  # instead of an input's number: the value, not a slope


def slope_covariance(kernel: Kernel, X: Tensor, dims_X: Tensor, Z: Tensor, dims_Z: Tensor) -> Tensor:
    r"""Covariances between values or slopes of a function at two sets of points, differentiable in everything.

    Args:
        kernel: A kernel without batch dimensions, differentiable twice.
        X: A `batch_shape x n x d` tensor.
        dims_X: An `n`-dim integer tensor: the input of each point's slope, or -1 for the value there.
        Z: A `batch_shape x m x d` tensor.
        dims_Z: An `m`-dim integer tensor, as `dims_X`.

    Returns:
        A `batch_shape x n x m` tensor.

    Raises:
        UnsupportedError: If the kernel has no slopes (a Matern kernel with `nu = 0.5`), or torch has no derivatives.
    """
    n, m, d = X.shape[-2], Z.shape[-2], X.shape[-1]
    batch_shape = torch.broadcast_shapes(X.shape[:-2], Z.shape[:-2])
    recorded = torch.is_grad_enabled()
    with torch.enable_grad():
        x = X.unsqueeze(-2).expand(*batch_shape, n, m, d).reshape(-1, d)
        z = Z.unsqueeze(-3).expand(*batch_shape, n, m, d).reshape(-1, d)
        if not recorded:
            x, z = x.detach(), z.detach()
        x = x if x.requires_grad else x.clone().requires_grad_()
        z = z if z.requires_grad else z.clone().requires_grad_()
        in_x = dims_X.to(x.device).unsqueeze(-1).expand(*batch_shape, n, m).reshape(-1)
        in_z = dims_Z.to(x.device).unsqueeze(-2).expand(*batch_shape, n, m).reshape(-1)
        value = _of_pairs(kernel, x, z)
        try:
            value = _derivative(value, z, in_z, create_graph=True)
            value = _derivative(value, x, in_x, create_graph=recorded)
        except NotImplementedError as error:  # of torch's distances, which GPyTorch's kernels are made of
            raise UnsupportedError(_REFUSAL.format(type(kernel).__name__)) from error
    if not value.isfinite().all():
        raise UnsupportedError(_REFUSAL.format(type(kernel).__name__))
    value = value if recorded else value.detach()
    return value.view(*batch_shape, n, m)


_REFUSAL = (
    "The derivatives that slopes need cannot be found for {} at these points; take a kernel that torch differentiates "
    "twice, such as RBF or Matern with nu = 2.5."
)


def _derivative(value: Tensor, points: Tensor, dims: Tensor, create_graph: bool) -> Tensor:
    """Replace each pair's value by its derivative in one of the pair's inputs, where an input is named."""
    wanted = dims != VALUE
    if not bool(wanted.any()):
        return value
    total = value.sum() + 0 * points.sum()  # also of a constant kernel
    (gradient,) = torch.autograd.grad(total, points, create_graph=create_graph)
    slope = gradient.gather(-1, dims.clamp(min=0).unsqueeze(-1)).squeeze(-1)  # -1 is no input; not used there
    return torch.where(wanted, slope, value)


def _of_pairs(kernel: Kernel, x: Tensor, z: Tensor) -> Tensor:
    """The kernel at pairs of points, `p`, as a smooth function of both, each `p x d`."""
    # Some kernels, as the linear one, take equal sets for one, and lose the derivatives in the second: a pair apart
    # follows, by half, as another whole number may be no category.
    x, z = torch.cat([x, x[:1].detach()]), torch.cat([z, z[:1].detach() + 0.5])
    smooth = with_changed_parts(kernel, _smooth)
    with settings.lazily_evaluate_kernels(False):
        covariance = smooth(x.unsqueeze(-2), z.unsqueeze(-2)).to_dense()
    return covariance.reshape(-1)[:-1]


def _smooth(kernel: Kernel) -> None:
    """Let a part of a kernel have derivatives where points coincide."""
    # GPyTorch clamps distances, which from torch 2.14 on loses derivatives at zero
    kernel.covar_dist = _distance_of_pairs
    if type(kernel) is MaternKernel:
        kernel.__class__ = _SmoothMatern
    elif type(kernel) is PeriodicKernel:
        kernel.__class__ = _SmoothPeriodic


def _distance_of_pairs(x: Tensor, z: Tensor, square_dist: bool = False, **_: Any) -> Tensor:
    """GPyTorch's `covar_dist` of `p x 1 x d` points, `p x 1 x 1`, with derivatives where points coincide."""
    squared = (x - z).square().sum(-1, keepdim=True)
    return squared if square_dist else squared.sqrt()


class _SmoothMatern(MaternKernel):
    """The Matern kernel as a function of the squared distance of `p x 1 x d` points, `p x 1 x 1`."""

    def forward(self, x1: Tensor, x2: Tensor, **params: Any) -> Tensor:
        if self.nu not in (1.5, 2.5):
            raise UnsupportedError("A Matern kernel with nu = 0.5 has no slopes; take nu = 1.5, 2.5 or an RBF kernel.")
        squared = ((x1 - x2) / self.lengthscale).square().sum(-1, keepdim=True)
        return _MaternTerm.apply(squared, self.nu, int(self.nu))


class _SmoothPeriodic(PeriodicKernel):
    """The periodic kernel as a function of squared sines of `p x 1 x d` points, `p x 1 x 1`."""

    def forward(self, x1: Tensor, x2: Tensor, **params: Any) -> Tensor:
        waves = torch.sin(math.pi * (x1 - x2) / self.period_length).square()
        return torch.exp(-2 * (waves / self.lengthscale).sum(-1, keepdim=True))


class _MaternTerm(torch.autograd.Function):
    r"""`p(a) e^-a` with `a^2 = 2 nu s` and `p = 1`, `1 + a` or `1 + a + a^2 / 3`, as a function of `s = r^2`.

    The derivative of each is a multiple of the one before; zero replaces the infinite derivative of the first at zero.
    """

    @staticmethod
    def forward(ctx: Any, squared: Tensor, nu: float, degree: int) -> Tensor:
        ctx.save_for_backward(squared)
        ctx.nu, ctx.degree = nu, degree
        a = (2 * nu * squared).sqrt()
        return (torch.ones_like(a), 1 + a, 1 + a + a.square() / 3)[degree] * torch.exp(-a)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (squared,) = ctx.saved_tensors
        slope = gradient * (-ctx.nu / 3 if ctx.degree == 2 else -ctx.nu)
        if ctx.degree:
            return slope * _MaternTerm.apply(squared, ctx.nu, ctx.degree - 1), None, None
        apart = squared > 0
        a = (2 * ctx.nu * torch.where(apart, squared, torch.ones_like(squared))).sqrt()
        return slope * torch.where(apart, torch.exp(-a) / a, torch.zeros_like(a)), None, None
