"""The posterior of a latent function: draws of representer weights, and a root of the remaining covariance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.row_factor import mapped

NUM_ORDERING_COMPONENTS = 16  # principal components of the draws, more than an order in one dimension can follow
NUM_ORDERING_DRAWS = 256  # from which these components are estimated
NUM_ORDERING_ITERATIONS = 2  # after which they hold 96 % or more of the variance along the exact components


@dataclass(frozen=True, eq=False)
class RootFactor:
    """A root `A^T L^-T`, as its two parts.

    Args:
        L: A `p x p` lower triangular tensor.
        weight: The tensor `A`, `p x n`.
    """

    L: Tensor
    weight: Tensor


@dataclass(frozen=True, eq=False)
class RepresenterMixture:
    """The posterior of the latent function, in terms of the kernel at `n` points `Z`: given draw `s` the mean is
    `m(x) + k(x, Z) a_s`, and the covariance `k(x, x') - k(x, Z) R R^T k(Z, x')` is that of all draws.

    Args:
        weights: The representer weights `a_s` of all draws, `batch_shape x n x S`.
        root: `R`, with `R R^T` the information of the rows, `batch_shape x n x p`.
        log_weights: The normalised log probabilities of the draws, `batch_shape x S`; `None` for equal ones.
        parent: The mixture given earlier data, to which this one adds later data: the covariance of its points with
            others is then the one given the earlier data. Draws correspond one to one.
        factor: The root in two parts, where rows have little noise. Roots are large then and lose digits in differences
            of products, unlike solutions with `L`: by products alone the covariance of two points `1e-6` from numbers
            without noise had the eigenvalue -1.2e-11 beside variances of 3.3e-12.
    """

    weights: Tensor
    root: Tensor
    log_weights: Tensor | None = None
    parent: RepresenterMixture | None = None
    factor: RootFactor | None = None

    def apply(self, fn: Callable[[Tensor], Tensor]) -> RepresenterMixture:
        """A copy on the device to which `fn` moves tensors; in the old dtype, as weights that cancel need digits."""
        device = fn(self.weights.new_empty(0)).device
        return mapped(self, lambda values: values.to(device))

    def times_root(self, cross: Tensor) -> Tensor:
        """The prior covariance of points with `Z` times the root, `batch_shape x e x p`."""
        if self.factor is None:
            return cross @ self.root.to(cross)
        white = self.factor.weight.to(cross) @ cross.mT
        return torch.linalg.solve_triangular(self.factor.L.to(cross), white, upper=False).mT

    def _padded_factor(self, num_points: int, size: int) -> RootFactor:
        """The root in two parts of given sizes, by an identity where it has no factor."""
        eye = torch.eye(size, dtype=self.root.dtype, device=self.root.device)
        if self.factor is None:
            return RootFactor(eye, _padded(self.root.mT, size, num_points))
        p = len(self.factor.L)
        eye[:p, :p] = self.factor.L
        return RootFactor(eye, _padded(self.factor.weight, size, num_points))

    @property
    def num_draws(self) -> int:
        """The number `S` of draws."""
        return self.weights.shape[-1]

    def in_space_filling_order(self, covariance: Tensor) -> RepresenterMixture:
        """The same equally likely draws, similar ones next to each other, of values by the prior covariance at `Z`.

        One base sample picks the draw, so that an average over quasi-Monte Carlo base samples varies less if draws
        change smoothly along their order. Groups of draws are halved repeatedly along their widest principal component.
        """
        if self.num_draws == 1:
            return self
        weights = self.weights_by_draw
        deviation = weights - weights.mean(-2, keepdim=True)
        some = deviation[:: max(1, self.num_draws // NUM_ORDERING_DRAWS)] @ covariance
        points = deviation @ (covariance @ _principal_components(some))
        del deviation, some  # as large as the weights
        order = space_filling_order(points)
        return replace(self, weights=weights[order].mT)

    def repeated(self, num_draws: int) -> RepresenterMixture:
        """The same mixture of more draws, each of them repeated equally often, or once more and then less probable."""
        if num_draws == self.num_draws:
            return self
        each, more = divmod(num_draws, self.num_draws)
        count = torch.full((self.num_draws,), each, device=self.weights.device)
        count[:more] += 1
        log_weights = None
        if more or self.log_weights is not None:
            log_weights = (self.log_probabilities - count.to(self.weights).log()).repeat_interleave(count, dim=-1)
        weights = self.weights.repeat_interleave(count, dim=-1)
        parent = None if self.parent is None else self.parent.repeated(num_draws)
        return replace(self, weights=weights, log_weights=log_weights, parent=parent)

    @staticmethod
    def stack(mixtures: Sequence[RepresenterMixture]) -> RepresenterMixture:
        """Mixtures of any sizes side by side, exactly, as the last dimension of a batch: draws are repeated where
        others are more, and points and columns of roots are added whose weight is zero.
        """
        num_draws = max(mixture.num_draws for mixture in mixtures)
        mixtures = [mixture.repeated(num_draws) for mixture in mixtures]
        n = max(mixture.root.shape[-2] for mixture in mixtures)
        p = max(mixture.root.shape[-1] for mixture in mixtures)
        parents = [mixture.parent for mixture in mixtures if mixture.parent is not None]
        factor = None
        if any(mixture.factor is not None for mixture in mixtures):
            factors = [mixture._padded_factor(n, p) for mixture in mixtures]
            L = torch.stack([part.L for part in factors])
            factor = RootFactor(L, torch.stack([part.weight for part in factors]))
        log_weights = None
        if any(mixture.log_weights is not None for mixture in mixtures):
            log_weights = torch.stack([mixture.log_probabilities for mixture in mixtures], dim=-2)
        return RepresenterMixture(
            weights=torch.stack([_padded(mixture.weights, n, num_draws) for mixture in mixtures], dim=-3),
            root=torch.stack([_padded(mixture.root, n, p) for mixture in mixtures], dim=-3),
            log_weights=log_weights,
            parent=RepresenterMixture.stack(parents) if parents else None,
            factor=factor,
        )

    @cached_property
    def weights_by_draw(self) -> Tensor:
        """The weights, `batch_shape x S x n`, contiguous for each draw, so that draws can be picked."""
        return self.weights.mT.contiguous()

    def pick(self, normal: Tensor) -> Tensor:
        """The draws that standard normal numbers pick, by the inverse cdf of the draws' probabilities."""
        uniform = torch.special.ndtr(normal)
        last = self.num_draws - 1
        if self.log_weights is None:
            return (uniform * (last + 1)).long().clamp(max=last)  # ndtr rounds to 1 beyond 8 sd
        return pick_components(self.probabilities.to(uniform), uniform)

    @cached_property
    def probabilities(self) -> Tensor:
        """The probabilities of the draws, `S` or `batch_shape x S`; they sum to one."""
        if self.log_weights is None:
            return self.weights.new_full((self.num_draws,), 1 / self.num_draws)
        return self.log_weights.exp()

    @cached_property
    def log_probabilities(self) -> Tensor:
        """The log probabilities of the draws, `S` or `batch_shape x S`."""
        if self.log_weights is None:
            return self.weights.new_full((self.num_draws,), -math.log(self.num_draws))
        return self.log_weights

    @cached_property
    def levels(self) -> tuple[RepresenterMixture, ...]:
        """This mixture after those of all earlier data, the earliest first."""
        return (self,) if self.parent is None else (*self.parent.levels, self)

    @cached_property
    def mean(self) -> Tensor:
        """The average of the representer weights over draws, `batch_shape x n x 1`."""
        return self.weights @ self.probabilities.unsqueeze(-1)

    @cached_property
    def root_between(self) -> Tensor:
        """A root of the covariance of the representer weights between draws, `batch_shape x n x k`, `k <= n` or `S`."""
        centred = (self.weights - self.mean) * self.probabilities.sqrt().unsqueeze(-2)
        if centred.shape[-1] > centred.shape[-2] and not centred.requires_grad:
            centred = torch.linalg.qr(centred.mT).R.mT  # the same Gram matrix with fewer columns
        return centred


