r"""Interfaces of Gaussian priors of the rows, and of their products with Gaussian sites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from botorch_skewgp.truncated.priors.low_rank import LowRankPrior

Map = Callable[[Tensor], Tensor]


class Sites(NamedTuple):
    """Gaussian sites `exp(-tau_i h_i^2 / 2 + nu_i h_i)`, one for each row."""

    precision: Tensor  # `batch_shape x m` precisions `tau`; those of answers that may be slips can be negative
    shift: Tensor  # `batch_shape x m` linear terms `nu`


class Moments(NamedTuple):
    """Moments of the rows with and without their own site, as deviations from a reference where the site is precise."""

    mean: Tensor  # batch x m
    variance: Tensor  # batch x m
    cavity_mean: Tensor  # batch x m; given all other rows
    cavity_variance: Tensor  # batch x m
    reference: Tensor  # batch x m
    deviation: Tensor  # batch x m; mean - reference
    cavity_deviation: Tensor  # batch x m; cavity_mean - reference

    @classmethod
    def with_cavity(cls, mean: Tensor, variance: Tensor, sites: Sites, left: Tensor) -> Moments:
        """From moments with all sites, and the share of each precision that is left without the row's own site."""
        cavity_mean = (mean - sites.shift * variance) / left
        return cls(mean, variance, cavity_mean, variance / left, torch.zeros_like(mean), mean, cavity_mean)


@dataclass(frozen=True, eq=False)
class Factor(ABC):
    """The product of a prior and sites: the Gaussian of the rows that expectation propagation finds.

    With sites of precision `1 / noise` and shift `u / noise` it is the Gaussian of the noiseless rows given rows `u`.
    """

    prior: RowPrior  # prior of `h - mean`
    prior_mean: Tensor  # prior mean of the rows, `batch_shape x m`
    sites: Sites  # sites of all rows that each row stands for, together
    moments: Moments
    cholesky: Tensor  # lower factor, see the subclasses

    @cached_property
    def offset(self) -> Tensor:
        """The linear terms of the sites as functions of `h - prior_mean`, `batch_shape x m`."""
        return self.sites.shift - self.sites.precision * self.prior_mean

    @property
    def log_det(self) -> Tensor:
        """Half of the log determinant of `I + S C S`, with `S` the roots of the sites' precisions; `batch_shape`."""
        return self.cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @abstractmethod
    def times(self, rows: Tensor) -> Tensor:
        """The covariance of all rows times vectors, `batch_shape x k x m`."""

    @abstractmethod
    def latent_given(self, offset: Tensor) -> Tensor:
        """The mean of the latent coordinates at other `offset`s of the sites: `... x k x r` for `... x k x m`."""

    @cached_property
    def latent_mean(self) -> Tensor:
        """The mean of the latent coordinates, `batch_shape x r`."""
        return self.latent_given(self.offset.unsqueeze(-2)).squeeze(-2)

    @property
    @abstractmethod
    def latent_root(self) -> Tensor:
        """An upper triangular `batch_shape x r x r` root of the covariance of the latent coordinates."""

    def shared_given(self, offset: Tensor) -> Tensor:
        """As `latent_given`, of those latent coordinates that several blocks of rows share."""
        return self.latent_given(offset)

    @property
    def shared_root(self) -> Tensor:
        """As `latent_root`, of those latent coordinates that several blocks of rows share."""
        return self.latent_root

    @property
    def shared_coordinates(self) -> tuple[Tensor, Tensor]:
        """Mean and root of the covariance of the latent coordinates that several blocks of rows share."""
        return self.shared_given(self.offset.unsqueeze(-2)).squeeze(-2), self.shared_root

    def covariance_rows(self) -> Map:
        """A function from `k` indices to their rows of the covariance of all rows, `batch_shape x k x m`."""
        m = self.prior.num_rows
        return lambda rows: self.times(torch.nn.functional.one_hot(rows, m).to(self.prior_mean))

    @abstractmethod
    def with_slope(self, value: Tensor, pull: Tensor) -> Tensor:
        """A value whose derivative in the prior covariance `C` is half of `g g^T - (C + T^-1)^-1`, `T` the precisions.

        `g` are the pulls, `batch_shape x m`.
        """


class RowPrior(ABC):
    r"""The Gaussian distribution of `h - mean`, the noiseless part of `m` rows, with covariance `C = F F^T`.

    Rows are linear in *latent coordinates* `z ~ N(0, I_r)`, `h = mean + F z`. Where these are fewer than the rows,
    nothing of size `m x m` need be built.
    """

    has_jitter = False  # whether the covariance has the jitter of rows with less noise, which must not be added twice

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """The number `m` of rows."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number `r` of latent coordinates."""

    @property
    def num_shared(self) -> int:
        """The number of latent coordinates that several blocks of rows share, which come first."""
        return self.rank

    @property
    def is_low_rank(self) -> bool:
        """Whether latent coordinates are fewer than rows."""
        return self.rank < self.num_rows

    @property
    @abstractmethod
    def wide(self) -> LowRankPrior:
        """The prior with the same latent coordinates, those of all rows at once; itself if it is of this form."""

    @property
    @abstractmethod
    def covariance(self) -> Tensor:
        """The covariance as a dense `batch_shape x m x m` tensor."""

    @property
    @abstractmethod
    def variances(self) -> Tensor:
        """The diagonal of the covariance, `batch_shape x m`; differentiable."""

    @abstractmethod
    def map(self, change: Map) -> RowPrior:
        """The prior with its real tensors changed, for instance moved to another device."""

    @abstractmethod
    def select(self, index: Tensor) -> RowPrior:
        """The prior of some rows. By a mask `m`; or, for a single distribution, a batch by integers `... x k`."""

    @classmethod
    def stack(cls, priors: Sequence[RowPrior]) -> RowPrior | None:
        """Priors of one shape as one batch; `None` if their kinds differ or have no batches."""
        return None

    @abstractmethod
    def times(self, latent: Tensor) -> Tensor:
        r"""Rows less their mean, `batch_shape x k x m`, at latent coordinates, `batch_shape x k x r`."""

    @abstractmethod
    def transposed_times(self, rows: Tensor) -> Tensor:
        r"""The transpose of `times`, from `batch_shape x k x m` to `batch_shape x k x r`."""

    @abstractmethod
    def given(self, mean: Tensor, sites: Sites, total: Sites) -> Factor | None:
        """The product of the prior and sites; `None` where rounding leaves no positive definite matrix.

        `sites` are of single rows, which cavities lack; `total` of all rows that each row stands for.
        """

    def minimal_root(self) -> Tensor:
        """A root of the covariance with columns for its rank up to rounding and jitter, `batch_shape x m x r`."""
        return self.wide.root


def eye_like(cholesky: Tensor) -> Tensor:
    """The identity of a matrix's size, dtype and device."""
    return torch.eye(cholesky.shape[-1], dtype=cholesky.dtype, device=cholesky.device)
