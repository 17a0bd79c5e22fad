r"""Rows under a Gaussian process prior: conditioning on numbers, and the truncated normal of the interval rows.

With `f ~ N(mean, K)` at the points `Z` of rows, rows `A f + b + v` are jointly Gaussian. Rows observed as numbers are
conditioned on in closed form (Lemma 1 of [Benavoli2021unified]_); rows observed in intervals are then a truncated
normal whose normaliser is the other factor of the evidence (Lemma 2 and Corollaries 1-3).

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.posteriors import RepresenterMixture
from botorch_skewgp.posteriors.representer_mixture import RootFactor
from botorch_skewgp.rows import Rows
from botorch_skewgp.truncated.draws import Draws, draw
from botorch_skewgp.truncated.evidence import LogNormalizer, bridge_log_normalizer
from botorch_skewgp.truncated.factorization import (
    cholesky_of_precision,
    cholesky_with_noise,
    cholesky_with_relative_jitter,
    missing_noise,
    upper_root_with_relative_jitter,
)
from botorch_skewgp.truncated.priors import (
    BorderedPrior,
    DensePrior,
    LowRankPrior,
    WeightedPrior,
    keeps_digits,
)
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation, expectation_propagation
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

MAX_ENTRIES = 2**20  # of rows of draws copied at a time, which fit into a cache
MIN_PRECISION = 1e-12  # of a site, which then has no effect
MANY_POINTS = 256  # from which on sums over rows of few points use pairs of points
NUM_COMPONENTS = 256  # of an approximation that is wider than the prior in some directions
MIN_EXCESS = 1e-8  # of its variance over the prior's there; less is rounding
FEW_ROWS = 32  # up to which the rows' covariance is factored, whose noise replaces a jitter
LITTLE_NOISE = 1e-6  # of a row, relative to its variance, below which roots are large and factors are kept
MIN_NOISE = 1e-8  # of a number, relative to its variance, with which sums of precisions keep the prior's digits

EvidenceMethod = Literal["exact", "ep"] | Callable[[TruncatedNormal], Tensor]


@dataclass(frozen=True, eq=False)
class RowModel:
    """Rows over points with a Gaussian prior, or over white coordinates `L^-1 (f - mean)` of columns with root `L`."""

    mean: Tensor  # the prior mean at `n` points, in float64
    covariance: Tensor  # the prior covariance `K` there, `n x n`
    rows: Rows
    column_root: Tensor | None = None

    @property
    def column_covariance(self) -> Tensor:
        """The prior covariance of the columns."""
        return self.covariance if self.column_root is None else self.column_root @ self.column_root.mT

    @property
    def numbers(self) -> Rows:
        """The rows observed as numbers."""
        return self.rows.numbers

    @property
    def intervals(self) -> Rows:
        """The rows observed in intervals."""
        return self.rows.intervals

    @cached_property
    def _number_cholesky(self) -> Tensor:
        numbers = self.numbers
        return cholesky_with_noise(numbers.covariance(self.covariance), numbers.noise)

    @cached_property
    def _number_residual(self) -> Tensor:
        return self.numbers.lower - self.numbers.mean(self.mean)

    @cached_property
    def _prior_root(self) -> Tensor:
        """An upper root of the prior covariance at the points."""
        return self.covariance if self.column_root is not None else upper_root_with_relative_jitter(self.covariance)

    def _white(self, values: Tensor) -> Tensor:
        """Values at the points in white coordinates of the prior, `n x k`."""
        return torch.linalg.solve_triangular(self._prior_root, values, upper=True)

    def _representer_weights(self, white: Tensor) -> Tensor:
        """The representer weights of white coordinates, `n x k`."""
        return torch.linalg.solve_triangular(self._prior_root.mT, white, upper=False)

    @cached_property
    def _number_information(self) -> tuple[Tensor, Tensor] | None:
        """`L` and column `h` of white coordinates given many noisy numbers, `N(L^-T h, (L L^T)^-1)`; else `None`."""
        numbers, n = self.numbers, self.mean.shape[-1]
        if numbers.num_rows <= n or (numbers.noise_root is not None and bool((numbers.noise_root != 0).any())):
            return None
        F = numbers.times(self._prior_root)
        if bool((numbers.noise < MIN_NOISE * (F.square().sum(-1) + numbers.noise)).any()):
            return None
        weighted = F / numbers.noise.unsqueeze(-1)
        eye = torch.eye(n, dtype=F.dtype, device=F.device)
        cholesky = cholesky_with_relative_jitter(eye + F.mT @ weighted, scale=torch.ones_like(eye[0]))
        half = torch.linalg.solve_triangular(cholesky, weighted.mT @ self._number_residual.unsqueeze(-1), upper=False)
        return cholesky, half

    @cached_property
    def number_log_density(self) -> Tensor:
        """The log density of the numbers; zero if there are none."""
        if self.numbers.num_rows == 0:
            return self.mean.new_zeros(())
        if self._number_information is not None:
            L, half = self._number_information
            noise = self.numbers.noise
            quadratic = (self._number_residual.square() / noise).sum() - half.square().sum()
            log_det = L.diagonal().log().sum() + 0.5 * (2 * math.pi * noise).log().sum()
            return -0.5 * quadratic - log_det
        L = self._number_cholesky
        white = torch.linalg.solve_triangular(L, self._number_residual.unsqueeze(-1), upper=False).squeeze(-1)
        constant = 0.5 * self.numbers.num_rows * math.log(2 * math.pi)
        return -0.5 * white.square().sum() - L.diagonal().log().sum() - constant

    @cached_property
    def _weights_of_numbers(self) -> Tensor:
        """The representer weights of the mean given the numbers, a column; its differences may be below the jitter."""
        if self.numbers.num_rows == 0:
            return self.mean.new_zeros(self.mean.shape[-1], 1)
        if self._number_information is not None:
            L, half = self._number_information
            return self._representer_weights(torch.linalg.solve_triangular(L.mT, half, upper=True))
        alpha = torch.cholesky_solve(self._number_residual.unsqueeze(-1), self._number_cholesky)
        return self.numbers.weight(self.mean.shape[-1]).mT @ alpha

    @cached_property
    def _points_given_numbers(self) -> tuple[Tensor, Tensor]:
        """Mean and covariance of `f` at the points given the numbers."""
        if self.numbers.num_rows == 0:
            return self.mean, self.covariance
        if self._number_information is not None:
            root = self._point_root
            return self.mean + (root @ self._number_information[1]).squeeze(-1), root @ root.mT
        L, cross = self._number_cholesky, self.numbers.times(self.covariance)
        gain = torch.cholesky_solve(cross, L)
        mean = self.mean + (gain.mT @ self._number_residual.unsqueeze(-1)).squeeze(-1)
        return mean, self.covariance - gain.mT @ cross

    @property
    def works_by_points(self) -> bool:
        """Whether rows go by the points, as many over few of them do, rows that stand for several, and slips."""
        rows = self.intervals
        if rows.count is not None or rows.heights is not None or self._number_information is not None:
            return True
        return rows.num_rows > max(FEW_ROWS, self.mean.shape[-1])

    @cached_property
    def _point_root(self) -> Tensor:
        """An upper triangular root of the covariance of `f` at the points given the numbers."""
        if self.numbers.num_rows == 0:
            return self._prior_root
        if self._number_information is not None:
            L, _ = self._number_information
            return torch.linalg.solve_triangular(L.mT, self._prior_root, upper=True, left=False)
        prior_variance = self.covariance.diagonal().mean()
        return upper_root_with_relative_jitter(self._points_given_numbers[1], scale=prior_variance)

    @cached_property
    def truncated_normal(self) -> TruncatedNormal:
        """The interval rows given the numbers."""
        rows = self.intervals
        if rows.num_rows == 0:
            return TruncatedNormal.empty(self.mean)
        return TruncatedNormal(
            mean=rows.mean(self._points_given_numbers[0]),
            prior=self._prior_by_points if self.works_by_points else self._prior_by_rows,
            lower=rows.lower,
            upper=rows.upper,
            noise=rows.noise,
            count=rows.count,
            heights=rows.heights,
        )

    @property
    def _prior_by_rows(self) -> LowRankPrior:
        """The prior of the interval rows given the numbers, by their covariance."""
        rows = self.intervals
        covariance = rows.covariance(self._points_given_numbers[1])
        # The joint covariance of rows and numbers has this jitter, relative to prior variances, which may be much
        # larger than those given the numbers: draws without it would be too close together. Without numbers too, since
        # normalisers of the same rows with and without numbers are compared.
        prior = covariance if self.numbers.num_rows == 0 else rows.covariance(self.covariance)
        missing = missing_noise(prior.diagonal() + rows.noise, rows.noise)
        del prior
        # Far in a tail it is multiplied by up to 1e12: asymmetric rounding would change the evidence by nats.
        covariance = (covariance + covariance.mT).mul_(0.5)  # in place, for these are large
        covariance.diagonal().add_(missing)
        return DensePrior(covariance, has_jitter=True)

    @property
    def _prior_by_points(self) -> LowRankPrior:
        """The prior of the interval rows given the numbers: low rank, plus shared noise in blocks."""
        rows, n = self.intervals, self.mean.shape[-1]
        if rows.can_merge and rows.num_rows > n >= MANY_POINTS:
            count = 1.0 if rows.count is None else rows.count
            terms = rows.index, rows.coefficient
            if keeps_digits(*terms, self._points_given_numbers[1], count / rows.noise):
                return WeightedPrior(*terms, self._point_root)
        root = rows.times(self._point_root)
        if rows.noise_root is None:
            return LowRankPrior(root)
        return BorderedPrior(root, rows.noise_root, rows.label)

    @torch.no_grad()
    def representer_mixture(self, draws: Draws) -> RepresenterMixture:
        r"""The latent function given the numbers and each of the draws of the interval rows."""
        return self._of_columns(
            self._mixture_by_points(draws) if self.works_by_points else self._mixture_by_rows(draws)
        )

    @torch.no_grad()
    def gaussian_mixture(self, approximation: ExpectationPropagation) -> RepresenterMixture:
        """The Gaussian approximation; of `NUM_COMPONENTS` components where it is wider than the prior."""
        if self.works_by_points and self.intervals.num_rows:
            latent, root = approximation.product.shared_coordinates
            return self._of_columns(
                self._mixture_of_values(latent.unsqueeze(-1), root, self.intervals.heights is not None)
            )
        # a site is a number with Gaussian noise
        precision = approximation.sites.precision.clamp(min=MIN_PRECISION)
        seen = approximation.sites.shift / precision
        sites = replace(self.intervals, lower=seen, upper=seen, noise=1 / precision)
        given = replace(self, rows=Rows.cat([self.numbers, sites]))
        return given.representer_mixture(draw(given.truncated_normal))

    def _of_columns(self, mixture: RepresenterMixture) -> RepresenterMixture:
        """The mixture over the columns themselves."""
        if self.column_root is None:
            return mixture
        weights, root = (
            torch.linalg.solve_triangular(self.column_root.mT, x, upper=True) for x in (mixture.weights, mixture.root)
        )
        return RepresenterMixture(weights, root)

    def _mixture_by_rows(self, draws: Draws) -> RepresenterMixture:
        """`a_s = A^T J^-1 ([numbers; u_s] - mean)` and `R = A^T L^-T` with `J = L L^T` the rows' joint covariance."""
        ordered = Rows.cat([self.numbers, self.intervals])
        n, num_draws = self.mean.shape[-1], draws.num_draws
        numbers = self.numbers.lower.expand(num_draws, -1)
        if self.intervals.num_rows == 0:
            numbers = numbers[:1]
        seen = torch.cat([numbers, draws.rows[: len(numbers)].to(numbers)], dim=-1)
        seen -= ordered.mean(self.mean)  # in place, for these are large
        if self.numbers.num_rows == 0:
            L = self.truncated_normal.gamma_cholesky  # which the draws have needed
        else:
            L = cholesky_with_noise(ordered.covariance(self.covariance), ordered.noise)
        white = torch.linalg.solve_triangular(L, ordered.weight(n), upper=False)  # R^T
        seen = torch.linalg.solve_triangular(L, seen.mT, upper=False)
        weights = (seen.mT @ white).mT  # a draw's side by side
        if self.column_root is None and bool((ordered.noise < LITTLE_NOISE * L.square().sum(-1)).any()):
            return RepresenterMixture(weights, white.mT, factor=RootFactor(L, ordered.weight(n)))
        del L
        root = torch.linalg.qr(white).R.mT if white.shape[0] > n else white.mT
        return RepresenterMixture(weights, root)

    def _mixture_by_points(self, draws: Draws) -> RepresenterMixture:
        """Condition through the values at points: with mean `e_s` and covariance `V` given a draw,
        `a_s = K^-1 (e_s - mean)` and `R R^T = K^-1 - K^-1 V K^-1`. Rows with less noise than the jitter fix some
        directions; the others are integrated out given the noisy rows.
        """
        distribution, n = self.truncated_normal, self.mean.shape[-1]
        mean, noise = distribution.mean, distribution.noisy_prior.noise
        if distribution.num_rows == 0:  # beside many numbers
            return self._mixture_of_values(mean.new_zeros(n, 1), torch.eye(n, dtype=mean.dtype, device=mean.device))
        parts = draws.rows.split(max(1, MAX_ENTRIES // distribution.num_rows))  # to save memory
        noisy = missing_noise(distribution.gamma_diagonal, distribution.noise) == 0
        if bool(noisy.all()):
            given = distribution.noisy_prior.given_rows
            latent = torch.cat([given.shared_given((rows.to(mean) - mean) / noise) for rows in parts])
            return self._mixture_of_values(latent.mT, given.shared_root)
        F = distribution.prior.root
        _, singular, directions = torch.linalg.svd(torch.linalg.qr(F[~noisy], mode="r").R, full_matrices=True)
        tolerance = F.shape[-1] * torch.finfo(F.dtype).eps
        rank = int((singular > tolerance * singular.amax()).sum())
        free = directions[rank:].mT
        latent = (draws.rows[:, ~noisy].to(F) - mean[~noisy]) @ torch.linalg.pinv(F[~noisy], rtol=tolerance).mT
        left, noise = F[noisy] @ free, noise[noisy]
        L = cholesky_of_precision(left, 1 / noise)
        pulls = torch.cat([((rows[:, noisy].to(mean) - mean[noisy]) / noise) @ left for rows in parts])
        known = latent @ (F[noisy].mT @ (left / noise.unsqueeze(-1)))
        latent = latent + torch.cholesky_solve((pulls - known).mT, L).mT @ free.mT
        return self._mixture_of_values(latent[:, :n].mT, torch.linalg.solve_triangular(L, free.mT, upper=False).mT[:n])

    def _mixture_of_values(self, latent: Tensor, latent_root: Tensor, may_widen: bool = False) -> RepresenterMixture:
        """The mixture from latent coordinates of the points given the numbers, `n x S`, and their root, `n x r`."""
        weights = self._weights_of_numbers + self._representer_weights(self._white(self._point_root @ latent))
        known, excess = _information(self._white(self._point_root @ latent_root), may_widen)
        if excess is not None:
            weights = weights + self._representer_weights(excess)
        return RepresenterMixture(weights, self._representer_weights(known))


def _information(root: Tensor, may_widen: bool) -> tuple[Tensor, Tensor | None]:
    """A root of the identity less a covariance, given its root; means of components with any excess over it."""
    eye = torch.eye(len(root), dtype=root.dtype, device=root.device)
    eigenvalues, vectors = torch.linalg.eigh(eye - root @ root.mT)  # between 0 and 1 up to rounding
    known = vectors * eigenvalues.clamp(min=0).sqrt()
    wider = eigenvalues < -MIN_EXCESS
    if not may_widen or not bool(wider.any()):
        return known, None
    excess = vectors[:, wider] * (-eigenvalues[wider]).sqrt()
    return known, excess @ _standard_nodes(excess)


def _standard_nodes(like: Tensor) -> Tensor:
    """Quasi-Monte Carlo nodes of standard normals, `r x S`, whose mean and covariance are exact."""
    r = like.shape[-1]
    num = max(NUM_COMPONENTS, 4 * r)
    nodes = draw_sobol_normal_samples(d=r, n=num, dtype=like.dtype, device=like.device, seed=0)
    nodes = nodes - nodes.mean(0)
    L = torch.linalg.cholesky(nodes.mT @ nodes / num)
    return torch.linalg.solve_triangular(L, nodes.mT, upper=False)


# The evidence


class Evidence(NamedTuple):
    r"""The parts of the evidence ([Benavoli2021unified]_, Corollaries 1-3); that of the prior's rows divides it."""

    number_log_density: Tensor  # the log density of the observations that are numbers, under the Gaussian process
    num_numbers: int  # the number of these
    rows: TruncatedNormal  # the interval rows given the numbers; those of the skew prior come first
    prior_rows: TruncatedNormal  # the rows of the skew prior alone; none for a Gaussian prior

    def log_evidence(self, of_rows: Tensor, of_prior_rows: Tensor) -> Tensor:
        """The log evidence from the log normalisers of its parts."""
        return self.number_log_density + of_rows - of_prior_rows


def log_normalizer(distribution: TruncatedNormal, method: EvidenceMethod, draws: Draws | None = None) -> LogNormalizer:
    """The log normaliser of interval rows and its standard error, `None` if the method has none."""
    if not callable(method) and method not in ("exact", "ep"):
        raise UnsupportedError(
            f"method must be 'exact', 'ep' or a function of interval rows, such as those of botorch_skewgp.papers; got "
            f"{method!r}."
        )
    if distribution.num_rows == 0:
        return LogNormalizer(distribution.mean.new_zeros(()), distribution.mean.new_zeros(()))
    if callable(method):
        return LogNormalizer(method(distribution), None)
    if method == "exact":
        return bridge_log_normalizer(distribution, draws)
    approximation = expectation_propagation(distribution)
    approximation.warn_of_competition()
    return LogNormalizer(approximation.log_normalizer, None)
