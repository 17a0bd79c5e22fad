r"""Kernels of several judges: a shared part, and an own part of each judge.

The last column of points is the judge: 0 for none in particular, `j + 1` for judge `j`.

.. [Train2009discrete] K. E. Train. Discrete Choice Methods with Simulation. Cambridge University Press 2009.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import Kernel
from gpytorch.module import Module
from gpytorch.priors import HalfCauchyPrior
from torch import Tensor

from botorch_skewgp.checks import as_count
from botorch_skewgp.kernels.evaluation import KernelOfParts, covariance_between
from botorch_skewgp.parameters import DeviationPrior, register_named_prior

RELIABILITY_SPREAD = 1.0  # of the logarithm of a judge's reliability, before it is learned
POWER = 4  # of the mean that is fixed at 1: high, as judges who answer at random hardly change it


def _sizes_of_root(kernel: LinearTastesKernel) -> Tensor:
    return kernel.raw_root[kernel.taste_mask != 0].abs()


def _set_sizes(kernel: LinearTastesKernel, sizes: Tensor) -> None:
    """For a fit that starts again from the prior."""
    with torch.no_grad():
        kernel.raw_root[kernel.taste_mask != 0] = sizes.expand(int(kernel.taste_mask.sum())).to(kernel.raw_root)


class LinearTastesKernel(Kernel):
    r"""`k(x, z) = phi(x)^T S phi(z)` with `phi(x) = (1, x)`: tastes `w ~ N(0, S)`, level first, linear in the inputs.

    These are the tastes of the mixed logit of choice modelling ([Train2009discrete]_, chapter 6), and the random
    intercepts and slopes of mixed models. `S = L L^T`, with `L` lower triangular. The absolute values of its entries,
    in units of the noise, have a half-Cauchy prior, which shrinks those that the data do not determine.

    Args:
        dim: The number `d` of inputs; with 0 judges differ in their level alone.
        rank: The number of directions in which tastes differ, the columns of `L`; `d + 1` if `None`.
        diagonal: Whether tastes are independent, `S` diagonal.
        scale: The scale of the prior.

    Raises:
        InputDataError: If `dim` is no integer or below 0, the rank is not between 1 and `d + 1`, or one is given for a
            diagonal covariance.

    Example:
        >>> kernel = LinearTastesKernel(dim=2)
    """

    has_lengthscale = False

    def __init__(
        self, dim: int, rank: int | None = None, diagonal: bool = False, scale: float = 1.0, **kwargs: Any
    ) -> None:
        dim = as_count(dim, "dim", least=0)
        super().__init__(**({} if dim else {"active_dims": ()}) | kwargs)
        size = dim + 1
        if rank is not None and (diagonal or not 1 <= rank <= size):
            raise InputDataError(
                f"rank must be between 1 and {size}, of a covariance that is not diagonal; got {rank}."
            )
        mask = torch.eye(size) if diagonal else torch.ones(size, size).tril()[:, :rank]
        self.register_buffer("taste_mask", mask.double())
        start = torch.eye(size, mask.shape[-1], dtype=torch.double)
        start[mask.shape[-1] :] = 0.1  # zero would be a saddle point
        self.register_parameter("raw_root", torch.nn.Parameter(start))
        self.register_prior("root_prior", HalfCauchyPrior(scale), _sizes_of_root, _set_sizes)

    @property
    def root(self) -> Tensor:
        """The factor `L`, `(d + 1) x rank`."""
        return self.raw_root * self.taste_mask.to(self.raw_root)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""
        white1, white2 = (self.white(x) for x in (x1, x2))
        return (white1 * white2).sum(-1) if diag else white1 @ white2.mT

    def white(self, X: Tensor) -> Tensor:
        """Exact features of the kernel, `phi(x)^T L`, `batch_shape x n x rank`. Raises `InputDataError`."""
        root = self.root.to(X)
        if X.shape[-1] != len(root) - 1:
            raise InputDataError(f"LinearTastesKernel is for dim={len(root) - 1} inputs; got {X.shape[-1]}.")
        return root[0] + X @ root[1:]


class Reliability(Module):
    r"""The size of each judge's utility relative to the noise of his answers, compared with other judges.

    A judge's utility is multiplied by his reliability `r`, near 0 for one who answers at random. A mean fourth power of
    1 fixes the common factor that data leave open, so that reliable judges have about 1. The logarithms have the prior
    `DeviationPrior`.
    """

    def __init__(self, num_judges: int) -> None:
        super().__init__()
        self.register_parameter("logarithm", torch.nn.Parameter(torch.zeros(num_judges, dtype=torch.double)))
        register_named_prior(self, "logarithm", DeviationPrior(RELIABILITY_SPREAD, num_judges))

    def extended(self, num_judges: int) -> Reliability:
        """The reliabilities with new judges, who have reliability 1; fixed if these are."""
        new = Reliability(num_judges).to(self.logarithm).requires_grad_(self.logarithm.requires_grad)
        with torch.no_grad():
            new.logarithm[: len(self.logarithm)] = self.values.log()
            new.logarithm_prior.scale.copy_(self.logarithm_prior.scale)
            new.logarithm_prior.judge_variance[: len(self.logarithm)] = self.logarithm_prior.judge_variance
        return new

    @property
    def values(self) -> Tensor:
        """The reliability of each judge, `num_judges`."""
        return (self.logarithm - self._log_scale).exp()

    @property
    def _log_scale(self) -> Tensor:
        """The logarithm of the root of the mean power, which is the unit of reliabilities."""
        return (torch.logsumexp(POWER * self.logarithm, dim=-1) - math.log(len(self.logarithm))) / POWER

    def around_judge(self, judge: int | str | None) -> tuple[Tensor, Tensor] | None:
        """Factors of a judge's utility and their weights in an average; see `DeviationPrior.around_judge`."""
        around = self.logarithm_prior.around_judge(judge)
        if around is None:
            return None
        factors = around[0] - self._log_scale if judge == "new" else around[0]
        return factors.exp(), around[1]

    def at(self, code: Tensor) -> Tensor:
        """The reliabilities of judges by their codes in points; 1 for new judges and for the shared part."""
        return torch.nn.functional.pad(self.values, (1, 1), value=1.0).to(code)[code.long()]