def pick_components(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The components at levels in (0, 1) of any shape, by the inverse cdf of probabilities, `S` or `... x S`."""
    cumulative, uniform = probabilities.detach().cumsum(-1), uniform.unsqueeze(-1)
    level = uniform * cumulative[..., -1:]  # the sum is one up to rounding
    if cumulative.ndim > 1:
        cumulative = cumulative.expand(level.shape[:-1] + cumulative.shape[-1:]).contiguous()
    return torch.searchsorted(cumulative, level.contiguous()).squeeze(-1).clamp(max=cumulative.shape[-1] - 1)


def _padded(matrix: Tensor, num_rows: int, num_columns: int) -> Tensor:
    """A matrix with zeros below and to the right."""
    rows, columns = matrix.shape[-2:]
    return torch.nn.functional.pad(matrix, (0, num_columns - columns, 0, num_rows - rows))


def space_filling_order(points: Tensor) -> Tensor:
    """An order of points `S x n` that keeps close ones together, by halving groups along their widest axis."""
    points = points - points.mean(0)  # sums of squares keep their digits
    num_points = len(points)
    moments = torch.cat([points, points.square()], dim=-1)
    place = torch.arange(num_points, device=points.device)
    order = place
    for num_groups in (2**level for level in range((num_points - 1).bit_length())):
        group = place * num_groups // num_points
        size = group.bincount(minlength=num_groups).unsqueeze(-1)
        totals = moments.new_zeros(num_groups, moments.shape[-1]).index_add_(0, group, moments.index_select(0, order))
        sums, squares = totals.tensor_split(2, dim=-1)
        widest = (squares - sums.square() / size).argmax(-1)
        along = points[order, widest[group]]
        low, high = along.aminmax()
        range_ = (high - low).clamp(min=torch.finfo(along.dtype).tiny)
        order = order[(group + 0.5 * (along - low) / range_).argsort()]
    return order


def _principal_components(deviations: Tensor) -> Tensor:
    """Leading directions of `k x n` deviations from a mean, by subspace iteration (Rayleigh and Ritz)."""
    basis = deviations[:NUM_ORDERING_COMPONENTS].mT
    for _ in range(NUM_ORDERING_ITERATIONS):
        basis = torch.linalg.qr(deviations.mT @ (deviations @ torch.linalg.qr(basis).Q)).Q
    along = deviations @ basis
    return basis @ torch.linalg.eigh(along.mT @ along).eigenvectors
