r"""Interfaces of Gaussian priors of the rows, and of their products with Gaussian sites and with noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import torch
from torch import Tensor

from botorch_skewgp.truncated.factorization import add_to_diagonal, cholesky_with_noise

Map = Callable[[Tensor], Tensor]
MAX_WATCHED = 256  # latent coordinates or rows whose expectations are watched


class Sites(NamedTuple):
    r"""Gaussian sites `exp(-tau_i h_i^2 / 2 + nu_i h_i)`, one for each row.

    Args:
        precision: The `batch_shape x m` precisions `tau`; those of answers that may be slips can be negative.
        shift: The `batch_shape x m` linear terms `nu`.
    """

    precision: Tensor
    shift: Tensor


class Moments(NamedTuple):
    """Moments of the rows under prior and sites, with and without their own site.

    Where a site is far more precise than the prior, means agree with its own, `nu / tau`, to many digits. They are kept
    as deviations from a reference, that value there and zero elsewhere, as differences of means matter.
    """

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
    r"""The product of a prior and sites, factored: the Gaussian of the rows that expectation propagation finds.

    Args:
        prior: The prior of `h - mean`.
        prior_mean: The prior mean of the rows, `batch_shape x m`.
        sites: The sites of all rows that each row stands for, together.
        moments: Moments of the rows, with and without their own site.
        cholesky: A lower factor, see the subclasses.
    """

    prior: RowPrior
    prior_mean: Tensor
    sites: Sites
    moments: Moments
    cholesky: Tensor

    @property
    def num_foreseen(self) -> int:
        """The number of sweeps for which the present covariance serves, see `responses`."""
        return 2

    @cached_property
    def offset(self) -> Tensor:
        """The linear terms of the sites as functions of `h - prior_mean`, `batch_shape x m`."""
        return self.sites.shift - self.sites.precision * self.prior_mean

    @property
    def log_det(self) -> Tensor:
        """Half of the log determinant of `I + S C S`, with `S` the roots of the sites' precisions; `batch_shape`."""
        return self.cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @property
    @abstractmethod
    def latent_mean(self) -> Tensor:
        """The mean of the latent coordinates, `batch_shape x r`."""

    @property
    @abstractmethod
    def latent_root(self) -> Tensor:
        """A `batch_shape x r x r` root of the covariance of the latent coordinates."""

    @property
    def shared_coordinates(self) -> tuple[Tensor, Tensor]:
        """Mean and root of the covariance of the latent coordinates that several blocks of rows share."""
        return self.latent_mean, self.latent_root

    @abstractmethod
    def covariance_rows(self) -> Map:
        """A function from `k` indices to their rows of the covariance of all rows, `batch_shape x k x m`."""

    @abstractmethod
    def responses(self) -> tuple[Map, Map] | None:
        """Products of the covariance of the rows, and of its squared entries, with vectors; `None` if not at hand.

        Off-diagonal squares are left out where a product with them would cost a factorisation.
        """

    @abstractmethod
    def with_slope(self, value: Tensor, pull: Tensor) -> Tensor:
        r"""A value whose derivative in the prior covariance `C` is half of `g g^T - (C + T^-1)^-1`, `T` the precisions.

        Args:
            value: A `batch_shape` tensor.
            pull: The vectors `g`, `batch_shape x m`.
        """

    def without_spare_parts(self) -> Self:
        """The factor without what only derivatives and further sweeps need."""
        return self


@dataclass(frozen=True, eq=False)
class PriorGivenSites:
    """A prior of rows given the sites of some of them: the mean of `h`, `batch_shape x m`, and the prior around it."""

    mean: Tensor
    prior: RowPrior

    def before(self, latent: Tensor) -> Tensor:
        """The latent coordinates of the prior before, at those of the one after, `batch_shape x k x r`."""
        return latent

    def after(self, latent: Tensor) -> Tensor:
        """The inverse of `before`."""
        return latent


class RowPrior(ABC):
    r"""The Gaussian distribution of `h - mean`, the noiseless part of `m` rows, with covariance `C`.

    Rows are linear in *latent coordinates*. Those of a low-rank covariance `C = F F^T` are `z ~ N(0, I_r)` with `h =
    mean + F z`, and nothing of size `m x m` need be built. Those of a dense one are `h - mean` itself.
    """

    is_low_rank = False  # whether latent coordinates differ from the rows

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """The number `m` of rows."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number `r` of latent coordinates."""

    @property
    def wide(self) -> RowPrior:
        """The prior as a dense or low-rank one, which samplers need; itself if it is one."""
        return self

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
        r"""The prior of some rows.

        Args:
            index: A mask of length `m`; or for a single distribution integers `... x k`, which make a batch.
        """

    @classmethod
    def stack(cls, priors: Sequence[RowPrior]) -> RowPrior | None:
        """Priors of one shape as one batch; `None` if their kinds differ or have no batches."""
        return None

    def kept(self, latent: Tensor | None) -> Tensor | None:
        """The latent coordinates that draws keep beside their rows; `None` for a dense prior."""
        return latent if self.is_low_rank else None

    @abstractmethod
    def times(self, latent: Tensor) -> Tensor:
        r"""Rows less their mean, `batch_shape x k x m`, at latent coordinates, `batch_shape x k x r`."""

    @abstractmethod
    def transposed_times(self, rows: Tensor) -> Tensor:
        r"""The transpose of `times`, from `batch_shape x k x m` to `batch_shape x k x r`."""

    @abstractmethod
    def given(self, mean: Tensor, sites: Sites, total: Sites) -> Factor | None:
        r"""The product of the prior and sites; `None` where rounding leaves no positive definite matrix.

        Args:
            mean: The prior mean, `batch_shape x m`.
            sites: The sites, each that of a single row, which its cavity lacks.
            total: The sites of all rows that each row stands for, together.
        """

    @abstractmethod
    def given_sites(self, which: Tensor, sites: Sites, mean: Tensor) -> PriorGivenSites:
        r"""The prior given the sites of some rows, all of positive precision.

        Args:
            which: A mask of length `m`.
            sites: The sites of these rows, in this order.
            mean: The prior mean of all rows, `batch_shape x m`.
        """

    @abstractmethod
    def with_noise(self, noise: Tensor) -> NoisyPrior:
        """The distribution of `u - mean = h - mean + v`, the noise of variances `batch_shape x m`."""

    @abstractmethod
    def minimal_root(self) -> Tensor:
        """A root of the covariance with columns for its rank up to rounding and jitter, `batch_shape x m x r`."""

    @abstractmethod
    def by_minimal_root(self, latent: Tensor, root: Tensor) -> Tensor:
        """Coordinates by the minimal root, of latent coordinates `batch_shape x r`."""


