r"""Independence sampling of the coordinates that all blocks share, with each block's own variable integrated out.

A choice among several has rows that share the noise of the chosen option. Where the rows of every block are `m + U z +
a x + e`, with one `x ~ N(0, 1)` for each block and independent noise `e`, a block's probability given the shared
coordinates `z` is an integral over one variable, `int phi(x) prod_j P(lower_j < m_j + U_j z + a_j x + e_j) dx`. The
trapezoidal rule gives it to many digits, as its integrand is smooth and falls like a normal density
([Trefethen2014trapezoidal]_). Proposals of `z`, as many coordinates as there are points, are draws of the Gaussian of
expectation propagation.

Draws of `x` given `z` are nodes of the same rule, shifted by a uniform part of a step and taken with a probability
proportional to the integrand: exact up to the error of the rule.

.. [Trefethen2014trapezoidal] L. N. Trefethen, J. A. C. Weideman. The exponentially convergent trapezoidal rule. SIAM
   Review 56(3), 2014.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import torch
from torch import Tensor

from botorch_skewgp.truncated.priors import BorderedPrior, LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.samplers.independence import IndependenceSampler
from botorch_skewgp.truncated.samplers.sampler import SamplerState
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import log_normal_cdf

REACH = 6.0  # standard deviations of `x` on either side of its mean
STEP = 1.0  # in the least standard deviations that `x` given the rows may have
MAX_NODES = 2**16  # of blocks and draws processed at a time, which a cache can hold
SMALL = 1e-6  # probability of a block, below which it is computed in logs
CERTAIN = 40.0  # standard deviations inside the bound, for rows that pad a block
NODE = 8.0  # cost of a row at a node, in units of a reflection's time for a row
HALF_ROOT = 0.5**0.5


class SharedSites(NamedTuple):
    """Gaussian of the shared coordinates, and the sites of single rows; a `SiteApproximation`."""

    site_precision: Tensor
    site_shift: Tensor
    latent_mean: Tensor
    latent_root: Tensor


class SharedIndependenceSampler(IndependenceSampler):
    r"""`IndependenceSampler` of the coordinates that all blocks share (see this module's first lines).

    Equal blocks are evaluated once. Positions are shared coordinates `z`.

    Args:
        distribution: The truncated normal, of a bordered prior; see `of`.
        approximation: Its expectation propagation fixed point.
        loading: The loadings `a`, `m`.
        own: The variances of `e`, `m`.
    """

    def __init__(
        self, distribution: TruncatedNormal, approximation: ExpectationPropagation, loading: Tensor, own: Tensor
    ) -> None:
        prior, factor = distribution.prior, approximation.factor
        assert isinstance(prior, BorderedPrior)
        mean, root = factor.shared_coordinates
        shared = TruncatedNormal(
            mean=distribution.mean,
            prior=LowRankPrior(prior.root),
            lower=distribution.lower,
            upper=distribution.upper,
            noise=own,
        )
        sites = SharedSites(approximation.site_precision, approximation.site_shift, mean, root)
        super().__init__(shared, sites)
        self._loading = loading
        like = distribution.mean
        sign = torch.where(distribution.lower.isfinite(), 1.0, -1.0).to(like)
        bound = torch.where(distribution.lower.isfinite(), distribution.lower, distribution.upper)
        margin = sign / own.sqrt()
        # mean of x given all answers, a^T Gamma^-1 E(u - mean)
        pull = loading * (approximation.site_shift - approximation.site_precision * approximation.mean).to(like)
        blocks = prior.blocks
        precision = approximation.site_precision.to(like).unsqueeze(-1)
        offset = (approximation.site_shift.to(like) - approximation.site_precision.to(like) * like).unsqueeze(-1)
        product = prior.product_with(approximation.site_precision)
        assert product is not None  # expectation propagation has ended there
        self._single = blocks.single
        rows = torch.stack([margin, bound, loading, pull], dim=-1)
        what = torch.cat([prior.root, like.unsqueeze(-1)], dim=-1)
        self._groups = [
            _Blocks(index, each, same)
            for index, each, same in zip(blocks.index, blocks.gather(rows), blocks.gather(what), strict=True)
        ]
        # the Gaussian of z relative to its prior, as a function of the rows' shared parts h - mean
        self._quadratic = [
            torch.diag_embed(t.squeeze(-1)) - t * (half.mT @ half) * t.mT
            for t, half in zip(blocks.gather(precision), product[0].halves, strict=True)
        ]
        self._linear = [
            (c - t * (half.mT @ (half @ c))).squeeze(-1)
            for t, c, half in zip(blocks.gather(precision), blocks.gather(offset), product[0].halves, strict=True)
        ]
        self._offset = offset.squeeze(-1)

    @classmethod
    def of(cls, distribution: TruncatedNormal, approximation: ExpectationPropagation) -> Self | None:
        """The sampler of a distribution; `None` where blocks need more than one variable each."""
        prior = distribution.prior
        single = distribution.count is None and distribution.heights is None
        if not isinstance(prior, BorderedPrior) or not single or not prior.blocks.index:
            return None
        one_bound = distribution.lower.isfinite() != distribution.upper.isfinite()
        if not bool(one_bound.all()) or not bool((distribution.noise > 0).all()):
            return None
        form = prior.one_factor(distribution.noise)
        return None if form is None else cls(distribution, approximation, *form)

    @property
    def cost(self) -> float:
        return super().cost + NODE * sum(group.distinct.numel() * group.num_nodes for group in self._groups)

    @property
    def cost_of_rows(self) -> float:
        return NODE * sum(group.index.numel() * group.num_nodes for group in self._groups)

    def start(self, num_chains: int, generator: torch.Generator | None = None) -> SamplerState:
        """Chains at draws of the approximating Gaussian."""
        return SamplerState(*self.propose(num_chains, generator))

    def latent(self, positions: Tensor) -> None:
        """`None`, as positions are only some of the latent coordinates."""
        return None

    def _log_ratio(self, h: Tensor, chain: Tensor | None, num_chains: int) -> Tensor:
        residual = h - self.distribution.mean
        padded = _padded(residual)
        value = h.new_zeros(h.shape[0])
        for group, quadratic, linear in zip(self._groups, self._quadratic, self._linear, strict=True):
            mine = padded[:, group.index]
            pulled = (mine.unsqueeze(-2) @ (0.5 * quadratic)).squeeze(-2) - linear
            value += pulled.mul_(mine).flatten(1).sum(-1)
            value += group.log_probability(_padded(h)[:, group.distinct]) @ group.count
        if len(self._single):
            one = residual[:, self._single]
            precision, offset = self._precision[self._single], self._offset[self._single]
            value += (0.5 * precision * one - offset).mul_(one).sum(-1)
            factor = self.distribution.factor.map(lambda values: values[self._single])
            value += factor.log_likelihood(h[:, self._single]).sum(-1)
        return value

    def _rows(self, positions: Tensor, generator: torch.Generator | None) -> Tensor:
        h = self.distribution.noiseless(positions)
        padded = _padded(h)
        for group in self._groups:
            x = group.draw(padded[:, group.index], generator)
            padded = padded.index_add(
                -1, group.index.flatten(), (x.unsqueeze(-1) * _padded(self._loading)[group.index]).flatten(-2)
            )
        h = padded[..., :-1]
        return self.distribution.factor_of_draws.draw_given(h, open_uniform(h, generator))


class _Blocks:
    r"""Blocks of one size after padding.

    Args:
        index: The rows of each block, `b x s`; `m` as padding.
        rows: Of each row of a block, `b x s x 4`: the factor that makes `u - bound` the distance inside in units of `e`
            (0 as padding); the bound; the loading `a`; and the row's term of the mean of `x` given all answers.
        what: Further values in which equal blocks agree, `b x s x k`.
    """

    def __init__(self, index: Tensor, rows: Tensor, what: Tensor) -> None:
        margin, bound, loading, pull = rows.unbind(-1)
        self.index, self._margin, self._slope = index, margin, margin * loading
        self._constant = torch.where(margin == 0, CERTAIN, -bound * margin)
        self._step = STEP / (1 + self._slope.square().sum(-1)).sqrt()
        self._centre = pull.sum(-1)
        half = math.ceil(REACH / float(self._step.amin()))
        self._place = torch.arange(-half, half + 1, dtype=pull.dtype, device=index.device)
        key = torch.cat([rows[..., :3], what], dim=-1).flatten(1)
        _, label, count = key.unique(dim=0, return_inverse=True, return_counts=True)
        every = torch.arange(len(index), device=index.device)
        self._representative = every.new_full((len(count),), len(every)).scatter_reduce(0, label, every, "amin")
        self.count, self.distinct = count.to(pull), index[self._representative]
        self._columns = [j for j in range(index.shape[-1]) if bool((margin[:, j] != 0).any())]
        step = self._step[self._representative].unsqueeze(-1)
        self._nodes = self._centre[self._representative].unsqueeze(-1) + step * self._place
        self._weight = (-0.5 * self._nodes.square()).exp() * (step / math.sqrt(2 * math.pi))

    @property
    def num_nodes(self) -> int:
        """Nodes of the trapezoidal rule."""
        return len(self._place)

    def log_probability(self, h: Tensor) -> Tensor:
        """Of the distinct blocks, for noiseless parts `k x b x s`; `k x b`."""
        size = max(1, MAX_NODES // self._nodes.numel())
        return torch.cat([self._log_probability(part) for part in h.split(size)])

    def _log_probability(self, h: Tensor) -> Tensor:
        which, x, weight = self._representative, self._nodes, self._weight
        inside = torch.addcmul(self._constant[which], h, self._margin[which])
        value = self._product(inside, self._slope[which], x).mul_(weight).sum(-1)
        small = (value < SMALL).nonzero(as_tuple=True)
        value = value.log()
        if len(small[0]):  # the error function has lost digits there
            at, slope = inside[small], self._slope[which][small[1]]
            terms = log_normal_cdf(at.unsqueeze(-1) + slope.unsqueeze(-1) * x[small[1]].unsqueeze(-2)).sum(-2)
            value = value.index_put(small, (terms + weight[small[1]].log()).logsumexp(-1))
        return value

    def _product(self, inside: Tensor, slope: Tensor, x: Tensor) -> Tensor:
        """Probabilities of all rows of blocks together, at nodes, `k x b x n`."""
        value: Tensor | None = None
        for j in self._columns:
            each = torch.addcmul(inside[..., j : j + 1], slope[:, j : j + 1], x).mul_(HALF_ROOT).erf_().add_(1)
            value = each.mul_(0.5) if value is None else value.mul_(each).mul_(0.5)
        assert value is not None
        return value

    def draw(self, h: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draws of `x` given noiseless parts of all blocks, `k x b x s`; `k x b`."""
        size = max(1, MAX_NODES // (len(self.index) * len(self._place)))
        return torch.cat([self._draw(part, generator) for part in h.split(size)])

    def _draw(self, h: Tensor, generator: torch.Generator | None) -> Tensor:
        move, level = torch.rand(2, *h.shape[:-1], 1, dtype=h.dtype, device=h.device, generator=generator)
        x = self._centre.unsqueeze(-1) + self._step.unsqueeze(-1) * (self._place + move - 0.5)
        inside = torch.addcmul(self._constant, h, self._margin)
        log_density = -0.5 * x.square()
        density = self._product(inside, self._slope, x) * log_density.exp()
        below = density.cumsum(-1)
        small = (below[..., -1] < SMALL).nonzero(as_tuple=True)
        if len(small[0]):
            at, slope = inside[small].unsqueeze(-1), self._slope[small[1]].unsqueeze(-1)
            terms = log_normal_cdf(at + slope * x[small].unsqueeze(-2)).sum(-2) + log_density[small]
            below = below.index_put(small, terms.softmax(-1).cumsum(-1))
        node = (below < level * below[..., -1:]).sum(-1, keepdim=True).clamp(max=len(self._place) - 1)
        return x.gather(-1, node).squeeze(-1)


def _padded(values: Tensor) -> Tensor:
    """Values of rows and a zero, the padding of blocks."""
    return torch.cat([values, values.new_zeros(*values.shape[:-1], 1)], dim=-1)
