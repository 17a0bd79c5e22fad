r"""Elliptical slice sampling of the noiseless rows around an expectation-propagation Gaussian.

References:

.. [Murray2010elliptical]
    I. Murray, R. P. Adams, and D. J. C. MacKay. Elliptical slice sampling. International Conference on
    Artificial Intelligence and Statistics, 2010.

.. [Nishihara2014parallel]
    R. Nishihara, I. Murray, and R. P. Adams. Parallel MCMC with generalized elliptical slice sampling. Journal of
    Machine Learning Research, 15, 2014.

.. [Cornish1938moments]
    E. A. Cornish, R. A. Fisher. Moments and cumulants in the specification of distributions. Revue de l'Institut
    International de Statistique, 5, 1938.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from botorch_skewgp.truncated.sampler import Sampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import (
    interval_moments,
    inverse_normal_cdf,
    log_interval_probability,
    log_normal_cdf,
    log_normal_density,
    normal_cdf,
    normal_hazard,
    sample_interval,
)

TWO_PI = 2 * math.pi
FAR = {torch.float64: 30.0, torch.float32: 10.0}  # standard deviations, beyond which probabilities lose their digits
MAX_ENTRIES = 2**18  # of rows that are worked on at a time, which a cache can hold
LEAST_DRAWS = 32  # at a time


class SiteApproximation(Protocol):
    r"""A Gaussian approximation of `h` given the rows: the prior of `h` times one Gaussian site per row.

    The site of row `i` is `exp(-tau_i h_i^2 / 2 + nu_i h_i)`. The result of expectation propagation is one.
    """

    @property
    def site_precision(self) -> Tensor:
        """The sites' `tau`, `batch_shape x m`."""

    @property
    def site_shift(self) -> Tensor:
        """The sites' `nu`, `batch_shape x m`."""

    @property
    def latent_mean(self) -> Tensor:
        """The mean in latent coordinates, `batch_shape x r`."""

    @property
    def latent_root(self) -> Tensor:
        """A root of the covariance in latent coordinates, `batch_shape x r x r`."""


