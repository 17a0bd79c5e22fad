r"""Gibbs sampling of the rows, one coordinate after another.

References:

.. [Geweke1991efficient]
    J. Geweke. Efficient simulation from the multivariate normal and Student-t distributions subject to
    linear constraints. Computing Science and Statistics, 23, 1991.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.truncated.sampler import Sampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import sample_interval


class GibbsSampler(Sampler):
    r"""Draws every row in turn from its conditional, a univariate truncated normal [Geweke1991efficient]_.

    Before it is truncated, row `i` given all others is normal with variance `1 / P_ii` and mean
    `mean_i - sum_(j != i) P_ij (u_j - mean_j) / P_ii`, where `P` is the inverse of `Gamma`.
    A step is a sweep over all rows and costs `O(m^2)` for every chain. The loop over the rows is the algorithm:
    every draw needs the one before it. Chains are drawn together.

    Positions are `u - mean`.

    Args:
        distribution: The truncated normal to draw from; its covariance must not be a low-rank root.

    Raises:
        ValueError: If the covariance is a low-rank root, since nothing of size `m x m` may then be built.

    Example:
        >>> sampler = GibbsSampler(distribution)
        >>> state = sampler.init(*feasible_start(distribution, num_chains=16, generator=generator))
        >>> state, positions, info = sampler.run(state, num_steps=100, generator=generator)
        >>> rows = sampler.rows(positions)
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        super().__init__(distribution)
        if distribution.root is not None:
            raise ValueError(
                "GibbsSampler needs the precision matrix of the rows, and their covariance is a low-rank root. Use "
                "ReflectiveEllipticalSliceSampler, CollapsedEllipticalSliceSampler (if every row has noise) or "
                "LinearEllipticalSliceSampler, or give the covariance as a dense tensor."
            )
        precision = torch.cholesky_inverse(distribution.gamma_cholesky)
        diagonal = precision.diagonal(dim1=-2, dim2=-1)
        self._scale = diagonal.rsqrt()
        # Row i holds the weights of the other rows in the conditional mean of row i.
        self._weight = torch.diag_embed(torch.ones_like(diagonal)) - precision / diagonal.unsqueeze(-1)
        self._weight.diagonal(dim1=-2, dim2=-1).zero_()  # exactly, against rounding

    def init(self, rows: Tensor, latent: Tensor | None = None) -> SamplerState:
        r"""Make a state from feasible rows.

        Args:
            rows: A `batch_shape x num_chains x m` tensor of values of `u` inside the bounds.
            latent: Not used.

        Raises:
            ValueError: If a row is out of its bounds.
        """
        distribution = self.distribution
        inside = (rows >= distribution.lower.unsqueeze(-2)) & (rows <= distribution.upper.unsqueeze(-2))
        if not bool(inside.all()):
            raise ValueError("rows must be inside the bounds; feasible_start finds such rows.")
        return SamplerState(position=rows - distribution.mean.unsqueeze(-2))

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Sweep once over all rows; the info counts one conditional draw for every row."""
        distribution = self.distribution
        lower, upper = distribution.lower - distribution.mean, distribution.upper - distribution.mean
        position = state.position.clone()
        uniform = _open_uniform(position, generator)
        for i in range(distribution.num_rows):
            conditional_mean = (position @ self._weight[..., i, :].unsqueeze(-1)).squeeze(-1)
            scale, low, high = (value[..., i].unsqueeze(-1) for value in (self._scale, lower, upper))
            draw = conditional_mean + scale * sample_interval(
                (low - conditional_mean) / scale, (high - conditional_mean) / scale, uniform[..., i]
            )
            # Rounding only: the draw is inside the standardised interval.
            position[..., i] = torch.maximum(torch.minimum(draw, high), low)
        evaluations = torch.full_like(position[..., 0], distribution.num_rows, dtype=torch.long)
        return SamplerState(position), SamplerInfo(evaluations)

    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Map positions, `... x m`, to rows `u`, `... x m`, inside the bounds; `generator` is not used."""
        distribution = self.distribution
        batch, middle = distribution.batch_shape, positions.shape[len(distribution.batch_shape) : -1]
        rows = distribution.mean.unsqueeze(-2) + positions.reshape(*batch, -1, distribution.num_rows)
        # Rounding only, of the sum.
        rows = torch.maximum(torch.minimum(rows, distribution.upper.unsqueeze(-2)), distribution.lower.unsqueeze(-2))
        return rows.reshape(*batch, *middle, -1)

    def latent(self, positions: Tensor) -> Tensor | None:
        """`None`, as the covariance is dense."""
        return None


def _open_uniform(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Uniform draws in the open interval (0, 1), centred in the cells of the generator's grid."""
    uniform = torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator)
    return uniform + 0.25 * torch.finfo(like.dtype).eps
