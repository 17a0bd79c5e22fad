r"""Independence sampling of the noiseless rows from an expectation-propagation Gaussian.

With many rows over few latent coordinates the posterior is almost the Gaussian of expectation propagation. Its draws
are then proposals that are mostly accepted ([Tierney1994markov]_, section 2.3.3), and all are evaluated at once, as
they do not depend on the chain's position.

.. [Tierney1994markov] L. Tierney. Markov chains for exploring posterior distributions. Annals of Statistics 22, 1994.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.propagation.sites import SiteApproximation
from botorch_skewgp.truncated.samplers.collapsed_ess import (
    MAX_ENTRIES,
    MIN_DRAWS,
    CollapsedEllipticalSliceSampler,
)
from botorch_skewgp.truncated.samplers.sampler import SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

MAX_STEPS = 32  # between two slice updates
# Costs of a proposal, of a row in it, and of an entry of the root, in the time that a reflection takes for a row.
OVERHEAD, ROW, ENTRY = 14_000.0, 20.0, 0.3


class IndependenceSampler(CollapsedEllipticalSliceSampler):
    r"""Metropolis-Hastings sampling of `h` with independent proposals from the approximating Gaussian.

    A proposal is accepted with the ratio of the densities relative to the Gaussian, at it and at the chain's position.
    Where the Gaussian has no mass and the posterior has, a chain could stay long: every `MAX_STEPS` steps there is also
    an elliptical slice update, which moves for any approximation.

    Positions are latent coordinates of `h`, as for `CollapsedEllipticalSliceSampler`.

    Args:
        distribution: The truncated normal to draw from; every row must have noise.
        expectation_propagation: The approximating Gaussian.

    Raises:
        ValueError: If a row has no noise.

    Example:
        >>> sampler = IndependenceSampler(distribution, expectation_propagation(distribution))
        >>> state = sampler.init(*feasible_start(distribution, num_chains=16, generator=generator))
        >>> state, positions, info = sampler.run(state, num_steps=100, generator=generator)
        >>> rows = sampler.rows(positions, generator)
    """

    def __init__(self, distribution: TruncatedNormal, expectation_propagation: SiteApproximation) -> None:
        super().__init__(distribution, expectation_propagation, num_inner_steps=2)

    @property
    def cost(self) -> float:
        """The cost of a proposal, in units of a reflection's time for a row."""
        m, r = self.distribution.num_rows, self._latent_root.shape[-1]
        return OVERHEAD + m * (ROW + ENTRY * r)

    @property
    def cost_of_rows(self) -> float:
        """The cost of a draw of all rows at a position, zero where it is small beside a proposal."""
        return 0.0

    def propose(self, num_proposals: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        r"""Draws of the approximating Gaussian and the posterior's log density relative to it, up to a constant.

        Args:
            num_proposals: The number `k` of draws.
            generator: The source of randomness.

        Returns:
            Latent coordinates, `batch_shape x k x r`, and log ratios, `batch_shape x k`.
        """
        distribution, mean = self.distribution, self._latent_mean
        positions: list[Tensor] = []
        ratios: list[Tensor] = []
        size = max(MIN_DRAWS, MAX_ENTRIES // max(1, distribution.mean.numel()))
        for first in range(0, num_proposals, size):
            k = min(size, num_proposals - first)
            shape = (*distribution.batch_shape, k, self._latent_root.shape[-1])
            normal = torch.randn(shape, dtype=mean.dtype, device=mean.device, generator=generator)
            latent = mean + normal @ self._latent_root.mT
            h = distribution.noiseless(latent).reshape(-1, distribution.num_rows)
            positions.append(latent)
            ratios.append(self._log_ratio(h, None, k).reshape(*distribution.batch_shape, k))
        return torch.cat(positions, dim=-2), torch.cat(ratios, dim=-1)

    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        positions: list[Tensor] = []
        chains = state.position.shape[-2]
        evaluations = torch.zeros(state.position.shape[:-1], dtype=torch.long, device=state.position.device)
        while (left := num_steps - len(positions)) > 0:
            assert state.log_likelihood is not None
            position, value, needed = self._update(state.position, state.log_likelihood, generator)
            state = SamplerState(position, value)
            steps = min(MAX_STEPS, left) * self.num_inner_steps
            evaluations = evaluations + needed + steps
            latent, ratio = self.propose(steps * chains, generator)
            level = torch.rand(ratio.shape, dtype=ratio.dtype, device=ratio.device, generator=generator).log()
            latent = latent.unflatten(-2, (steps, chains))
            ratio, level = ratio.unflatten(-1, (steps, chains)), level.unflatten(-1, (steps, chains))
            for t in range(steps):
                assert state.log_likelihood is not None
                accepted = level[..., t, :] < ratio[..., t, :] - state.log_likelihood
                state = SamplerState(
                    torch.where(accepted.unsqueeze(-1), latent[..., t, :, :], state.position),
                    torch.where(accepted, ratio[..., t, :], state.log_likelihood),
                )
                if (t + 1) % self.num_inner_steps == 0:
                    positions.append(state.position)
        return state, torch.stack(positions, dim=-3), SamplerInfo(num_evaluations=evaluations)