class CollapsedEllipticalSliceSampler(Sampler):
    r"""Elliptical slice sampling of `h`, the rows without their noise, which is integrated out.

    Given the rows, the density of `h` is its prior times the probabilities `P(lower < h + v <= upper)`. An ellipse
    through the chain's place and a draw of an approximating Gaussian is searched for a place where the density
    relative to that Gaussian exceeds a random level [Murray2010elliptical]_, [Nishihara2014parallel]_. The
    stationary distribution is exact whatever the approximation; the better it is, the fewer evaluations are needed.
    Rows `u` are independent truncated normals given `h`, and drawn when asked for.

    Positions are latent coordinates of `h`, see `TruncatedNormal`.

    Args:
        distribution: The truncated normal to draw from; every row must have noise.
        expectation_propagation: The approximating Gaussian.
        num_inner_steps: The number of slice updates in one step; it thins the chains.

    Raises:
        ValueError: If a row has no noise, or if `num_inner_steps` is not positive.

    Example:
        >>> sampler = CollapsedEllipticalSliceSampler(distribution, expectation_propagation(distribution))
        >>> state = sampler.init(*feasible_start(distribution, num_chains=16, generator=generator))
        >>> state, positions, info = sampler.run(state, num_steps=100, generator=generator)
        >>> rows = sampler.rows(positions, generator)
    """

    def __init__(
        self, distribution: TruncatedNormal, expectation_propagation: SiteApproximation, num_inner_steps: int = 5
    ) -> None:
        super().__init__(distribution)
        if not bool((distribution.noise > 0).all()):
            raise ValueError(
                "CollapsedEllipticalSliceSampler integrates the noise out and needs a positive variance in every "
                "row. Use ReflectiveEllipticalSliceSampler where rows have no noise."
            )
        if num_inner_steps < 1:
            raise ValueError(f"num_inner_steps must be positive; got {num_inner_steps}.")
        self.num_inner_steps = num_inner_steps
        like = distribution.mean
        # of all rows that a row stands for together
        self._precision = distribution.times_count(expectation_propagation.site_precision.to(like))
        self._shift = distribution.times_count(expectation_propagation.site_shift.to(like))
        self._latent_mean = expectation_propagation.latent_mean.to(like).unsqueeze(-2)
        self._latent_root = expectation_propagation.latent_root.to(like)
        self._scale = distribution.noise.sqrt()
        has_lower, has_upper = distribution.lower.isfinite(), distribution.upper.isfinite()
        self._one_bound = bool((has_lower != has_upper).all())
        self._bound = torch.where(has_lower, distribution.lower, distribution.upper)
        self._margin = (has_lower.to(like) - has_upper.to(like)) / self._scale  # of h - bound, where there is one bound

    def init(self, rows: Tensor, latent: Tensor | None = None) -> SamplerState:
        r"""Make a state from feasible rows.

        Args:
            rows: A `batch_shape x num_chains x m` tensor of values of `u` inside the bounds; not used if `latent` is
                given.
            latent: A `batch_shape x num_chains x r` tensor of latent coordinates of `h` at these rows. For a dense
                covariance, `E[h | u]` takes its place where it is missing.

        Raises:
            ValueError: If `latent` is needed and missing, or if the density at the start is not finite.
        """
        if latent is None:
            if self.distribution.row_root is not None:
                raise ValueError("A low-rank covariance needs the latent coordinates of the rows.")
            residual = (rows - self.distribution.mean.unsqueeze(-2)).mT
            latent = (
                self.distribution.dense_covariance @ torch.cholesky_solve(residual, self.distribution.gamma_cholesky)
            ).mT
        batch, chains = self.distribution.batch_shape, latent.shape[-2]
        h = self.distribution.noiseless(latent).reshape(-1, self.distribution.num_rows)
        value = self._log_ratio(h, None, chains).reshape(*batch, chains)
        if not bool(value.isfinite().all()):
            raise ValueError("The density at the start is not finite; feasible_start finds a better one.")
        return SamplerState(position=latent, log_likelihood=value)

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Update every chain `num_inner_steps` times; the info counts evaluations of the density."""
        assert state.log_likelihood is not None
        position, value = state.position, state.log_likelihood
        evaluations = torch.zeros_like(value, dtype=torch.long)
        for _ in range(self.num_inner_steps):
            position, value, needed = self._update(position, value, generator)
            evaluations = evaluations + needed
        return SamplerState(position, value), SamplerInfo(evaluations)

    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw rows `u`, `... x m`, given the noiseless parts at positions `... x r`: independent truncated normals.

        A row that stands for several gets the mean of theirs: a single one is exact, that of more has its exact mean,
        variance and skewness.
        """
        distribution = self.distribution
        batch, middle = distribution.batch_shape, positions.shape[len(distribution.batch_shape) : -1]
        flat = positions.reshape(*batch, -1, positions.shape[-1])
        rows = flat.new_empty(*flat.shape[:-1], distribution.num_rows)
        size = max(LEAST_DRAWS, MAX_ENTRIES // max(1, distribution.mean.numel()))
        for first in range(0, flat.shape[-2], size):
            rows[..., first : first + size, :] = self._rows(flat[..., first : first + size, :], generator)
        return rows.reshape(*batch, *middle, -1)

    def _rows(self, positions: Tensor, generator: torch.Generator | None) -> Tensor:
        """Rows at positions `batch_shape x k x r`."""
        distribution = self.distribution
        h, scale = distribution.noiseless(positions), self._scale.unsqueeze(-2)
        lower, upper = distribution.lower.unsqueeze(-2), distribution.upper.unsqueeze(-2)

        def uniform(shape: torch.Size) -> Tensor:
            level = torch.rand(shape, dtype=h.dtype, device=h.device, generator=generator)
            return level.clamp_(min=0.25 * torch.finfo(h.dtype).eps)  # in the open interval (0, 1)

        if distribution.count is None:
            standard = self._standard_draws(h, uniform(h.shape))
        else:
            one = (distribution.count == 1).reshape(-1)
            if not bool(one.any()):
                standard = self._standard_means(h, uniform(h.shape))
            else:
                standard = torch.empty_like(h)
                for draw, which in ((self._standard_draws, one), (self._standard_means, ~one)):
                    which = which.nonzero().squeeze(-1)
                    part = h.index_select(-1, which)
                    standard.index_copy_(-1, which, draw(part, uniform(part.shape), which))
        # Rounding only: the draw is inside the standardised interval.
        return torch.maximum(torch.minimum(h + scale * standard, upper), lower)

    def _standard_draws(self, h: Tensor, uniform: Tensor, which: Tensor | slice = slice(None)) -> Tensor:
        """The noise of some rows at `h`, in units of its deviation, that puts them inside their bounds."""
        if self._one_bound:
            margin = self._margins(h, which)
            if float(margin.amin()) >= -FAR[margin.dtype]:
                below = inverse_normal_cdf(uniform * normal_cdf(margin))
                return -self._margin[..., which].sign().unsqueeze(-2) * below
        return sample_interval(*self._standard_bounds(h, which), uniform)

    def _standard_means(self, h: Tensor, uniform: Tensor, which: Tensor | slice = slice(None)) -> Tensor:
        """The mean noise of the rows that each of some rows stands for, in the same units."""
        assert self.distribution.count is not None
        mean, variance, skewness = self._moments(h, which)
        count = self.distribution.count[..., which].unsqueeze(-2).to(h)
        normal = inverse_normal_cdf(uniform)
        # The expansion of [Cornish1938moments]_; what it leaves out is of order 1 / count, and averages over rows.
        normal = normal + (normal.square() - 1) * (skewness / (6 * count.sqrt()))
        return mean + (variance / count).sqrt() * normal

    def _margins(self, h: Tensor, which: Tensor | slice) -> Tensor:
        """How far some rows are inside their only bound, in units of the noise."""
        return (h - self._bound[..., which].unsqueeze(-2)).mul_(self._margin[..., which].unsqueeze(-2))

    def _standard_bounds(self, h: Tensor, which: Tensor | slice) -> tuple[Tensor, Tensor]:
        """The bounds of some rows' noise in units of its deviation."""
        lower, upper = (x[..., which].unsqueeze(-2) for x in (self.distribution.lower, self.distribution.upper))
        scale = self._scale[..., which].unsqueeze(-2)
        return (lower - h) / scale, (upper - h) / scale

    def _moments(self, h: Tensor, which: Tensor | slice) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, variance and skewness of the standardised noise of some rows at `h`, `batch_shape x k x m`."""
        if self._one_bound:
            margin = self._margins(h, which)
            hazard = normal_hazard(margin)
            excess = margin + hazard
            variance = 1 - hazard * excess
            third = hazard * (excess * (excess + hazard) - 1)
            skewness = third / (variance * variance.sqrt())
            far = margin < -FAR[margin.dtype]  # exponential there, where differences cancel
            if bool(far.any()):
                variance = torch.where(far, margin.square().reciprocal(), variance)
                skewness = torch.where(far, 2.0, skewness)
            sign = self._margin[..., which].sign().unsqueeze(-2)
            return sign * hazard, variance, sign * skewness
        bounds = self._standard_bounds(h, which)
        log_probability, mean, variance = interval_moments(*bounds)
        pulls = [
            torch.where(bound.isfinite(), bound.square() * torch.exp(log_normal_density(bound) - log_probability), 0.0)
            for bound in bounds
        ]
        third = 2 * mean + pulls[0] - pulls[1] - 3 * mean * variance - mean.pow(3)
        return mean, variance, (third / variance.pow(1.5)).nan_to_num(0.0).clamp(-2, 2)  # cancels in narrow intervals

    def latent(self, positions: Tensor) -> Tensor | None:
        """The positions, `... x r`, for a low-rank covariance; `None` for a dense one."""
        return None if self.distribution.row_root is None else positions

    def _log_ratio(self, h: Tensor, chain: Tensor | None, num_chains: int) -> Tensor:
        """Log density relative to the approximating Gaussian, up to a constant, at rows of `h`, `k x m`.

        `chain` holds the places of these rows among all chains of the whole batch; all of them if `None`.
        """
        precision, shift = self._precision, self._shift
        if self.distribution.batch_shape.numel() == 1:
            of_sites = 0.5 * (h.square() @ precision.reshape(-1)) - h @ shift.reshape(-1)
            return self._log_probability(h, None) + of_sites
        if chain is None:
            chain = torch.arange(h.shape[0], device=h.device)
        element = chain // num_chains
        precision, shift = (p.flatten(0, -2)[element] for p in (precision, shift))
        return self._log_probability(h, element) + ((0.5 * precision * h - shift) * h).sum(-1)

    def _log_probability(self, h: Tensor, element: Tensor | None) -> Tensor:
        """Log probability that all rows are inside their bounds given rows of `h`, `k x m`; `k`.

        `element` holds the places of these rows in the batch; `None` if there is no batch.
        """
        distribution = self.distribution

        def of(parameter: Tensor) -> Tensor:
            return parameter.reshape(1, -1) if element is None else parameter.flatten(0, -2)[element]

        if self._one_bound:
            value = _log_terms(h.sub(of(self._bound)).mul_(of(self._margin)))
        else:
            scale = of(self._scale)
            bounds = ((of(bound) - h) / scale for bound in (distribution.lower, distribution.upper))
            value = log_interval_probability(*bounds)
        return value.sum(-1) if distribution.count is None else (value * of(distribution.count)).sum(-1)

    def _update(
        self, position: Tensor, value: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One slice update of every chain. Chains that have found their place are left alone while others search."""

        def uniform(shape: torch.Size) -> Tensor:
            return torch.rand(shape, dtype=position.dtype, device=position.device, generator=generator)

        centred = position - self._latent_mean
        normal = torch.randn(position.shape, dtype=position.dtype, device=position.device, generator=generator)
        direction = normal @ self._latent_root.mT
        # On the ellipse h is linear in cosine and sine, so that an evaluation costs O(m) and needs no product.
        middle = self.distribution.noiseless(self._latent_mean)
        root = self.distribution.row_root
        h_cosine, h_sine = (
            (part if root is None else root.times(part)).reshape(-1, self.distribution.num_rows)
            for part in (centred, direction)
        )
        h_middle = middle.expand(*position.shape[:-1], -1).reshape(h_cosine.shape)

        num_chains = position.shape[-2]
        level = (value + uniform(value.shape).log()).flatten()
        theta = TWO_PI * uniform(value.shape).flatten()
        high, low = theta.clone(), theta - TWO_PI
        found = value.flatten().clone()
        evaluations = torch.zeros_like(found, dtype=torch.long)
        searching = torch.arange(found.shape[0], device=found.device)
        while searching.numel() > 0:
            angle = theta[searching].unsqueeze(-1)
            h = h_middle[searching] + h_cosine[searching] * angle.cos() + h_sine[searching] * angle.sin()
            proposed = self._log_ratio(h, searching, num_chains)
            evaluations[searching] += 1
            found[searching] = proposed
            searching = searching[~(proposed > level[searching])]
            angle = theta[searching]
            high[searching] = torch.where(angle >= 0, angle, high[searching])
            low[searching] = torch.where(angle < 0, angle, low[searching])
            width = high[searching] - low[searching]
            theta[searching] = low[searching] + uniform(searching.shape) * width
            # Rounding only: a level within the last digits of the present value may be met nowhere; the chain stays.
            closed = searching[width < 4 * torch.finfo(theta.dtype).eps]
            theta[closed], found[closed] = 0.0, value.flatten()[closed]
            searching = searching[width >= 4 * torch.finfo(theta.dtype).eps]
        theta = theta.reshape(*value.shape, 1)
        position = self._latent_mean + centred * theta.cos() + direction * theta.sin()
        return position, found.reshape(value.shape), evaluations.reshape(value.shape)


def _log_terms(x: Tensor) -> Tensor:
    """`log Phi(x)` as a term of a sum, with the digits of one and not of itself, in the place of `x`."""
    if float(x.amin()) < -FAR[x.dtype]:
        return log_normal_cdf(x)
    return x.mul_(-math.sqrt(0.5)).erfc_().mul_(0.5).log_()
