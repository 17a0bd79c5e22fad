r"""Expectation propagation for the truncated normal of the rows.

Every row contributes the factor `P(lower < h_i + v_i <= upper | h_i)`, which is replaced by a Gaussian site `exp(-tau_i
h_i^2 / 2 + nu_i h_i)`. The sites are chosen so that the Gaussian approximation and the approximation with one exact
factor put back (the tilted distribution) have the same mean and variance in every row.

.. [Minka2001] T. Minka. Expectation propagation for approximate Bayesian inference. UAI 2001.
.. [Cunningham2011] J. P. Cunningham, P. Hennig, S. Lacoste-Julien. Gaussian probabilities and expectation propagation.
   arXiv:1111.6832.
.. [Seeger2005] M. Seeger. Expectation propagation for exponential families. Technical report, 2005.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from linear_operator.operators import RootLinearOperator
from linear_operator.utils.errors import NanError
from torch import Tensor

from botorch_skewgp.exceptions import ConvergenceWarning
from botorch_skewgp.truncated.acceleration import LONGER, MANY_ROWS, SHORTER, SHORTEST_STEP, Acceleration
from botorch_skewgp.truncated.derivatives import with_slope
from botorch_skewgp.truncated.sites import Gaussian, Sites, multiply_sites, next_sites
from botorch_skewgp.truncated.trajectories import choose_backend
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal, as_double
from botorch_skewgp.truncated.univariate import log_interval_probability, standardise

# Residual at which sweeps from sites nearby may stop once they have reduced it enough.
LOOSE = 1e-4
# Sweeps without progress after which the run ends, and the residual at which this counts as rounding, not as failure.
PATIENCE = 300
ROUNDING = 1e-6
MOST_COMPILED_SWEEPS = 100  # those that converge at all take ten to thirty
ALL_NOISE = 1e-14  # variance of a row's noiseless part over its noise's, up to which it is rounding


@dataclass(frozen=True, eq=False)
class ExpectationPropagation:
    r"""The fixed point: a Gaussian approximation of `h` given the rows, and the log evidence.

    Args:
        distribution: The truncated normal, in float64.
        sites: The sites at the fixed point; of a row that stands for several, the site of one.
        mean: The `batch_shape x m` approximate means of `h` given the rows.
        variance: The `batch_shape x m` approximate variances of `h` given the rows.
        cavity_mean: The `batch_shape x m` means of `h_i` given all other rows.
        cavity_variance: The `batch_shape x m` variances of `h_i` given all other rows.
        cholesky: The lower factor of `I + S C S`, `S = sqrt(tau)`; or of `I + F^T tau F` for a low-rank root; or
            that of the shared coordinates of a bordered covariance.
        residual: The `batch_shape` largest change of a site in units of its row's marginal.
        num_iterations: The number of sweeps made.
        converged: Whether the residual is below the tolerance for the whole batch.
        gaussian: The same moments with the digits that differences of them need.
    """

    distribution: TruncatedNormal
    sites: Sites
    mean: Tensor
    variance: Tensor
    cavity_mean: Tensor
    cavity_variance: Tensor
    cholesky: Tensor
    residual: Tensor
    num_iterations: int
    converged: bool
    gaussian: Gaussian

    @property
    def site_precision(self) -> Tensor:
        """The `batch_shape x m` precisions of the sites."""
        return self.sites.precision

    @property
    def site_shift(self) -> Tensor:
        """The `batch_shape x m` linear terms of the sites."""
        return self.sites.shift

    @cached_property
    def _total(self) -> Sites:
        """The sites of all rows that a row stands for, together."""
        return Sites(*(self.distribution.times_count(entry) for entry in self.sites))

    @cached_property
    def _offset(self) -> Tensor:
        return self._total.shift - self._total.precision * self.distribution.mean

    @cached_property
    def in_latent_coordinates(self) -> ExpectationPropagation:
        """The same as of a dense or low-rank covariance, in the latent coordinates that samplers work in."""
        bordered = self.distribution.bordered
        if bordered is None:
            return self
        covariance: Tensor | RootLinearOperator = bordered.to_dense()
        if self.distribution.row_root is not None:
            covariance = RootLinearOperator(bordered.wide_root)
        distribution = replace(self.distribution, covariance=covariance)
        gaussian = multiply_sites(distribution, self.sites)
        assert gaussian is not None
        return replace(self, distribution=distribution, cholesky=gaussian.cholesky, gaussian=gaussian)

    @cached_property
    def latent_mean(self) -> Tensor:
        """The approximate posterior mean of the latent coordinates, `batch_shape x r`."""
        if self.gaussian.product is not None:
            return self.in_latent_coordinates.latent_mean
        if self.distribution.row_root is None:
            return self.mean - self.distribution.mean
        projected = self.distribution.row_root.transposed_times(self._offset.unsqueeze(-2)).mT
        return torch.cholesky_solve(projected, self.cholesky).squeeze(-1)

    @cached_property
    def latent_root(self) -> Tensor:
        """A `batch_shape x r x r` root of the approximate posterior covariance of the latent coordinates."""
        if self.gaussian.product is not None:
            return self.in_latent_coordinates.latent_root
        if self.distribution.row_root is not None:
            eye = torch.eye(self.cholesky.shape[-1], dtype=self.cholesky.dtype, device=self.cholesky.device)
            return torch.linalg.solve_triangular(self.cholesky.mT, eye, upper=True)
        C, S = self.distribution.dense_covariance, self.sites.precision.sqrt()
        V = torch.linalg.solve_triangular(self.cholesky, S.unsqueeze(-1) * C, upper=False)
        eigenvalues, vectors = torch.linalg.eigh(C - V.mT @ V)  # singular where a row occurs twice
        return vectors * eigenvalues.clamp(min=0).sqrt().unsqueeze(-2)

    @property
    def shared_coordinates(self) -> tuple[Tensor, Tensor]:
        """Mean and root of the covariance of a low-rank root's coordinates; those shared by all if bordered."""
        product = self.gaussian.product
        if product is None:
            return self.latent_mean, self.latent_root
        eye = torch.eye(len(self.cholesky), dtype=self.cholesky.dtype, device=self.cholesky.device)
        return product.latent_mean(self._offset), torch.linalg.solve_triangular(self.cholesky.mT, eye, upper=True)

    @cached_property
    def base(self) -> Tensor:
        """Logarithm of the integral of prior times sites, of shape `batch_shape`."""
        sites, reference = self._total, self.gaussian.reference
        return self._base_at_reference + (sites.shift * reference - 0.5 * sites.precision * reference.square()).sum(-1)

    @cached_property
    def _base_at_reference(self) -> Tensor:
        """`base`, where every site is divided by its value at its reference."""
        mu, reference, deviation = self.distribution.mean, self.gaussian.reference, self.gaussian.deviation
        product = self.gaussian.product
        log_det = self.cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1) if product is None else product.log_det
        return 0.5 * (self._reference_shift * (mu - reference) + self._offset * deviation).sum(-1) - log_det

    @cached_property
    def _reference_shift(self) -> Tensor:
        """The linear terms of the sites as functions of `h - reference`."""
        reference = self.gaussian.reference
        return torch.where(reference == 0, self._total.shift, torch.zeros_like(reference))

    @property
    def mean_slope(self) -> Tensor:
        """The derivative of `base` in the prior mean, `C^-1 (E h - mean)`; `batch_shape x m`."""
        return self._reference_shift - self._total.precision * self.gaussian.deviation

    @property
    def log_normalizer(self) -> Tensor:
        r"""EP's approximation of `log P(lower < u <= upper)`, of shape `batch_shape`.

        Differentiable once in every tensor of the distribution. At the fixed point the derivatives with respect to
        sites and cavities vanish [Seeger2005]_, so that both are held and only the explicit dependence is
        differentiated; nothing is unrolled.
        """
        return _log_normalizer(self)


