"""Priors of rows with their noise, before truncation."""

from __future__ import annotations

from functools import cached_property

import torch
from linear_operator.utils.errors import NanError
from torch import Tensor

from botorch_skewgp.truncated.factorization import (
    RELATIVE_JITTER,
    add_to_diagonal,
    cholesky_with_noise,
    cholesky_with_relative_jitter,
)
from botorch_skewgp.truncated.priors.low_rank import LowRankPrior, Map, SiteProduct, Sites
from botorch_skewgp.truncated.row_factor import standard_normal

MAX_WATCHED = 256  # latent coordinates or rows whose expectations are watched


class NoisyPrior:
    r"""The Gaussian of `u - mean`, rows with noise, of covariance `Gamma`; residuals `k x m`, coordinates `k x r`."""

    def __init__(self, prior: LowRankPrior, noise: Tensor) -> None:
        self.prior, self.noise = prior, noise
        self._has_few_coordinates = prior.num_shared < prior.num_rows

    @property
    def covariance(self) -> Tensor:
        """`Gamma`, `m x m`; not kept, for it is large."""
        return add_to_diagonal(self.prior.covariance, self.noise)

    @cached_property
    def cholesky(self) -> Tensor:
        """The lower Cholesky factor of `Gamma`; noise less than `1e-12` of a row's variance is raised to that, once."""
        if self.prior.has_jitter:
            return cholesky_with_relative_jitter(self.covariance, torch.zeros_like(self.noise))
        return cholesky_with_noise(self.prior.covariance, self.noise)

    @cached_property
    def _min_noise(self) -> Tensor:
        """The noise, raised to the jitter."""
        return torch.maximum(self.noise, RELATIVE_JITTER[torch.float64] * (self.prior.variances + self.noise))

    @cached_property
    def given_rows(self) -> SiteProduct:
        """The latent coordinates given rows of zero residual, noise at least the jitter; raises `NanError` for NaN."""
        none = torch.zeros_like(self.noise)
        sites = Sites(1 / self._min_noise, none)
        product = (self.prior if self._is_enough else self.prior.wide).given(none, sites, sites)
        if product is None:
            raise NanError("The covariance of the rows contains NaN or infinite values.")
        return product

    @property
    def _is_enough(self) -> bool:
        """Whether no noise is less than the jitter."""
        return bool((self.noise == self._min_noise).all())

    @cached_property
    def _precisions(self) -> Tensor:
        """The diagonal of `Gamma^-1`, `m`; by latent coordinates if those that blocks share are fewer than rows."""
        if not (self._has_few_coordinates and self._is_enough):
            return torch.cholesky_inverse(self.cholesky).diagonal()
        left = 1 - self.given_rows.moments.variance / self.noise  # at least noise / own variance; rounding only
        return left.clamp(min=torch.finfo(left.dtype).eps, max=1.0) / self.noise

    def precision(self, residual: Tensor) -> tuple[Tensor, Tensor]:
        r"""The diagonal of `Gamma^-1`, `m`, and its product with residuals, `k x m`."""
        if self._has_few_coordinates and self._is_enough:
            T = 1 / self.noise
            return self._precisions, T * (residual - self.given_rows.times(T * residual))
        return self._precisions, torch.cholesky_solve(residual.mT, self.cholesky).mT

    @property
    def own_variances(self) -> Tensor:
        """The variance of every row given all others; its noise, a lower bound, if latent coordinates are drawn too."""
        return self.noise if self.prior.is_low_rank else 1 / self._precisions

    @property
    def num_normals(self) -> int:
        """The number of standard normal variables from which `colour` makes a draw."""
        return self.prior.num_rows + (self.prior.rank if self._has_few_coordinates else 0)

    def colour(self, normal: Tensor) -> Tensor:
        """Draws of `u - mean`, `k x m`, from standard normals, `k x num_normals`."""
        if not self._has_few_coordinates:
            return normal @ self.cholesky.mT
        r = self.prior.rank
        return self.prior.times(normal[..., :r]) + self.noise.sqrt() * normal[..., r:]

    @property
    def coloured_covariance(self) -> Tensor:
        """The covariance of what `colour` draws, which differs from `Gamma` by a jitter, `m x m`."""
        if self._has_few_coordinates:
            return self.covariance
        variance = self.cholesky.square().sum(-1)
        return torch.diagonal_scatter(self.prior.covariance, variance)

    def expected_latent(self, residual: Tensor) -> Tensor:
        """The mean of the latent coordinates given rows, refined where rows without noise leave others few digits."""
        given, precision = self.given_rows, 1 / self._min_noise
        z = given.latent_given(residual * precision)
        for _ in range(0 if self._is_enough else 2):  # each gains four digits
            pull = self.prior.transposed_times((residual - self.prior.times(z)) * precision) - z
            z = z + pull @ given.latent_root @ given.latent_root.mT
        return z

    def draw_latent(self, residual: Tensor, generator: torch.Generator | None) -> Tensor:
        """Latent coordinates given rows, by Matheron's rule; rows without noise fix their directions exactly."""
        k = residual.shape[-2]
        z = standard_normal((k, self.prior.rank), self.noise, generator)
        noise = self._min_noise.sqrt() * standard_normal((k, self.prior.num_rows), self.noise, generator)
        z = z + self.expected_latent(residual - self.prior.times(z) - noise)
        fixes = self._min_noise > self.noise
        if bool(fixes.any()):
            F = self.prior.root * fixes.unsqueeze(-1)
            z = z + (residual - self.prior.times(z)) @ torch.linalg.pinv(F).mT
        return z

    def expectations(self) -> Map:
        r"""A map from residuals to what diagnostics watch: expectations given rows of up to `MAX_WATCHED` evenly spaced
        latent coordinates, or noiseless rows if these are fewer, and the sum of their squares.
        """
        given, precision = self.given_rows, 1 / self._min_noise
        few, size = self._has_few_coordinates, min(self.prior.num_shared, self.prior.num_rows)
        some = torch.linspace(0, size - 1, min(size, MAX_WATCHED), device=precision.device, dtype=torch.float64)
        some = some.round().long()
        gain = None if few else (precision * given.covariance_rows(some)).mT

        def watched(residual: Tensor) -> Tensor:
            values = given.shared_given(precision * residual)[..., some] if gain is None else residual @ gain
            return torch.cat([values, values.square().sum(-1, keepdim=True)], dim=-1)

        return watched
