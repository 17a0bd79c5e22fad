r"""Quasi-random nodes for integrals over hyperparameters, by importance sampling around one or several modes.

.. [Cappe2008adaptive] O. Cappé, R. Douc, A. Guillin, J.-M. Marin, C. P. Robert. Adaptive importance sampling in general
   mixture classes. Statistics and Computing 18, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_skewgp.transformed.student_t import chi_square_quantile

PROPOSAL_DF = 5.0  # tails heavier than those of a posterior, for weights that are bounded
WIDENING = 1.2  # of standard deviations, for nodes in the tails
EVEN_SHARE = 0.2  # of the nodes around modes, spread evenly over them
WIDE_SHARE = 0.15  # of all nodes, in the proposal that stays
MIN_MASS = 1e-3  # of a component that is kept
MIN_MISSED = 0.25  # mass of nodes of the wide proposal, above which they become a component


class Proposal(NamedTuple):
    """A multivariate t distribution of nodes: its center, `D`, and the lower Cholesky factor of its scale matrix."""

    center: Tensor
    root: Tensor

    def log_density(self, u: Tensor) -> Tensor:
        """The log density at nodes, `S x D` to `S`."""
        D, df = len(self.center), PROPOSAL_DF
        white = torch.linalg.solve_triangular(self.root, (u - self.center).mT, upper=False)
        constant = math.lgamma(0.5 * (df + D)) - math.lgamma(0.5 * df) - 0.5 * D * math.log(math.pi * df)
        spread = self.root.diagonal().log().sum()
        return constant - spread - 0.5 * (df + D) * torch.log1p(white.square().sum(0) / df)

    def nodes(self, num_nodes: int, seed: int) -> Tensor:
        """Quasi-random nodes, `num_nodes x D`."""
        normal = _sobol_normal(num_nodes, len(self.center) + 1, seed).to(self.center)
        stretch = (PROPOSAL_DF / chi_square_quantile(normal[:, :1], PROPOSAL_DF)).sqrt()
        return self.center + (normal[:, 1:] * stretch) @ self.root.mT


class ProposalMixture(NamedTuple):
    """A mixture of proposals, with the number of nodes of each; the last one is wide and stays as it is."""

    components: tuple[Proposal, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, components: Sequence[Proposal], masses: Tensor, wide: Proposal, num_nodes: int) -> ProposalMixture:
        """The mixture with nodes in proportion to masses, in part evenly, and in part of the wide proposal."""
        shares = (1 - EVEN_SHARE) * masses / masses.sum() + EVEN_SHARE / len(masses)
        shares = torch.cat([(1 - WIDE_SHARE) * shares, shares.new_tensor([WIDE_SHARE])])
        counts = (shares * num_nodes).floor().clamp_min(1.0)
        counts[shares.argmax()] += max(num_nodes - int(counts.sum()), 0)
        return cls((*components, wide), tuple(int(count) for count in counts))

    def _log_parts(self, u: Tensor) -> Tensor:
        """The log densities of the components, times their shares, `K x S`."""
        shares = torch.tensor(self.counts, dtype=u.dtype, device=u.device) / sum(self.counts)
        return torch.stack([component.log_density(u) for component in self.components]) + shares.log().unsqueeze(-1)

    def log_density(self, u: Tensor) -> Tensor:
        """The log density at nodes, `S x D` to `S`."""
        return self._log_parts(u).logsumexp(0)

    def nodes(self, seed: int) -> Tensor:
        """The nodes of all components, `num_nodes x D`."""
        parts = zip(self.components, self.counts, strict=True)
        return torch.cat([part.nodes(count, seed + 1000 * k) for k, (part, count) in enumerate(parts)])

    def adapted(self, u: Tensor, weights: Tensor) -> ProposalMixture:
        """The mixture whose components have centers, covariances and masses of weighted nodes ([Cappe2008adaptive]_).

        A node counts for a component by the component's share of the density there. A component of few effective nodes
        keeps some of its covariance.
        """
        responsibilities = weights * torch.softmax(self._log_parts(u), dim=0)
        masses = responsibilities.sum(-1)
        # the wide one gives rise to a narrower one where there is mass that all others miss
        least = [MIN_MASS] * (len(masses) - 1) + [MIN_MISSED]
        kept = [k for k in range(len(masses)) if masses[k] > least[k]]
        components = []
        for k in kept:
            root, weight = self.components[k].root, responsibilities[k] / masses[k]
            center = weight @ u
            covariance = (u - center).mT @ (weight.unsqueeze(-1) * (u - center))
            effective = effective_number(weight)
            share = effective / (effective + 2 * u.shape[-1])
            covariance = share * WIDENING**2 * covariance + (1 - share) * root @ root.mT
            components.append(Proposal(center, torch.linalg.cholesky(covariance)))
        return ProposalMixture.of(components, masses[kept], self.components[-1], sum(self.counts))


def _sobol_normal(n: int, d: int, seed: int) -> Tensor:
    uniform = SobolEngine(d, scramble=True, seed=seed).draw(n, dtype=torch.float64)
    return torch.special.ndtri(uniform.clamp(1e-10, 1 - 1e-10))  # a scrambled point may be 0 to all its 30 bits


def keep_largest(weights: Tensor, tolerance: float) -> Tensor:
    """The numbers of the nodes of largest absolute weight that hold all but a share of it, in increasing order.

    Nodes of no weight are never among them. If all weights are positive, cdfs of mixtures with these weights,
    normalised again, differ by at most `tolerance`.
    """
    size, order = weights.abs().sort(descending=True, stable=True)
    left = size.flip(-1).cumsum(-1).flip(-1)  # with each node, all smaller ones: exactly 0 where all are
    return order[left > tolerance * left[0]].sort().values


def effective_number(weights: Tensor) -> float:
    """The effective number of nodes, `(sum w)^2 / sum w^2`."""
    return float(weights.sum().square() / weights.square().sum())
