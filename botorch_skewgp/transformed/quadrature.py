r"""Nodes for integrals over hyperparameters: quasi-Monte Carlo around one or several modes, and Smolyak grids.

.. [Cappe2008adaptive] O. Cappé, R. Douc, A. Guillin, J.-M. Marin, C. P. Robert. Adaptive importance sampling in general
   mixture classes. Statistics and Computing 18, 2008.
.. [Smolyak1963] S. A. Smolyak. Quadrature and interpolation formulas for tensor products of certain classes of
   functions. Soviet Mathematics Doklady 4, 1963.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_skewgp.transformed.student_t import chi_square_quantile
from botorch_skewgp.truncated.univariate import gauss_rule

PROPOSAL_DF = 5.0  # tails heavier than those of a posterior, for weights that are bounded
WIDENING = 1.2  # of standard deviations, for nodes in the tails
EVEN_SHARE = 0.2  # of the nodes, spread evenly over the components of a mixture
MIN_MASS = 1e-3  # of a component that is kept


class Proposal(NamedTuple):
    r"""A multivariate t distribution of nodes.

    Args:
        center: Its center, `D`.
        root: The lower Cholesky factor of its scale matrix, `D x D`.
    """

    center: Tensor
    root: Tensor

    def log_density(self, u: Tensor) -> Tensor:
        r"""The log density at nodes.

        Args:
            u: A `S x D` tensor.
        """
        D, df = len(self.center), PROPOSAL_DF
        white = torch.linalg.solve_triangular(self.root, (u - self.center).mT, upper=False)
        constant = math.lgamma(0.5 * (df + D)) - math.lgamma(0.5 * df) - 0.5 * D * math.log(math.pi * df)
        spread = self.root.diagonal().log().sum()
        return constant - spread - 0.5 * (df + D) * torch.log1p(white.square().sum(0) / df)

    def nodes(self, num_outer: int, num_inner: int, outer_dim: int, seed: int) -> Tensor:
        r"""Quasi-random nodes in groups that share their first coordinates.

        Every node on its own has the law of the proposal: given the first coordinates, the others follow their
        conditional distribution, a multivariate t again.

        Args:
            num_outer: The number of distinct first parts.
            num_inner: The number of nodes for each of them.
            outer_dim: The number of coordinates in the first part.
            seed: Seeds the scrambling of the Sobol sequences.

        Returns:
            A `(num_outer num_inner) x D` tensor.
        """
        df, D = PROPOSAL_DF, len(self.center)
        outer = _sobol_normal(num_outer, outer_dim + 1, seed).to(self.center)
        stretch = (df / chi_square_quantile(outer[:, :1], df)).sqrt()
        white = outer[:, 1:] * stretch
        if outer_dim < D:
            inner = _sobol_normal(num_outer * num_inner, D - outer_dim + 1, seed + 1).to(self.center)
            white = white.repeat_interleave(num_inner, dim=0)
            spread = (df + white.square().sum(-1, keepdim=True)) / chi_square_quantile(inner[:, :1], df + outer_dim)
            white = torch.cat([white, inner[:, 1:] * spread.sqrt()], dim=-1)
        return self.center + white @ self.root.mT


class ProposalMixture(NamedTuple):
    r"""A mixture of proposals, with the number of nodes of each.

    Args:
        components: The proposals.
        counts: Their numbers of nodes, integers of at least one.
    """

    components: tuple[Proposal, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, components: Sequence[Proposal], masses: Tensor, num_nodes: int) -> ProposalMixture:
        r"""The mixture with nodes in proportion to masses, and in part evenly.

        Args:
            components: `K` proposals.
            masses: Their masses, `K`.
            num_nodes: The number of nodes; each proposal gets at least one.
        """
        shares = (1 - EVEN_SHARE) * masses / masses.sum() + EVEN_SHARE / len(masses)
        counts = (shares * num_nodes).floor().clamp_min(1.0)
        counts[shares.argmax()] += max(num_nodes - int(counts.sum()), 0)
        return cls(tuple(components), tuple(int(count) for count in counts))

    def _log_parts(self, u: Tensor) -> Tensor:
        """The log densities of the components, times their shares, `K x S`."""
        shares = torch.tensor(self.counts, dtype=u.dtype, device=u.device) / sum(self.counts)
        return torch.stack([component.log_density(u) for component in self.components]) + shares.log().unsqueeze(-1)

    def log_density(self, u: Tensor) -> Tensor:
        r"""The log density at nodes.

        Args:
            u: A `S x D` tensor.
        """
        return self._log_parts(u).logsumexp(0)

    def nodes(self, num_inner: int, outer_dim: int, seed: int) -> Tensor:
        r"""The nodes of all components; see `Proposal.nodes`.

        Args:
            num_inner: The number of nodes for each distinct first part.
            outer_dim: The number of coordinates in the first part.
            seed: Seeds the scrambling of the Sobol sequences.

        Returns:
            A `(num_nodes num_inner) x D` tensor.
        """
        parts = zip(self.components, self.counts, strict=True)
        return torch.cat(
            [part.nodes(count, num_inner, outer_dim, seed + 1000 * k) for k, (part, count) in enumerate(parts)]
        )

    def adapted(self, u: Tensor, weights: Tensor) -> ProposalMixture:
        r"""The mixture whose components have centers, covariances and masses of weighted nodes ([Cappe2008adaptive]_).

        A node counts for a component by the component's share of the density there. A component of few effective nodes
        keeps some of its covariance.

        Args:
            u: Nodes, `S x D`.
            weights: Their weights, which sum to one, `S`.
        """
        responsibilities = weights * torch.softmax(self._log_parts(u), dim=0)
        masses = responsibilities.sum(-1)
        kept = [k for k in range(len(masses)) if masses[k] > MIN_MASS]
        components = []
        for k in kept:
            root, weight = self.components[k].root, responsibilities[k] / masses[k]
            center = weight @ u
            covariance = (u - center).mT @ (weight.unsqueeze(-1) * (u - center))
            effective = effective_number(weight)
            share = effective / (effective + u.shape[-1])
            covariance = share * WIDENING**2 * covariance + (1 - share) * root @ root.mT
            components.append(Proposal(center, torch.linalg.cholesky(covariance)))
        return ProposalMixture.of(components, masses[kept], sum(self.counts))


def _sobol_normal(n: int, d: int, seed: int) -> Tensor:
    uniform = SobolEngine(d, scramble=True, seed=seed).draw(n, dtype=torch.float64)
    return torch.special.ndtri(uniform.clamp(1e-10, 1 - 1e-10))  # a scrambled point may be 0 to all its 30 bits


def smolyak_grid(dim: int, level: int) -> tuple[Tensor, Tensor]:
    r"""The sparse grid of Gauss-Legendre rules on the cube `[-1, 1]^dim` ([Smolyak1963]_), for averages over it.

    Rules of `i` nodes in a dimension, with `i` summing to at most `dim + level - 1`; exact for polynomials of total
    degree up to `2 level - 1`. Many weights are negative.

    Args:
        dim: The number of dimensions.
        level: The level; at 1 there is one node, the center.

    Returns:
        The nodes, `S x dim`, and their weights, `S`, which sum to one.
    """
    nodes, weights = [], []
    for total in range(max(level - dim, 0), level):  # the nodes beyond one, over all dimensions
        sign = (-1) ** (level - 1 - total) * math.comb(dim - 1, level - 1 - total)
        for extra in _compositions(total, dim):
            rules = [gauss_rule("legendre", 1 + i) for i in extra]
            grid = torch.cartesian_prod(*(x for x, _ in rules)).reshape(-1, dim)
            products = torch.cartesian_prod(*(w for _, w in rules)).reshape(-1, dim)
            nodes.append(grid)
            weights.append(sign * products.prod(-1))
    x, w = torch.cat(nodes), torch.cat(weights)
    _, which = torch.unique((x * 2**40).round(), dim=0, return_inverse=True)  # equal up to rounding
    num = int(which.max()) + 1
    first = torch.zeros(num, dtype=torch.long).scatter_(0, which.flip(0), torch.arange(len(x)).flip(0))
    return x[first], torch.zeros(num, dtype=w.dtype).index_add_(0, which, w)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as an ordered sum of `parts` non-negative ones."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(ends))


def keep_largest(weights: Tensor, tolerance: float) -> Tensor:
    r"""The nodes of largest absolute weight that together hold all but a share of it.

    If all weights are positive, cdfs of mixtures with these weights, normalised again, differ by at most `tolerance`.

    Args:
        weights: The weights, `S`.
        tolerance: The share of the sum of absolute weights that may be left out.

    Returns:
        The numbers of the nodes kept, in increasing order.
    """
    size, order = weights.abs().sort(descending=True, stable=True)
    rest = 1 - size.cumsum(-1) / size.sum()
    num_kept = int((rest > tolerance).sum()) + 1
    return order[:num_kept].sort().values


def effective_number(weights: Tensor) -> float:
    r"""The effective number of nodes, `(sum w)^2 / sum w^2`.

    Args:
        weights: The weights, `S`.
    """
    return float(weights.sum().square() / weights.square().sum())
