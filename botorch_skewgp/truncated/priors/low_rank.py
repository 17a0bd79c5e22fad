r"""Priors given by a root or a covariance, and products with sites: by coordinates, or by rows if these are fewer.

.. [Rasmussen2006] Rasmussen, Williams. Gaussian Processes for Machine Learning, section 3.6. MIT Press 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.truncated.derivatives import Slope, squared_lengths
from botorch_skewgp.truncated.factorization import RELATIVE_JITTER, cholesky_of_precision

MAX_PRECISION = 1e8  # precision of a site over the prior's, beyond which sums of products lose the identity
# Ratio of a site's precision to the prior's beyond which the product's moments are computed as corrections to the site.
PRECISE_SITE = 1e4
Map = Callable[[Tensor], Tensor]


class Sites(NamedTuple):
    """Gaussian sites `exp(-tau_i h_i^2 / 2 + nu_i h_i)`, one for each row.

    Args:
        precision: The precisions `tau`, `m`; those of answers that may be slips can be negative.
        shift: The linear terms `nu`, `m`.
    """

    precision: Tensor
    shift: Tensor


class Moments(NamedTuple):
    r"""Moments of the rows with and without their own site, `m` each.

    A site that is far more precise than the prior is nearly a number, `h_i = r_i = nu_i / tau_i`: what is left, `h_i -
    r_i`, would cancel in a difference of means. So means are kept as deviations from a reference `r_i`, which is zero
    for all other sites. With `B = I + S C S` and `S = diag(tau)^(1/2)`, the mean of `h` given the sites is

        `E h - r = -S^-1 B^-1 S (r - prior mean)`,

    as `C = S^-1 (B - I) S^-1`, and its variances are `(1 - diag(B^-1)) / tau`. Without site `i` the variance is `V_i /
    (1 - tau_i V_i)` and the mean's deviation `(E h_i - r_i) / (1 - tau_i V_i)`, as this site pulls towards `r_i` alone.

    Args:
        mean: The means given all sites.
        variance: The variances `V` given all sites.
        cavity_mean: The means given the sites of all other rows.
        cavity_variance: The variances given these.
        reference: `r`.
        deviation: `mean - reference`.
        cavity_deviation: `cavity_mean - reference`.
    """

    mean: Tensor
    variance: Tensor
    cavity_mean: Tensor
    cavity_variance: Tensor
    reference: Tensor
    deviation: Tensor
    cavity_deviation: Tensor

    @classmethod
    def with_cavity(cls, mean: Tensor, variance: Tensor, sites: Sites) -> Moments:
        """From moments with all sites."""
        left = 1 - sites.precision * variance
        cavity_mean = torch.addcmul(mean, sites.shift, variance, value=-1) / left
        return cls(mean, variance, cavity_mean, variance / left, torch.zeros_like(mean), mean, cavity_mean)

    @property
    def cavity(self) -> tuple[Tensor, Tensor]:
        """Means and variances given all other rows."""
        return self.cavity_mean, self.cavity_variance


class LowRankPrior:
    r"""The Gaussian distribution of `h - mean = F z` of `m` rows, in *latent coordinates* `z ~ N(0, I_r)`."""

    has_jitter = False  # whether the covariance has the jitter of rows with less noise, which must not be added twice

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    @property
    def root(self) -> Tensor:
        """The root `F` as a matrix, `m x r`, which may be large; differentiable."""
        return self.matrix

    @property
    def wide(self) -> LowRankPrior:
        """The prior with the same latent coordinates, those of all rows at once."""
        return self

    @property
    def num_rows(self) -> int:
        """The number `m` of rows."""
        return self.matrix.shape[-2]

    @property
    def rank(self) -> int:
        """The number `r` of latent coordinates."""
        return self.matrix.shape[-1]

    @property
    def num_shared(self) -> int:
        """The number of latent coordinates that several blocks of rows share, which come first."""
        return self.rank

    @property
    def is_low_rank(self) -> bool:
        """Whether latent coordinates are fewer than rows."""
        return self.rank < self.num_rows

    @cached_property
    def covariance(self) -> Tensor:
        """The covariance as a dense `m x m` tensor."""
        F = self.root
        return F @ F.mT

    @property
    def variances(self) -> Tensor:
        """The diagonal of the covariance, `m`; differentiable."""
        return squared_lengths(self.matrix)

    def map(self, change: Map) -> LowRankPrior:
        """The prior with its real tensors changed, for instance moved to another device."""
        return LowRankPrior(change(self.matrix))

    def select(self, index: Tensor) -> LowRankPrior:
        """The prior of some rows, by a mask `m` or by integers `k`."""
        return LowRankPrior(self.root[index])

    def times(self, latent: Tensor) -> Tensor:
        r"""Rows less their mean, `k x m`, at latent coordinates, `k x r`."""
        return latent @ self.matrix.mT

    def transposed_times(self, rows: Tensor) -> Tensor:
        r"""The transpose of `times`, from `k x m` to `k x r`."""
        return rows @ self.matrix

    def information(self, precision: Tensor) -> Tensor:
        r"""`F^T diag(precision) F`, `r x r`; only its lower triangle counts."""
        return self.matrix.mT @ (precision.unsqueeze(-1) * self.matrix)

    @cached_property
    def _sizes(self) -> Tensor:
        """The variances without a graph."""
        return self.variances.detach()

    def cholesky_of_precision(self, precision: Tensor) -> Tensor | None:
        r"""The lower Cholesky factor of `I + F^T diag(precision) F`, not differentiable; `None` if there is none."""
        if bool((precision * self._sizes > MAX_PRECISION).any()) and bool((precision >= 0).all()):
            return cholesky_of_precision(self.root, precision)
        information = self.information(precision)
        cholesky, info = torch.linalg.cholesky_ex(eye_like(information) + information)
        return None if bool(info) else cholesky

    def variances_given(self, cholesky: Tensor) -> Tensor:
        r"""The diagonal of `F (L L^T)^-1 F^T`, `m`, for a lower factor `L`."""
        half = torch.linalg.solve_triangular(cholesky, self.matrix.mT, upper=False)
        return torch.linalg.vector_norm(half, dim=-2).square()  # without a copy of what may be large

    def slope_of_covariance(self, slope: Callable[[], Tensor]) -> Slope:
        """The derivative in what the prior is made of, given that in its covariance, `m x m` and symmetric."""
        return self.matrix, lambda: 2 * slope() @ self.matrix

    def slope(self, pull: Tensor, precision: Tensor, cholesky: Tensor) -> Slope:
        """Likewise where that in `C` is half of `g g^T - (C + T^-1)^-1`, with pulls `g` and precisions `T`."""

        def slope() -> Tensor:
            slope = self.matrix @ -torch.cholesky_inverse(cholesky)
            slope *= precision.unsqueeze(-1)
            return slope.addr_(pull, pull @ self.matrix)

        return self.matrix, slope

    def given(self, mean: Tensor, sites: Sites, total: Sites) -> SiteProduct | None:
        """The product with the `total` sites of all rows that each row stands for, and cavities without one of `sites`;
        `None` where rounding leaves no positive definite matrix.
        """
        is_single = total.precision is sites.precision
        if self.rank >= self.num_rows and is_single and bool((sites.precision >= 0).all()):
            return SquareSiteProduct.of(self, mean, sites)
        cholesky = self.cholesky_of_precision(total.precision)
        if cholesky is None:
            return None
        offset = total.shift - total.precision * mean
        latent = torch.cholesky_solve(self.transposed_times(offset).unsqueeze(-1), cholesky).squeeze(-1)
        moments = Moments.with_cavity(mean + self.times(latent), self.variances_given(cholesky), sites)
        return SiteProduct(self, mean, total, moments, cholesky)

    def minimal_root(self) -> Tensor:
        """A root of the covariance with columns for its rank up to rounding and jitter, `m x r`."""
        return self.root


class DensePrior(LowRankPrior):
    """A prior given by its covariance, of which a root is made if one is needed."""

    def __init__(self, covariance: Tensor, has_jitter: bool = False) -> None:
        self._covariance, self.has_jitter = covariance, has_jitter

    @cached_property
    def matrix(self) -> Tensor:  # type: ignore[override]
        """A root, `m x m`, without a graph; no Cholesky factor, as rows may repeat, or all be noise."""
        values, vectors = torch.linalg.eigh(self._covariance.detach())
        return vectors * values.clamp(min=0).sqrt()  # rounding only

    @property
    def num_rows(self) -> int:
        return self._covariance.shape[-1]

    @property
    def rank(self) -> int:
        return self.num_rows

    @property
    def covariance(self) -> Tensor:
        return self._covariance

    @property
    def variances(self) -> Tensor:
        return self._covariance.diagonal()

    def map(self, change: Map) -> DensePrior:
        return DensePrior(change(self._covariance), self.has_jitter)

    def select(self, index: Tensor) -> DensePrior:
        return DensePrior(self._covariance[index][:, index], self.has_jitter)

    def slope_of_covariance(self, slope: Callable[[], Tensor]) -> Slope:
        return self._covariance, slope

    def slope(self, pull: Tensor, precision: Tensor, cholesky: Tensor) -> Slope:
        def slope() -> Tensor:
            half = torch.linalg.solve_triangular(cholesky, (precision.unsqueeze(-1) * self.matrix).mT, upper=False)
            return 0.5 * (torch.outer(pull, pull) + half.mT @ half - torch.diag(precision))

        return self._covariance, slope

    def minimal_root(self) -> Tensor:
        values, vectors = torch.linalg.eigh(self._covariance)
        rounding = max(self.num_rows * torch.finfo(values.dtype).eps, 4 * RELATIVE_JITTER[values.dtype])
        positive = values > rounding * values[-1:]
        return vectors[:, positive] * values[positive].sqrt()  # the last columns of `matrix`


@dataclass(frozen=True, eq=False)
class SiteProduct:
    """The product of a prior and sites; of precisions `1 / noise` and shifts `u / noise`, the law of `h` given `u`."""

    prior: LowRankPrior  # prior of `h - mean`
    prior_mean: Tensor  # prior mean of the rows, `m`
    sites: Sites  # sites of all rows that each row stands for, together
    moments: Moments
    cholesky: Tensor  # lower factor of the latent coordinates' precision `I + F^T T F`; see the subclasses

    @cached_property
    def offset(self) -> Tensor:
        """The linear terms of the sites as functions of `h - prior_mean`, `m`."""
        return self.sites.shift - self.sites.precision * self.prior_mean

    @property
    def log_det(self) -> Tensor:
        """Half of the log determinant of `I + S C S`, with `S` the roots of the sites' precisions."""
        return self.cholesky.diagonal().log().sum()

    def times(self, rows: Tensor) -> Tensor:
        """The covariance of all rows times vectors, `k x m`."""
        return self.prior.times(self.latent_given(rows))

    def latent_given(self, offset: Tensor) -> Tensor:
        """The mean of the latent coordinates at other `offset`s of the sites: `... x k x r` for `... x k x m`."""
        return torch.cholesky_solve(self.prior.transposed_times(offset).mT, self.cholesky).mT

    @cached_property
    def latent_mean(self) -> Tensor:
        """The mean of the latent coordinates, `r`."""
        return self.latent_given(self.offset.unsqueeze(0)).squeeze(0)

    @cached_property
    def latent_root(self) -> Tensor:
        """An upper triangular `r x r` root of the covariance of the latent coordinates."""
        return inverse_of_transpose(self.cholesky)

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
        return self.shared_given(self.offset.unsqueeze(0)).squeeze(0), self.shared_root

    def covariance_rows(self, rows: Tensor) -> Tensor:
        """The rows at `k` indices of the covariance of all rows, `k x m`."""
        return self.times(torch.nn.functional.one_hot(rows, self.prior.num_rows).to(self.prior_mean))

    def slopes(self, pull: Tensor) -> list[Slope]:
        """As the prior's, with the precisions of the sites; pulls are `m`."""
        return [self.prior.slope(pull, self.sites.precision, self.cholesky)]


