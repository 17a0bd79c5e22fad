r"""Kernels of several judges: what they share, and what is each one's own.

Points carry who judges in their last column: 0 for nobody in particular, another number for a judge.

.. [Train2009discrete] K. E. Train. Discrete Choice Methods with Simulation. Cambridge University Press 2009.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import Kernel
from gpytorch.priors import HalfCauchyPrior
from torch import Tensor

from botorch_skewgp.kernels.reliability import ReliabilityKernel
from botorch_skewgp.kernels.sums import covariance_of_points


def _sizes_of_root(kernel: LinearTastesKernel) -> Tensor:
    return kernel.raw_root[kernel.taste_mask != 0].abs()


def _set_sizes(kernel: LinearTastesKernel, sizes: Tensor) -> None:
    """For a fit that starts again from the prior."""
    with torch.no_grad():
        kernel.raw_root[kernel.taste_mask != 0] = sizes.expand(int(kernel.taste_mask.sum())).to(kernel.raw_root)


class LinearTastesKernel(Kernel):
    r"""`k(x, z) = phi(x)^T S phi(z)` with `phi(x) = (1, x)`: tastes `w ~ N(0, S)`, level first, linear in the inputs.

    The mixed logit of choice modelling has such tastes ([Train2009discrete]_, chapter 6), as the random intercepts and
    slopes of mixed models have. `S = L L^T`, with `L` lower triangular. The absolute values of its entries, in units of
    the noise, have a half-Cauchy prior of scale 1, which leaves alone what the data tell and takes away what they do
    not.

    Args:
        dim: The number `d` of inputs.
        rank: The number of directions in which tastes differ, the columns of `L`; `d + 1` if `None`.
        diagonal: Whether tastes are independent, `S` diagonal.

    Raises:
        InputDataError: If the rank is not between 1 and `d + 1`, or one is given for a diagonal covariance.

    Example:
        >>> kernel = LinearTastesKernel(dim=2)
    """

    has_lengthscale = False

    def __init__(self, dim: int, rank: int | None = None, diagonal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        size = dim + 1
        if rank is not None and (diagonal or not 1 <= rank <= size):
            raise InputDataError(
                f"rank must be between 1 and {size}, of a covariance that is not diagonal; got {rank}."
            )
        mask = torch.eye(size) if diagonal else torch.ones(size, size).tril()[:, :rank]
        self.register_buffer("taste_mask", mask.double())
        start = torch.eye(size, mask.shape[-1], dtype=torch.double)
        start[mask.shape[-1] :] = 0.1  # of which zero would be a saddle point
        self.register_parameter("raw_root", torch.nn.Parameter(start))
        self.register_prior("root_prior", HalfCauchyPrior(1.0), _sizes_of_root, _set_sizes)

    @property
    def root(self) -> Tensor:
        """The factor `L`, `(d + 1) x rank`."""
        return self.raw_root * self.taste_mask.to(self.raw_root)

    @property
    def taste_covariance(self) -> Tensor:
        """The covariance `S` of level and slopes between judges, `(d + 1) x (d + 1)`."""
        return self.root @ self.root.mT

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points, `batch_shape x n x m`, or `batch_shape x n` on the diagonal."""
        white1, white2 = (self._white(x) for x in (x1, x2))
        return (white1 * white2).sum(-1) if diag else white1 @ white2.mT

    def _white(self, X: Tensor) -> Tensor:
        """The white coordinates of tastes that points read."""
        root = self.root.to(X)
        return root[0] + X @ root[1:]


class JudgeKernel(Kernel):
    r"""`k(x, z) + k_own(x, z) [the same judge]`: what all share, plus a part of each judge's own.

    Args:
        shared: The kernel of what all share.
        own: The kernel of a judge's own part; parts of different judges are independent. A `ReliabilityKernel`
            multiplies what all share by a weight of each judge too.
    """

    has_lengthscale = False

    def __init__(self, shared: Kernel, own: Kernel) -> None:
        super().__init__()
        self.shared, self.own = shared, own

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The covariance of points with a last column for judges, `batch_shape x n x m`, or its diagonal."""
        x1, by1 = x1[..., :-1], x1[..., -1]
        is_square = x2 is x1
        x2, by2 = x2[..., :-1], x2[..., -1]
        if diag:
            same = (by1 == by2) & (by1 != 0)
            shared = self._weigh(self.shared(x1, x2, diag=True), by1, by2)
            return shared + self.own(x1, x2, diag=True) * same
        same = (by1.unsqueeze(-1) == by2.unsqueeze(-2)) & (by1 != 0).unsqueeze(-1)
        if is_square:
            parts = covariance_of_points(self.shared, x1), covariance_of_points(self.own, x1)
        else:
            parts = self.shared(x1, x2), self.own(x1, x2)
        shared, own = (part.to_dense() for part in parts)
        return self._weigh(shared, by1.unsqueeze(-1), by2.unsqueeze(-2)) + own * same

    def _weigh(self, shared: Tensor, by1: Tensor, by2: Tensor) -> Tensor:
        """What all share, by the weights that it has for two judges."""
        if not isinstance(self.own, ReliabilityKernel):
            return shared
        return shared * self.own.of_judges(by1) * self.own.of_judges(by2)
