r"""The truncated normal of the rows: what it is, its Gaussian factors, and its latent coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from linear_operator.operators import LinearOperator, RootLinearOperator, to_linear_operator
from torch import Tensor

from botorch_skewgp.truncated.bordered import BorderedLinearOperator
from botorch_skewgp.truncated.factorization import (
    add_to_diagonal,
    cholesky_as_it_is,
    cholesky_with_noise,
)
from botorch_skewgp.truncated.row_root import RowRoot, row_root


@dataclass(frozen=True, eq=False)
class TruncatedNormal:
    r"""The distribution of `u = h + v` given `lower < u <= upper`, row by row.

    `h ~ N(mean, covariance)` is the noiseless part and `v ~ N(0, diag(noise))` is independent of it.
    Without the truncation `u ~ N(mean, Gamma)` with `Gamma = covariance + diag(noise)`.

    Samplers work in *latent coordinates* of `h`. If the covariance is a `RootLinearOperator` of an
    `m x r` root `F` with `r < m` (many rows over few points), or what `weighted_covariance` makes of one, these are
    `z ~ N(0, I_r)` with `h = mean + F z`, and nothing of size `m x m` is ever built. Otherwise they are `h - mean`
    itself.

    Args:
        mean: A `batch_shape x m` tensor.
        covariance: A `batch_shape x m x m` tensor or `LinearOperator`; positive semi-definite.
        lower: A `batch_shape x m` tensor of lower bounds; `-inf` where there is none.
        upper: A `batch_shape x m` tensor of upper bounds; `inf` where there is none.
        noise: A `batch_shape x m` tensor of variances of the rows' independent noise; zero is allowed.
        count: A `batch_shape x m` tensor of whole numbers: for how many rows a row stands, which have the same `h` and
            bounds and each its own noise; draws of `u` are of their mean. One each if `None`. Needs a low-rank root
            and noise in every row.
        has_jitter: Whether the covariance has the jitter of rows with less noise than that already, which must not be
            added twice: what draws say is computed with it once.

    Raises:
        ValueError: If shapes, dtypes or devices disagree, if a value is NaN, if a lower bound is not
            below its upper bound, if a noise variance is negative, or if counts are given where they cannot be.
    """

    mean: Tensor
    covariance: Tensor | LinearOperator
    lower: Tensor
    upper: Tensor
    noise: Tensor
    count: Tensor | None = None
    has_jitter: bool = False

    def __post_init__(self) -> None:
        m = self.mean.shape[-1]
        if self.covariance.shape[-2:] != (m, m):
            raise ValueError(
                f"covariance must be batch_shape x {m} x {m} to match mean; got {tuple(self.covariance.shape)}."
            )
        for name in ("lower", "upper", "noise"):
            value = getattr(self, name)
            if value.shape != self.mean.shape:
                raise ValueError(f"{name} must have mean's shape {tuple(self.mean.shape)}; got {tuple(value.shape)}.")
            if value.dtype != self.mean.dtype or value.device != self.mean.device:
                raise ValueError(f"{name} must have mean's dtype and device.")
            if value.isnan().any():
                raise ValueError(f"{name} contains NaN.")
        if not self.mean.isfinite().all():
            raise ValueError("mean contains NaN or infinite values.")
        if not (self.lower < self.upper).all():
            raise ValueError("Every entry of lower must be strictly below its entry of upper.")
        if (self.noise < 0).any():
            raise ValueError("noise holds variances; they must not be negative.")
        if self.count is not None:
            if self.count.shape != self.mean.shape or not bool((self.count >= 1).all()):
                raise ValueError(f"count must hold numbers from 1 on in mean's shape {tuple(self.mean.shape)}.")
            if (self.bordered is None and self.row_root is None) or not bool((self.noise > 0).all()):
                raise ValueError("Rows that stand for several need a RootLinearOperator and noise in every row.")

    @classmethod
    def empty(cls, like: Tensor) -> TruncatedNormal:
        """The distribution of no rows, of the dtype and device of a tensor."""
        none = like.new_zeros(0)
        return cls(mean=none, covariance=like.new_zeros(0, 0), lower=none, upper=none, noise=none)

    @property
    def num_rows(self) -> int:
        """The number `m` of rows."""
        return self.mean.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch of distributions."""
        return self.mean.shape[:-1]

    @property
    def bordered(self) -> BorderedLinearOperator | None:
        """The covariance if it is low rank plus block diagonal, which expectation propagation then goes by."""
        return self.covariance if isinstance(self.covariance, BorderedLinearOperator) else None

    @cached_property
    def row_root(self) -> RowRoot | None:
        """The root `F` if the covariance is a low-rank `F F^T`, else `None`."""
        root = row_root(self.covariance)
        return root if root is not None and (root.rank < self.num_rows or self.count is not None) else None

    @cached_property
    def root(self) -> Tensor | None:
        """The `batch_shape x m x r` root `F` as a matrix, which may be large; `None` if there is no low-rank one."""
        return None if self.row_root is None else self.row_root.dense

    @cached_property
    def dense_covariance(self) -> Tensor:
        """The covariance of `h` as a dense `batch_shape x m x m` tensor."""
        if self.bordered is not None:
            return self.bordered.to_dense()
        root = row_root(self.covariance)
        if root is None:
            return to_linear_operator(self.covariance).to_dense()
        F = root.dense
        return F @ F.mT

    @property
    def gamma(self) -> Tensor:
        """`Gamma`, the dense `batch_shape x m x m` covariance of `u` before truncation; not kept, for it is large."""
        return add_to_diagonal(self.dense_covariance, self.noise)

    def expanded(self) -> TruncatedNormal:
        r"""The same distribution with every row for itself; itself if it is like that already.

        Raises:
            ValueError: If it is a batch of distributions, whose numbers of rows would differ.
        """
        if self.count is None:
            return self
        if self.batch_shape.numel() != 1:
            raise ValueError("Rows that stand for several can be expanded in a single distribution, not in a batch.")
        which = torch.arange(self.num_rows, device=self.mean.device)
        which = which.repeat_interleave(self.count.reshape(-1).long())
        assert self.root is not None
        return TruncatedNormal(
            mean=self.mean[..., which],
            covariance=RootLinearOperator(self.root[..., which, :]),
            lower=self.lower[..., which],
            upper=self.upper[..., which],
            noise=self.noise[..., which],
        )

    @property
    def noise_of_mean(self) -> Tensor:
        """The variance of the noise in the mean of the rows that a row stands for, `batch_shape x m`."""
        return self.noise if self.count is None else self.noise / self.count

    def times_count(self, values: Tensor) -> Tensor:
        """Values of rows times the number of rows that each stands for, `batch_shape x m` or broadcast with it."""
        return values if self.count is None else values * self.count

    @cached_property
    def gamma_cholesky(self) -> Tensor:
        """The lower Cholesky factor of `Gamma`; noise less than `1e-12` of a row's variance is raised to that."""
        if self.has_jitter:
            return cholesky_as_it_is(self.gamma)
        return cholesky_with_noise(self.dense_covariance, self.noise)

    @cached_property
    def gamma_diagonal(self) -> Tensor:
        """The diagonal of `Gamma`, `batch_shape x m`."""
        if self.bordered is not None:
            return self.bordered.squared_lengths + self.noise
        if self.row_root is not None:
            return self.row_root.squared_lengths + self.noise
        return self.dense_covariance.diagonal(dim1=-2, dim2=-1) + self.noise

    def noiseless(self, latent: Tensor) -> Tensor:
        """Map latent coordinates, `batch_shape x k x r`, to values of `h`, `batch_shape x k x m`."""
        mean = self.mean.unsqueeze(-2)
        return mean + latent if self.row_root is None else mean + self.row_root.times(latent)


def as_double(distribution: TruncatedNormal) -> TruncatedNormal:
    """The distribution in float64; itself if it is."""
    if distribution.mean.dtype == torch.float64:
        return distribution
    covariance = distribution.covariance
    root = row_root(covariance)
    if root is not None:
        covariance = RootLinearOperator(root.dense.double())
    elif isinstance(covariance, LinearOperator):
        covariance = covariance.to_dense().double()
    else:
        covariance = covariance.double()
    return TruncatedNormal(
        mean=distribution.mean.double(),
        covariance=covariance,
        lower=distribution.lower.double(),
        upper=distribution.upper.double(),
        noise=distribution.noise.double(),
        count=None if distribution.count is None else distribution.count.double(),
        has_jitter=distribution.has_jitter,
    )