def _log_normalizer(ep: ExpectationPropagation) -> Tensor:
    distribution, tau, total = ep.distribution, ep.sites.precision, ep._total.precision
    nu = torch.where(ep.gaussian.reference == 0, ep.sites.shift, torch.zeros_like(tau))
    cavity_mean, cavity_variance, cavity_deviation = ep.cavity_mean, ep.cavity_variance, ep.gaussian.cavity_deviation
    variance = cavity_variance + distribution.noise
    certain = variance <= 0
    scale = torch.where(certain, torch.ones_like(variance), variance).sqrt()
    log_factor = log_interval_probability(
        standardise(distribution.lower, cavity_mean, scale), standardise(distribution.upper, cavity_mean, scale)
    )
    holds = (distribution.lower < cavity_mean) & (cavity_mean <= distribution.upper)
    log_factor = torch.where(certain, torch.where(holds, 0.0, -torch.inf).to(log_factor), log_factor)
    spread = 1 + tau * cavity_variance
    quadratic = 2 * cavity_deviation * nu + nu.square() * cavity_variance - tau * cavity_deviation.square()
    log_site = 0.5 * quadratic / spread - 0.5 * spread.log()
    value = distribution.times_count(log_factor - log_site).sum(-1) + ep._base_at_reference.detach()
    if not torch.is_grad_enabled():
        return value
    # d/dC of `base` is (g g^T - R) / 2 and d/dmean is g, with R = (C + tau^-1)^-1 and g = C^-1 (E h - mean).
    product = ep.gaussian.product
    if product is not None:
        value = product.with_slope(value, ep.mean_slope.detach())
        return with_slope(value, distribution.mean, ep.mean_slope.detach())
    root = distribution.row_root
    if root is not None and root.requires_grad:
        value = root.with_slope(value, ep.mean_slope.detach(), total, ep.cholesky)
    covariance = distribution.covariance if root is None else None
    if covariance is not None and distribution.dense_covariance.requires_grad:
        C = distribution.dense_covariance
        with torch.no_grad():
            inverse, S = ep.gaussian.inverse, tau.sqrt()
            if inverse is None:
                half = torch.linalg.solve_triangular(ep.cholesky, torch.diag_embed(S), upper=False)
                R = half.mT @ half
            else:
                R = S.unsqueeze(-1) * inverse * S.unsqueeze(-2)
            g = ep.mean_slope.unsqueeze(-1)
            slope = 0.5 * (g @ g.mT - R)
        value = with_slope(value, C, slope)
    if distribution.mean.requires_grad:
        value = with_slope(value, distribution.mean, ep.mean_slope.detach())
    return value


