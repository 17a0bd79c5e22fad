r"""Nodes of all parameters given the data: the factors of their regressions, and their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.transformed.parameter_space import ParameterSpace
from botorch_skewgp.transformed.regression import TransformedRegression

LARGEST_POWER = 0.45  # of the largest number, up to which warped outcomes have squares, also in the data's precision


class WeightedNodes(NamedTuple):
    """Nodes, `S x D`, with the factors that posteriors need, of `T` kernels and up to `J` warpings each.

    `kernel` and `slot`, `S`, say where a node's warped outcomes are. `log_weight` has logarithms of absolute quadrature
    weights times posterior densities, `log_likelihood` those of the data alone, `log_slope`, `S x n`, the log
    derivatives of the warping at the outcomes.
    """

    regression: TransformedRegression
    kernel: Tensor
    slot: Tensor
    u: Tensor
    log_weight: Tensor
    log_likelihood: Tensor
    sign: Tensor
    log_slope: Tensor

    @property
    def probabilities(self) -> Tensor:
        """The nodes' probabilities, which sum to one, `S`; sparse grids make some negative."""
        return normalised(self.log_weight, self.sign)

    @property
    def is_singular(self) -> Tensor:
        """Whether the covariance has no Cholesky factor, `S`."""
        return ~self.regression.is_valid[self.kernel]

    @property
    def of_kernels(self) -> Tensor:
        """The coordinates of one node of every kernel, `T x D`."""
        return self.u[_first(self.kernel)]

    def select(self, x: Tensor) -> Tensor:
        """The entries of the nodes of a tensor `T x ... x J`, `... x S`."""
        return x.movedim(0, -2).flatten(-2)[..., self.kernel * x.shape[-1] + self.slot]

    def keep(self, nodes: Tensor) -> WeightedNodes:
        """Some of the nodes, with the factors of their kernels only."""
        kernels, kernel = torch.unique(self.kernel[nodes], return_inverse=True)
        rest = (self.slot, self.u, self.log_weight, self.log_likelihood, self.sign, self.log_slope)
        return WeightedNodes(self.regression.at(kernels), kernel, *(entry[nodes] for entry in rest))


def normalised(log_weight: Tensor, sign: Tensor) -> Tensor:
    """Weights `... x S` that sum to one, of the logarithms of their sizes and signs `S`."""
    weight = sign * (log_weight - log_weight.amax(-1, keepdim=True)).exp()
    return weight / weight.sum(-1, keepdim=True)


def standard_error(parts: Tensor, kernel: Tensor) -> Tensor:
    """The standard error of a sum over nodes of centered parts, `... x S`, those of equal kernels together."""
    num = int(kernel.max()) + 1
    if num > 1:
        parts = parts.new_zeros(*parts.shape[:-1], num).index_add_(-1, kernel, parts)
    return parts.square().sum(-1).sqrt()


@dataclass(frozen=True, eq=False)
class TransformedData:
    """The data that weigh nodes, standardised in a unit; nodes without `num_moments` of the outcome have no weight."""

    space: ParameterSpace
    X: Tensor
    y: Tensor
    basis: Tensor
    log_unit: float = 0.0
    num_moments: int = 0

    def weigh(self, u: Tensor) -> WeightedNodes:
        """Factors and weights of nodes, `S x D`, those of equal kernel parameters together; differentiable."""
        space, num_shared = self.space, self.space.dim("covar_module", "likelihood")
        X, y, basis = self.X.to(u), self.y.to(u), self.basis.to(u)
        if num_shared == 0:
            kernel = torch.zeros(len(u), dtype=torch.long, device=u.device)
        elif u.requires_grad or len(u) == 1:
            kernel = torch.arange(len(u), device=u.device)
        else:
            _, kernel = torch.unique(u[:, :num_shared], dim=0, return_inverse=True)
        first = _first(kernel)
        order, counts = torch.argsort(kernel, stable=True), torch.bincount(kernel)
        slot = torch.empty_like(kernel)
        slot[order] = torch.arange(len(u), device=u.device) - (counts.cumsum(0) - counts)[kernel[order]]

        covar_module, likelihood = space.at(u[first], "covar_module"), space.at(u[first], "likelihood")
        covariance = covar_module(X).to_dense().expand(len(first), -1, -1)
        noise = likelihood.noise.reshape(-1, 1).expand(len(first), len(X))  # bounded below, and so a jitter
        covariance = covariance + torch.diag_embed(noise)
        warping = space.at(u, "warping")
        z, log_slope = warping(y).expand(len(u), -1), warping.log_derivative(y).expand(len(u), -1)
        log_slope = log_slope - self.log_unit
        largest = torch.finfo(self.y.dtype).max ** LARGEST_POWER
        inside = (z.abs().amax(-1) < largest) & (z.amax(-1) > z.amin(-1)) & log_slope.isfinite().all(-1)
        if self.num_moments:
            inside = inside & (self.num_moments * warping.tail_power.squeeze(-1) < len(y) - basis.shape[-1])
        z = torch.where(inside.unsqueeze(-1), z, y)  # not used
        outcomes = z.new_zeros(len(first), int(counts.max()), len(y)).index_put((kernel, slot), z).mT
        regression = TransformedRegression.of(covariance, basis, outcomes)
        jacobian = z.new_zeros(len(first), int(counts.max())).index_put((kernel, slot), log_slope.sum(-1))
        log_likelihood = regression.log_evidence(jacobian)[kernel, slot]
        log_likelihood = torch.where(inside & ~log_likelihood.isnan(), log_likelihood, -math.inf)
        log_weight = log_likelihood + space.log_prior(u)
        sign = torch.ones_like(log_likelihood)
        return WeightedNodes(regression, kernel, slot, u, log_weight, log_likelihood, sign, log_slope)


def _first(kernel: Tensor) -> Tensor:
    """The first node of every kernel."""
    first = torch.zeros(int(kernel.max()) + 1, dtype=torch.long, device=kernel.device)
    first[kernel.flip(0)] = torch.arange(len(kernel), device=kernel.device).flip(0)
    return first