class ZeroKernel(Kernel):
    """`k(x, z) = 0`."""

    has_lengthscale = False

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""
        zeros = x1.new_zeros(x1.shape[:-1])
        return zeros if diag else zeros.unsqueeze(-1) + x2.new_zeros(x2.shape[:-1]).unsqueeze(-2)


class JudgeKernel(KernelOfParts):
    """`r_x r_z (k(x, z) + k_own(x, z) [the same judge])`, with the factors `r` of judges' reliability, if any."""

    def __init__(self, shared: Kernel, own: Kernel, reliability: Reliability | None = None) -> None:
        super().__init__()
        self.shared, self.own, self.reliability = shared, own, reliability

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points with a last column for judges, `batch_shape x n x m`, or its diagonal."""
        x1, by1 = x1[..., :-1], x1[..., -1]
        x2, by2 = x2[..., :-1], x2[..., -1]
        if diag:
            return self.combined(self.shared(x1, x2, diag=True), self.own(x1, x2, diag=True), by1, by2)
        shared, own = (covariance_between(part, x1, x2).to_dense() for part in (self.shared, self.own))
        return self.combined(shared, own, by1.unsqueeze(-1), by2.unsqueeze(-2))

    @property
    def of_own(self) -> JudgeKernel:
        """The kernel of judges' own parts alone."""
        return JudgeKernel(ZeroKernel(), self.own, self.reliability)

    @property
    def has_own_features(self) -> bool:
        """Whether the kernel of judges' own parts has exact features."""
        return hasattr(self.own, "white")

    def own_features(self, X: Tensor, dims: Tensor | None = None) -> Tensor:
        """Features of judges' own parts at `n x (d + 1)` points, or their slopes in inputs, `n x r`; 0 without one."""
        X, by = X[..., :-1], X[..., -1]
        if dims is not None:
            X = torch.nn.functional.one_hot(dims, X.shape[-1]).to(X)
        inputs = X if self.own.active_dims is None else X[..., self.own.active_dims]
        white = self.own.white(inputs)
        if dims is not None:  # of features that are linear
            white = white - self.own.white(torch.zeros_like(inputs))
        if self.reliability is not None:
            white = white * self.reliability.at(by).unsqueeze(-1)
        return white * (by != 0).unsqueeze(-1)

    def combined(self, shared: Tensor, own: Tensor, by1: Tensor, by2: Tensor) -> Tensor:
        """The covariance of judges `by1` and `by2`, from those of the shared part and of judges' own parts."""
        covariance = shared + own * ((by1 == by2) & (by1 != 0))
        if self.reliability is None:
            return covariance
        return covariance * self.reliability.at(by1) * self.reliability.at(by2)