def _residual(distribution: TruncatedNormal, gaussian: Gaussian, old: Sites, new: Sites, all_noise: Tensor) -> Tensor:
    """The largest change of a site, or of all a row stands for, in units of its row's marginal; `batch_shape`."""
    # a row that is all noise tells nothing, and rounding may leave the rest of it a variance below zero
    variance = torch.where(all_noise, torch.zeros_like(gaussian.variance), gaussian.variance)
    precision = (new.precision - old.precision).abs() * variance
    # the shift's change at the marginal's mean, where the site acts
    shift = (new.shift - old.shift - (new.precision - old.precision) * gaussian.mean).abs() * variance.sqrt()
    change = distribution.times_count(torch.maximum(precision, shift))
    return change.amax(-1) if change.shape[-1] else change.sum(-1)


def expectation_propagation(
    distribution: TruncatedNormal,
    initial_sites: Sites | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 1000,
    reduction: float = 0.0,
) -> ExpectationPropagation:
    r"""Run parallel expectation propagation to its fixed point.

    All sites are updated at once, in float64. The step towards the new sites is shortened where the residual grows
    and lengthened again where it falls, for each distribution of the batch by itself.

    Args:
        distribution: The truncated normal; one- and two-sided rows, with or without noise.
        initial_sites: Sites to start from, for instance those of nearby hyperparameters; zero sites otherwise.
        tolerance: The largest change of a site, in units of its row's marginal, at which the sweeps stop.
        max_iterations: The largest number of sweeps.
        reduction: Sweeps may also stop where the change is below `LOOSE` and this part of that in the first one.

    Returns:
        The fixed point. A `ConvergenceWarning` is issued where it was not reached.

    Raises:
        NanError: If the covariance contains NaN or infinite values.
    """
    distribution = as_double(distribution)
    with torch.no_grad():
        none = Sites(torch.zeros_like(distribution.mean), torch.zeros_like(distribution.mean))
        sites = none if initial_sites is None else Sites(*(entry.to(distribution.mean) for entry in initial_sites))
        sites, num_ahead = _approached(distribution, sites, tolerance, max_iterations)
        gaussian = multiply_sites(distribution, sites)
        if gaussian is None:  # a start that this covariance does not admit
            sites, gaussian = none, multiply_sites(distribution, none)
        if gaussian is None:  # with zero sites the matrix to factor is the identity plus zero times the covariance
            raise NanError("The covariance of the rows contains NaN or infinite values.")
        all_noise = distribution.gamma_diagonal - distribution.noise <= ALL_NOISE * distribution.noise
        step = torch.ones_like(distribution.mean[..., :1])
        previous = torch.full_like(step.squeeze(-1), torch.inf)
        acceleration = Acceleration(distribution)
        best: tuple[Tensor, Sites] | None = None
        iteration, last_progress, progress = 0, 0, torch.full_like(previous, torch.inf)
        while True:
            iteration += 1
            target = next_sites(distribution, gaussian, sites)
            residual = _residual(distribution, gaussian, sites, target, all_noise)
            if best is None or bool((residual < best[0]).any()):
                best = (residual, sites) if best is None else _keep_better(best, residual, sites)
            if iteration == 1:
                enough = (reduction * residual).clamp(max=LOOSE).clamp(min=tolerance)
            converged = bool((residual <= enough).all())
            if bool((best[0] < 0.5 * progress).any()):
                last_progress, progress = iteration, torch.minimum(best[0], progress)
            if converged or iteration >= max_iterations or iteration - last_progress > PATIENCE:
                break
            grew = (residual > previous).unsqueeze(-1)
            shorter, longer = (SHORTER * step).clamp(min=SHORTEST_STEP), (LONGER * step).clamp(max=1.0)
            step = torch.where(grew & ~acceleration.taken, shorter, longer)
            previous = residual
            ahead = acceleration(gaussian, sites, target, residual.unsqueeze(-1), grew, step == 1)
            del gaussian  # its factors are as large as those to come
            moved = _move(distribution, sites, ahead, step)
            if moved is None:
                break
            sites, gaussian = moved
        if not converged:
            assert best is not None
            residual, sites = best
            gaussian = multiply_sites(distribution, sites)
            assert gaussian is not None
            converged = bool((residual <= max(tolerance, ROUNDING)).all()) and iteration < max_iterations
        if not converged:
            warnings.warn(
                f"Expectation propagation stopped after {iteration} sweeps with sites still changing by "
                f"{float(residual.max()):.1e} of a standard deviation (asked for: {tolerance:.0e}). Give the rows more "
                "noise, merge points that are nearly equal, state intervals far narrower than the prior as numbers, "
                "or raise max_iterations.",
                ConvergenceWarning,
                stacklevel=2,
            )
    if not torch.is_grad_enabled():  # it is large, and for derivatives only
        gaussian = gaussian._replace(inverse=None)
    return ExpectationPropagation(
        distribution=distribution,
        sites=sites,
        mean=gaussian.mean,
        variance=gaussian.variance,
        cavity_mean=gaussian.cavity_mean,
        cavity_variance=gaussian.cavity_variance,
        cholesky=gaussian.cholesky,
        residual=residual,
        num_iterations=max(num_ahead - 1, 0) + iteration,  # the first of these repeats the last one ahead
        converged=converged,
        gaussian=gaussian,
    )