@dataclass(frozen=True, eq=False)
class SquareSiteProduct(SiteProduct):
    """The product by rows; `cholesky` is the factor of `B = I + S C S`, `S` the roots of the sites' precisions."""

    @classmethod
    def of(cls, prior: LowRankPrior, prior_mean: Tensor, sites: Sites) -> SquareSiteProduct | None:
        """The product with one site for each row, of precisions that are not negative ([Rasmussen2006]_, 3.6.3)."""
        tau, C = sites.precision, prior.covariance
        S = tau.sqrt()
        SC = S.unsqueeze(-1) * C
        B = SC * S  # passes over matrices are a third of a sweep
        B.diagonal().add_(1)
        cholesky, info = torch.linalg.cholesky_ex(B)
        del B  # as large as the covariance, as are the other matrices here
        # the mean is `prior mean + (C - V^T V) (nu - tau prior mean)` and the covariance `C - V^T V`, `V = L^-1 S C`
        offset = torch.addcmul(sites.shift, tau, prior_mean, value=-1)
        V = torch.linalg.solve_triangular(cholesky, SC, upper=False)
        del SC
        mean = prior_mean + torch.addmv(C @ offset, V.mT, V @ offset, alpha=-1)
        prior_variance = C.diagonal()
        variance = prior_variance - V.square().sum(0)
        del V
        moments = Moments.with_cavity(mean, variance, sites)
        failed, most = torch.stack([info.to(tau), (tau * prior_variance).amax()]).tolist() if len(tau) else (0, 0)
        if failed:
            return None
        if most > PRECISE_SITE:
            moments = _from_references(moments, sites, offset, cholesky, tau * prior_variance > PRECISE_SITE)
        return cls(prior, prior_mean, sites, moments, cholesky)

    def _pulls(self, offset: Tensor) -> Tensor:
        """`(I + T C)^-1` times vectors, `k x m`, as `S B^-1 S^-1` where sites have a precision."""
        S = self.sites.precision.sqrt()
        informed = S > 0
        if bool(informed.all()):
            return S * torch.cholesky_solve((offset / S).mT, self.cholesky).mT
        free = torch.where(informed, 0.0, offset)
        scaled = torch.where(informed, offset / S, 0.0) - S * (free @ self.prior.covariance)
        return free + S * torch.cholesky_solve(scaled.mT, self.cholesky).mT

    def times(self, rows: Tensor) -> Tensor:
        return self._pulls(rows) @ self.prior.covariance

    def latent_given(self, offset: Tensor) -> Tensor:
        return self.prior.transposed_times(self._pulls(offset))

    @cached_property
    def latent_root(self) -> Tensor:
        return inverse_of_transpose(cholesky_of_precision(self.prior.root, self.sites.precision))

    def slopes(self, pull: Tensor) -> list[Slope]:
        def slope() -> Tensor:
            S = self.sites.precision.sqrt()
            inverse = torch.cholesky_inverse(self.cholesky).mul_(S).mul_(S.unsqueeze(-1))
            return torch.addr(inverse, pull, pull, beta=-0.5, alpha=0.5)

        return [self.prior.slope_of_covariance(slope)]


