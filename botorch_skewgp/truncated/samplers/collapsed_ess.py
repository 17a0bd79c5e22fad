r"""Elliptical slice sampling of the noiseless rows around an expectation-propagation Gaussian.

.. [Murray2010elliptical] I. Murray, R. P. Adams, D. J. C. MacKay. Elliptical slice sampling. International Conference
   on Artificial Intelligence and Statistics, 2010.
.. [Nishihara2014parallel] R. Nishihara, I. Murray, R. P. Adams. Parallel MCMC with generalized elliptical slice
   sampling. Journal of Machine Learning Research 15, 2014.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_skewgp.truncated.propagation.sites import SiteApproximation
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.samplers.sampler import Sampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

TWO_PI = 2 * math.pi
MAX_ENTRIES = 2**18  # of rows processed at a time, which a cache can hold
MIN_DRAWS = 32  # at a time


class CollapsedEllipticalSliceSampler(Sampler):
    r"""Elliptical slice sampling of `h`, the rows without their noise, which is integrated out.

    Given the rows, the density of `h` is its prior times the probabilities `P(lower < h + v <= upper)`. A step searches
    the ellipse through the position and a draw of an approximating Gaussian for a point where the density relative to
    that Gaussian exceeds a random level [Murray2010elliptical]_, [Nishihara2014parallel]_. The stationary distribution
    is exact for any approximation; a better one needs fewer evaluations. `rows` draws rows `u` given `h`, independent
    truncated normals.

    Positions are latent coordinates of `h`, see `RowPrior`.

    Args:
        distribution: The truncated normal to draw from; every row must have noise, unless answers may be slips.
        expectation_propagation: The approximating Gaussian.
        num_inner_steps: The number of slice updates in one step.

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
        if distribution.heights is None and not bool((distribution.noise > 0).all()):
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
        self._flat_factor = distribution.factor.map(lambda values: values.reshape(-1, distribution.num_rows))

    def init(self, rows: Tensor, latent: Tensor | None = None) -> SamplerState:
        r"""Make a state from feasible rows.

        Args:
            rows: A `batch_shape x num_chains x m` tensor of values of `u` inside the bounds; not used if `latent` is
                given.
            latent: A `batch_shape x num_chains x r` tensor of latent coordinates of `h` at these rows; their mean given
                the rows if `None`.

        Raises:
            ValueError: If the density at the start is not finite.
        """
        if latent is None:
            latent = self.distribution.noisy_prior.expected_latent(rows - self.distribution.mean.unsqueeze(-2))
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

        A row that stands for several gets their mean, of exact mean, variance and skewness; single rows are exact.
        """
        distribution = self.distribution
        batch, middle = distribution.batch_shape, positions.shape[len(distribution.batch_shape) : -1]
        flat = positions.reshape(*batch, -1, positions.shape[-1])
        rows = flat.new_empty(*flat.shape[:-1], distribution.num_rows)
        size = max(MIN_DRAWS, MAX_ENTRIES // max(1, distribution.mean.numel()))
        for first in range(0, flat.shape[-2], size):
            rows[..., first : first + size, :] = self._rows(flat[..., first : first + size, :], generator)
        return rows.reshape(*batch, *middle, -1)

    def _rows(self, positions: Tensor, generator: torch.Generator | None) -> Tensor:
        """Rows at positions `batch_shape x k x r`."""
        distribution, factor = self.distribution, self.distribution.factor_of_draws
        h = distribution.noiseless(positions)
        if distribution.count is None:
            return factor.draw_given(h, open_uniform(h, generator))
        count = distribution.count.unsqueeze(-2).to(h)
        single = (count == 1).reshape(-1)
        if not bool(single.any()):
            return factor.draw_mean_given(h, count, open_uniform(h, generator))
        rows = torch.empty_like(h)
        for is_single, mask in ((True, single), (False, ~single)):
            which = mask.nonzero().squeeze(-1)
            part, some = h.index_select(-1, which), factor.map(lambda values: values[..., which])  # noqa: B023
            level = open_uniform(part, generator)
            drawn = some.draw_given(part, level) if is_single else some.draw_mean_given(part, count[..., which], level)
            rows.index_copy_(-1, which, drawn)
        return rows

    def latent(self, positions: Tensor) -> Tensor | None:
        """The positions, `... x r`, for a low-rank covariance; `None` for a dense one."""
        return self.distribution.prior.kept(positions)

    def _log_ratio(self, h: Tensor, chain: Tensor | None, num_chains: int) -> Tensor:
        """Log density relative to the approximating Gaussian, up to a constant, at rows of `h`, `k x m`.

        `chain` holds the indices of these rows among all chains of the whole batch; all of them if `None`.
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

        `element` holds the batch index of each row of `h`; `None` if there is no batch.
        """
        factor, count = self._flat_factor, self.distribution.count
        if element is not None:
            factor = factor.map(lambda values: values[element])
        value = factor.log_likelihood(h)
        if count is None:
            return value.sum(-1)
        count = count.reshape(-1, h.shape[-1])
        return (value * (count if element is None else count[element])).sum(-1)

    def _update(
        self, position: Tensor, value: Tensor, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One slice update of every chain; chains that have found a point wait for the others."""

        def uniform(shape: torch.Size) -> Tensor:
            return torch.rand(shape, dtype=position.dtype, device=position.device, generator=generator)

        centred = position - self._latent_mean
        normal = torch.randn(position.shape, dtype=position.dtype, device=position.device, generator=generator)
        direction = normal @ self._latent_root.mT
        # On the ellipse h is linear in cosine and sine, so that an evaluation costs O(m) and needs no product.
        middle = self.distribution.noiseless(self._latent_mean)
        prior, m = self.distribution.prior, self.distribution.num_rows
        h_cosine, h_sine = (prior.times(part).reshape(-1, m) for part in (centred, direction))
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