@torch.no_grad()
def product_of_sites(distribution: TruncatedNormal, sites: Sites) -> ExpectationPropagation:
    r"""The Gaussian approximation with sites that are known, such as those of the same rows in other coordinates.

    Args:
        distribution: The truncated normal.
        sites: The sites.

    Raises:
        NanError: If the covariance does not admit them.
    """
    distribution = as_double(distribution)
    gaussian = multiply_sites(distribution, sites)
    if gaussian is None:
        raise NanError("The covariance of the rows does not admit these sites.")
    return ExpectationPropagation(
        distribution=distribution,
        sites=sites,
        mean=gaussian.mean,
        variance=gaussian.variance,
        cavity_mean=gaussian.cavity_mean,
        cavity_variance=gaussian.cavity_variance,
        cholesky=gaussian.cholesky,
        residual=torch.zeros_like(gaussian.mean[..., 0]),
        num_iterations=0,
        converged=True,
        gaussian=gaussian,
    )


def _approached(
    distribution: TruncatedNormal, sites: Sites, tolerance: float, max_iterations: int
) -> tuple[Sites, int]:
    """Where compiled sweeps lead from the given sites, and how many there were; none of many rows, or elsewhere."""
    m, device = distribution.num_rows, distribution.mean.device
    single = distribution.count is None and distribution.bordered is None
    if not 0 < m < MANY_ROWS or not single or choose_backend("auto", device) != "numba":
        return sites, 0
    from botorch_skewgp.truncated.compiled_propagation import approach

    return approach(distribution, sites, 0.5 * tolerance, min(max_iterations, MOST_COMPILED_SWEEPS))


def _move(distribution: TruncatedNormal, old: Sites, new: Sites, step: Tensor) -> tuple[Sites, Gaussian] | None:
    """Sites part of the way to new ones, the farthest of ever shorter ways that leaves a distribution."""
    for _ in range(30):
        sites = Sites(*(a + step * (b - a) for a, b in zip(old, new, strict=True)))
        gaussian = multiply_sites(distribution, sites)
        if gaussian is not None:
            return sites, gaussian
        step = 0.5 * step
    return None


def _keep_better(best: tuple[Tensor, Sites], residual: Tensor, sites: Sites) -> tuple[Tensor, Sites]:
    """The smaller residual and its sites, for each distribution of the batch."""
    better = residual < best[0]
    kept = (torch.where(better.unsqueeze(-1), new, old) for old, new in zip(best[1], sites, strict=True))
    return torch.where(better, residual, best[0]), Sites(*kept)
