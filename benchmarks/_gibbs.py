r"""Gibbs sampling of the rows, one coordinate after another.

.. [Geweke1991efficient] J. Geweke. Efficient simulation from the multivariate normal and Student-t distributions
   subject to linear constraints. Computing Science and Statistics, 23, 1991.
"""

from __future__ import annotations

import torch

from botorch_skewgp.truncated.row_factor import RowFactor, open_uniform
from botorch_skewgp.truncated.samplers.sampler import RowSampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal


class GibbsSampler(RowSampler):
    r"""Draws every row in turn from its conditional, a univariate truncated normal [Geweke1991efficient]_.

    Before it is truncated, row `i` given all others is normal with variance `1 / P_ii` and mean
    `mean_i - sum_(j != i) P_ij (u_j - mean_j) / P_ii`, where `P` is the inverse of `Gamma`.
    A step is a sweep over all rows and costs `O(m^2)` for every chain. The loop over the rows is the algorithm:
    every draw needs the one before it. Chains are drawn together.

    `P` is built, whatever the prior.
    """

    def __init__(self, distribution: TruncatedNormal) -> None:
        super().__init__(distribution)
        precision = torch.cholesky_inverse(distribution.gamma_cholesky)
        diagonal = precision.diagonal(dim1=-2, dim2=-1)
        self._scale = diagonal.rsqrt()
        centred = RowFactor(
            distribution.lower - distribution.mean, distribution.upper - distribution.mean, distribution.noise
        )
        self._factors = [
            centred.map(lambda values: values[..., i, None])  # noqa: B023
            for i in range(distribution.num_rows)
        ]
        # Row i holds the weights of the other rows in the conditional mean of row i.
        self._weight = torch.diag_embed(torch.ones_like(diagonal)) - precision / diagonal.unsqueeze(-1)
        self._weight.diagonal(dim1=-2, dim2=-1).zero_()  # exactly, against rounding

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Sweep once over all rows; the info counts one conditional draw for every row."""
        distribution = self.distribution
        position = state.position.clone()
        uniform = open_uniform(position, generator)
        for i, factor in enumerate(self._factors):
            centre = (position @ self._weight[..., i, :].unsqueeze(-1)).squeeze(-1)
            position[..., i] = factor.draw(centre, self._scale[..., i].unsqueeze(-1), uniform[..., i])
        evaluations = torch.full_like(position[..., 0], distribution.num_rows, dtype=torch.long)
        return SamplerState(position), SamplerInfo(evaluations)
