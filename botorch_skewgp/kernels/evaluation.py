"""Covariances of kernels, each evaluated by the kernel itself: what it says of its inputs and parts holds here too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
from gpytorch import settings
from gpytorch.kernels import AdditiveKernel, ConstantKernel, Kernel, LinearKernel, RBFKernel, ScaleKernel
from linear_operator import to_dense
from linear_operator.operators import LinearOperator, to_linear_operator
from torch import Tensor

from botorch_skewgp.kernels.checked import CheckedRBFKernel, CheckedScaleKernel

# Kernels whose formula is known: of these very classes, with no attribute beside those of any new kernel.
_SCALES, _SQUARED_EXPONENTIALS = (ScaleKernel, CheckedScaleKernel), (RBFKernel, CheckedRBFKernel)
_KNOWN_ATTRIBUTES = frozenset(vars(RBFKernel()))


class SquaredExponential(NamedTuple):
    """The present parameters of a scaled squared exponential kernel, for its formula in a third of the operations."""

    scale: Tensor
    lengthscale: Tensor
    active_dims: Tensor | None

    @classmethod
    def of(cls, kernel: Kernel) -> Self | None:
        """The parameters, which may require gradients; `None` for any other kernel, whatever it inherits."""
        if type(kernel) not in _SCALES or not _is_unchanged(kernel):
            return None
        base: Any = kernel.base_kernel
        if type(base) not in _SQUARED_EXPONENTIALS or not _is_unchanged(base):
            return None
        scale, lengthscale = kernel.outputscale, base.lengthscale
        if scale.ndim > 0 or lengthscale.ndim > 2:
            return None  # a batch
        return cls(scale, lengthscale, kernel.active_dims)  # a `ScaleKernel` ignores those of its base kernel

    def inputs(self, X: Tensor) -> Tensor:
        """The active inputs of points."""
        return X if self.active_dims is None else X.index_select(-1, self.active_dims)

    def between(self, X: Tensor, Z: Tensor) -> Tensor:
        """`s exp(-|x - z|^2 / 2)` in units of lengthscales, `batch_shape x n x m`."""
        centre = Z.sum(-2, keepdim=True) / max(1, Z.shape[-2])  # about which squares keep their digits
        x = (X - centre) / self.lengthscale
        half_x = 0.5 * (self.scale.log() - x.square().sum(-1, keepdim=True))
        if Z is X:
            exponent = x @ x.mT + (half_x + half_x.mT)
            # rounding of squares, which are large where lengthscales are tiny, must not change variances
            variances = self.scale.log().expand(exponent.shape[:-1])
            return torch.exp(exponent.diagonal_scatter(variances, dim1=-2, dim2=-1))
        z = (Z - centre) / self.lengthscale
        half_z = 0.5 * (self.scale.log() - z.square().sum(-1, keepdim=True))
        return torch.exp(x @ z.mT + (half_x + half_z.mT))

    def of_difference(self, X: Tensor) -> Tensor:
        """The variance of the difference of two points, `batch_shape x 2 x d`, to all digits where they are close."""
        difference = (X[..., 0, :] - X[..., 1, :]) / self.lengthscale.squeeze(-2)
        return -2 * self.scale * torch.expm1(-0.5 * difference.square().sum(-1))


def _is_unchanged(kernel: Kernel) -> bool:
    return vars(kernel).keys() <= _KNOWN_ATTRIBUTES


class KernelOfParts(Kernel):
    """A kernel whose `forward` takes the covariances of its parts from `covariance_between`."""

    has_lengthscale = False

    @abstractmethod
    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""


class PlusConstantKernel(KernelOfParts):
    """`k(x, z) + c`. GPyTorch's `+` would take a sum apart, and drop what its class overrides.

    Args:
        base_kernel: The kernel `k`, of any class.
        constant: The constant `c`, without a batch shape.
    """

    def __init__(self, base_kernel: Kernel, constant: ConstantKernel) -> None:
        super().__init__()
        self.base_kernel, self.constant = base_kernel, constant

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""
        if diag:
            covariance = to_dense(self.base_kernel(x1, x2, diag=True))
        else:
            covariance = covariance_between(self.base_kernel, x1, x2).to_dense()
        return covariance + self.constant.constant.to(covariance)


def covariance_between(kernel: Kernel, X: Tensor, Z: Tensor | None = None, is_lazy: bool = False) -> LinearOperator:
    """The covariance of a kernel between two sets of points, or one; parts of sums are added as matrices. A lazy one is
    computed when it is used, for often its diagonal is enough.
    """
    if not is_lazy:
        known = _of_known_class(kernel, X, X if Z is None else Z)
        if known is not None:
            return to_linear_operator(known)
    has_root, has_sum = (
        any(isinstance(part, kind) for part in kernel.modules()) for kind in (LinearKernel, AdditiveKernel)
    )
    if not (has_root and has_sum):
        with settings.lazily_evaluate_kernels(is_lazy):
            return kernel(X, Z)
    # at equal sets GPyTorch's linear kernel gives a root, and linear_operator would decompose what is added to that
    with settings.lazily_evaluate_kernels(False):
        return with_changed_parts(kernel, _give_matrices)(X, Z)


def _of_known_class(kernel: Kernel, X: Tensor, Z: Tensor) -> Tensor | None:
    """The covariance between two sets of points, where it takes less than a call of the kernel; else `None`."""
    if isinstance(kernel, KernelOfParts):
        return kernel.forward(X, Z)
    if type(kernel) is AdditiveKernel and kernel.active_dims is None and _is_unchanged(kernel):
        parts = [covariance_between(part, X, Z).to_dense() for part in kernel.kernels]
        return sum(parts[1:], parts[0])
    form = SquaredExponential.of(kernel)
    if form is None:
        return None
    x = form.inputs(X)
    return form.between(x, x if Z is X else form.inputs(Z))


def variance_of_difference(kernel: Kernel, X: Tensor) -> Tensor:
    """The prior variance of the difference of the values at two points, `batch_shape x 2 x d`; `batch_shape`."""
    kernel = kernel.base_kernel if type(kernel) is PlusConstantKernel else kernel
    form = SquaredExponential.of(kernel)
    if form is not None:
        return form.of_difference(form.inputs(X))
    K = covariance_between(kernel, X).to_dense()
    return K[..., 0, 0] + K[..., 1, 1] - 2 * K[..., 0, 1]


def _give_matrices(kernel: Kernel) -> None:
    forward = kernel.forward
    kernel.forward = lambda *args, **kwargs: to_dense(forward(*args, **kwargs))


def with_changed_parts(kernel: Kernel, change: Callable[[Kernel], None]) -> Kernel:
    """A copy of a kernel, with the parameters themselves, whose parts `change` has altered; to be evaluated at once."""
    copies: dict[int, torch.nn.Module] = {}

    def copied(module: torch.nn.Module) -> torch.nn.Module:
        if id(module) not in copies:
            copy: Any = module.__new__(type(module))
            copies[id(module)] = copy
            fields = vars(module)
            children = {name: child and copied(child) for name, child in fields["_modules"].items()}
            vars(copy).update(fields, _modules=children)
            if isinstance(copy, Kernel):
                change(copy)
        return copies[id(module)]

    changed = copied(kernel)
    assert isinstance(changed, Kernel)
    return changed