def _from_references(moments: Moments, sites: Sites, offset: Tensor, cholesky: Tensor, precise: Tensor) -> Moments:
    """The moments of rows with precise sites as deviations from references, see `Moments`, others as they are."""
    tau = sites.precision
    half = torch.linalg.solve_triangular(cholesky, eye_like(cholesky), upper=False)
    left = torch.where(precise, half.square().sum(0), 1 - tau * moments.variance)  # 1 - tau V = diag(B^-1)
    residual = torch.where(tau > 0, offset / tau.sqrt(), 0.0)  # S (r - prior mean)
    correction = -(half.mT @ (half @ residual))
    safe = torch.where(precise, tau, 1.0)
    reference = torch.where(precise, sites.shift / safe, 0.0)
    deviation = torch.where(precise, correction / safe.sqrt(), moments.deviation)
    cavity_deviation = torch.where(precise, deviation / left, moments.cavity_deviation)
    variance = torch.where(precise, (1 - left) / safe, moments.variance)
    return Moments(
        reference + deviation,
        variance,
        reference + cavity_deviation,
        variance / left,
        reference,
        deviation,
        cavity_deviation,
    )


def eye_like(cholesky: Tensor) -> Tensor:
    """The identity of a matrix's size, dtype and device."""
    return torch.eye(cholesky.shape[-1], dtype=cholesky.dtype, device=cholesky.device)


def inverse_of_transpose(cholesky: Tensor) -> Tensor:
    """The upper triangular `L^-T` of a lower factor, a root of `(L L^T)^-1`."""
    return torch.linalg.solve_triangular(cholesky.mT, eye_like(cholesky), upper=True)