class NoisyPrior(ABC):
    r"""The Gaussian distribution of `u - mean`, rows with their noise before truncation, of covariance `Gamma`.

    Args:
        prior: The prior of the noiseless parts.
        noise: The variances of the noise, `batch_shape x m`.
    """

    has_full_rank = False  # whether no row is determined by others, up to rounding

    def __init__(self, prior: RowPrior, noise: Tensor) -> None:
        self.prior, self.noise = prior, noise

    @property
    def covariance(self) -> Tensor:
        """`Gamma`, `batch_shape x m x m`; not kept, for it is large."""
        return add_to_diagonal(self.prior.covariance, self.noise)

    @cached_property
    def cholesky(self) -> Tensor:
        """The lower Cholesky factor of `Gamma`; noise less than `1e-12` of a row's variance is raised to that."""
        return cholesky_with_noise(self.prior.covariance, self.noise)

    @cached_property
    def variances(self) -> Tensor:
        """The diagonal of `Gamma`, `batch_shape x m`."""
        return self.prior.variances + self.noise

    def precision(self, residual: Tensor) -> tuple[Tensor, Tensor]:
        r"""The diagonal of `Gamma^-1`, `batch_shape x 1 x m`, and its product with residuals, `batch_shape x k x m`."""
        inverse = torch.cholesky_inverse(self.cholesky)
        return inverse.diagonal(dim1=-2, dim2=-1).unsqueeze(-2), residual @ inverse

    @property
    @abstractmethod
    def num_normals(self) -> int:
        """The number of standard normal variables from which `colour` makes a draw."""

    @abstractmethod
    def colour(self, like: Tensor) -> Map:
        r"""A map from standard normals, `batch_shape x k x num_normals`, to draws of `u - mean`, `batch_shape x k x m`.

        Args:
            like: A tensor of the wanted dtype and device.
        """

    @property
    @abstractmethod
    def coloured_covariance(self) -> Tensor:
        """The covariance of what `colour` draws, which differs from `Gamma` by a jitter, `batch_shape x m x m`."""

    @property
    @abstractmethod
    def own_variances(self) -> Tensor:
        """The variance of every row given all others, or a quick lower bound, `batch_shape x m`."""

    @abstractmethod
    def sample_latent(self, num_draws: int, generator: torch.Generator | None) -> Tensor:
        """Latent coordinates to start chains from, `batch_shape x k x r`, spread no more than draws of the prior."""

    @abstractmethod
    def expected_latent(self, residual: Tensor) -> Tensor:
        """The mean of the latent coordinates given rows, `batch_shape x k x r` for residuals `batch_shape x k x m`."""

    @abstractmethod
    def draw_latent(self, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        """Latent coordinates given rows, `batch_shape x k x r` for residuals `batch_shape x k x m`."""

    @abstractmethod
    def predict(self, residual: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor | None]:
        r"""Locations and scales to draw all rows independently, given the first ones.

        Args:
            residual: The first rows less their mean, `batch_shape x k x m_old`.
            generator: The source of randomness.

        Returns:
            Rows less their mean to draw around, `batch_shape x k x m`, standard deviations to draw with, `batch_shape
            x m`, and the latent coordinates of the former for a low-rank prior.
        """

    @abstractmethod
    def expectations(self) -> Map:
        """The functionals that diagnostics watch, `batch_shape x k x w` for residuals `batch_shape x k x m`.

        Expectations of latent coordinates given rows, up to `MAX_WATCHED` evenly spaced ones, and their squared length.
        """


def evenly(size: int, device: torch.device) -> Tensor:
    """Up to `MAX_WATCHED` of `size` indices, evenly spaced."""
    return torch.linspace(0, size - 1, min(size, MAX_WATCHED), device=device, dtype=torch.float64).round().long()


def eye_like(cholesky: Tensor) -> Tensor:
    """The identity of a matrix's size, dtype and device."""
    return torch.eye(cholesky.shape[-1], dtype=cholesky.dtype, device=cholesky.device)
