r"""A transformed process given nodes of the parameters that it integrates over: their weights, and the posterior."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.parameters import ParameterSpace
from botorch_skewgp.transformed.defaults import Mean, OutcomeUnits, mean_basis
from botorch_skewgp.transformed.nodes import Nodes
from botorch_skewgp.transformed.posterior import JointScale, TransformedTPosterior, WarpingNodes
from botorch_skewgp.transformed.regression import (
    TransformedRegression,
    WeightedNodes,
    effective_number,
    first_of,
    keep_largest,
    standard_error,
)
from botorch_skewgp.warpings import Warping

LARGEST_POWER = 0.45  # of the largest number, up to which warped outcomes have squares, also in the data's precision
MIN_VARIANCE = 1e-12  # posterior variance, in units of the prior's
NUM_PROBES = 8  # data at which probabilities are checked, and as many points between
CHECKED_LEVELS = (0.025, 0.5, 0.975)


class Quadrature(NamedTuple):
    """The nodes kept, with the kernel, noise and warping there, and diagnostics."""

    nodes: WeightedNodes
    covar_module: Kernel  # of batch shape `T`
    noise: Tensor  # `T x 1`
    warping: WarpingNodes
    log_evidence: float  # over all nodes, as the next
    effective_number: float
    share_left_out: float
    probability_error: float = 0.0


class LeaveOneOut(NamedTuple):
    """Predictions of every outcome from all others.

    The laws of the noisy outcomes are a batch of shape `n` of one point each; the sum of their log densities at the
    outcomes, `n`, is the leave-one-out score of a model, with a standard error from the spread over nodes. Levels are
    cdfs, `n`, uniform if the model is right; the effective number of nodes is that given all outcomes but each, `n`.
    """

    posterior: TransformedTPosterior
    log_density: Tensor
    level: Tensor
    effective_number: Tensor
    standard_error: float


@dataclass(frozen=True, eq=False)
class ScaleMatrices:
    """Scale matrices at points, made where values of several points are drawn; see `TransformedRegression.whitened`.

    Args:
        covar_module: The kernel, of batch shape `T`.
        inputs: The transformed points, `batch_shape x q x d`.
        noise: The noise variances, `T x 1`, zero for noise-free values.
        explained: `V`, `T x n x N`, with the `N` points of the batch in a row.
        coefficients: `W`, `T x p x N`.
    """

    covar_module: Kernel
    inputs: Tensor
    noise: Tensor
    explained: Tensor
    coefficients: Tensor

    def __call__(self) -> Tensor:
        """The matrices `K + noise - V^T V + W^T W`, `batch_shape x T x q x q`."""
        shape = self.inputs.shape[:-1]
        matrix = self.covar_module(self.inputs.unsqueeze(-3)).to_dense()
        matrix = matrix + torch.diag_embed(self.noise.expand(-1, shape[-1]))
        V = self.explained.unflatten(-1, shape).movedim((0, 1), (-3, -2))
        W = self.coefficients.unflatten(-1, shape).movedim((0, 1), (-3, -2))
        return matrix - V.mT @ V + W.mT @ W


@dataclass(frozen=True, eq=False)
class IntegratedProcess:
    """Outcomes at transformed points, and the parameters to integrate over."""

    space: ParameterSpace
    X: Tensor  # `n x d`
    y: Tensor  # `n`
    units: OutcomeUnits
    mean: Mean
    num_moments: int  # of the outcome, without which nodes have no weight

    def weigh(self, u: Tensor, log_weight: Tensor | float = 0.0) -> WeightedNodes:
        """Factors and weights of nodes, `S x D`, those of equal kernel parameters together; differentiable."""
        space = self.space
        num_shared = space.dim("covar_module", "likelihood")
        X, y = self.X.to(u), self.units.standardise(self.y).to(u)
        basis = self._basis(self.X).to(u)
        if num_shared == 0:
            kernel = torch.zeros(len(u), dtype=torch.long, device=u.device)
        elif u.requires_grad or len(u) == 1:
            kernel = torch.arange(len(u), device=u.device)
        else:
            _, kernel = torch.unique(u[:, :num_shared], dim=0, return_inverse=True)
        first = first_of(kernel)
        # the place of each node among those of its kernel
        counts = torch.bincount(kernel)
        start = counts.cumsum(0) - counts
        order = torch.argsort(kernel, stable=True)
        slot = torch.empty_like(kernel)
        slot[order] = torch.arange(len(u), device=u.device) - start[kernel[order]]

        covar_module = space.at(u[first], "covar_module")
        likelihood = space.at(u[first], "likelihood")
        covariance = covar_module(X).to_dense().expand(len(first), -1, -1)
        noise = likelihood.noise.reshape(-1, 1).expand(len(first), len(X))  # bounded below, and so a jitter
        covariance = covariance + torch.diag_embed(noise)
        warping = space.at(u, "warping")
        z = warping(y).expand(len(u), -1)
        log_slope = warping.log_derivative(y).expand(len(u), -1) - math.log(self.units.scale)
        largest = torch.finfo(self.y.dtype).max ** LARGEST_POWER
        is_bounded = (z.abs().amax(-1) < largest) & log_slope.isfinite().all(-1)
        inside = is_bounded & (z.amax(-1) > z.amin(-1))
        if self.num_moments:
            df = len(y) - basis.shape[-1]
            inside = inside & (self.num_moments * warping.tail_power.squeeze(-1) < df)
        z = torch.where(inside.unsqueeze(-1), z, y)  # not used
        table = z.new_zeros(len(first), int(counts.max()))
        outcomes = table.unsqueeze(-1).repeat(1, 1, len(y)).index_put((kernel, slot), z)
        jacobian = table.index_put((kernel, slot), log_slope.sum(-1))
        regression = TransformedRegression.of(covariance, basis, outcomes.mT)
        log_likelihood = regression.log_evidence(jacobian)[kernel, slot]
        log_likelihood = torch.where(inside & log_likelihood.isfinite(), log_likelihood, -math.inf)
        log_weight = log_likelihood + space.log_prior(u) + log_weight
        return WeightedNodes(regression, kernel, slot, u, log_weight, log_likelihood, z, log_slope)

    def quadrature(self, given: Nodes, tolerance: float) -> Quadrature:
        """Given nodes with their weights, without those of little weight."""
        nodes = self.weigh(*given)
        is_singular = ~nodes.regression.is_valid[nodes.kernel]
        if bool(is_singular.any()):
            warnings.warn(
                "The covariance of some nodes is singular; they are left out. Are points repeated, or the noise's "
                "prior too low?",
                QuadratureWarning,
                stacklevel=6,
            )
        log_evidence = float(nodes.log_weight.logsumexp(0))
        if not math.isfinite(log_evidence):
            raise UnsupportedError("No node has a weight: the density of the data is zero at all of them.")
        probabilities = nodes.probabilities
        kept = keep_largest(probabilities, tolerance)
        nodes = nodes.keep(kept)
        return Quadrature(
            nodes,
            cast(Kernel, self.space.at(nodes.of_kernels, "covar_module")),
            self.space.at(nodes.of_kernels, "likelihood").noise.reshape(-1, 1),
            self.warping(nodes.u),
            log_evidence,
            effective_number(probabilities),
            share_left_out=1 - float(probabilities[kept].sum()),
        )

    @cached_property
    def differences(self) -> Tensor:
        """The map, `p x p`, from the basis functions to what they are less the first datum's times a constant."""
        basis = mean_basis(self.mean, self.X)
        change = torch.eye(basis.shape[-1], dtype=basis.dtype, device=basis.device)
        for place in (basis == 1).all(0).nonzero().flatten()[:1]:
            change[place] -= basis[0]
            change[place, place] = 1.0
        return change

    def _basis(self, inputs: Tensor) -> Tensor:
        """A basis of the mean at transformed points, `n x d`: values, `n x p`, differences where there is a constant.

        They are exact where values are large and near each other, as of seconds since 1970; what is told of outcomes
        hangs on the span alone.
        """
        return mean_basis(self.mean, inputs, len(self.differences)) @ self.differences

    def warping(self, u: Tensor) -> WarpingNodes:
        """The warping at nodes, `S x D`."""
        raw = self.space.raw_parameters(u, "warping")
        return WarpingNodes(cast(Warping, self.space.modules["warping"]), {n: v.squeeze(-1) for n, v in raw.items()})

    def posterior(self, quadrature: Quadrature, inputs: Tensor, noisy: bool = False) -> TransformedTPosterior:
        """The posterior at transformed points, `batch_shape x q x d`."""
        nodes, covar_module = quadrature.nodes, quadrature.covar_module
        regression, num_kernels = nodes.regression, len(nodes.of_kernels)
        shape, dtype = inputs.shape[:-1], inputs.dtype
        basis = self._basis(inputs.flatten(0, -2)).to(nodes.u)
        inputs = inputs.to(nodes.u)
        flat = inputs.flatten(0, -2)
        cross = covar_module(self.X.to(nodes.u), flat).to_dense()
        explained, coefficients = regression.whitened(cross.expand(num_kernels, -1, -1), basis)  # V and W
        noise = quadrature.noise if noisy else torch.zeros_like(quadrature.noise)
        prior = (covar_module(flat, diag=True) + noise).expand(num_kernels, -1)
        square = prior - explained.square().sum(-2) + coefficients.square().sum(-2)  # T x N
        square = square.clamp_min(MIN_VARIANCE)  # rounding, where noise is tiny
        factor = nodes.select(regression.square) / regression.df  # S
        location = nodes.select(regression.locations(explained, basis))  # N x S
        scale = (square.mT[:, nodes.kernel] * factor).sqrt()

        matrices = ScaleMatrices(covar_module, inputs, noise, explained, coefficients)
        joint = JointScale(matrices, nodes.kernel, factor.to(dtype), prior.unflatten(-1, shape).movedim(0, -2))
        return TransformedTPosterior(
            location.unflatten(0, shape).to(dtype),
            scale.unflatten(0, shape).to(dtype),
            nodes.probabilities.to(dtype),
            regression.df,
            quadrature.warping.to(dtype),
            joint,
            offset=self.units.center,
            weight=self.units.scale,
        )

    def probability_error(self, quadrature: Quadrature) -> float:
        """The largest standard error of a cdf at its own quantiles, at some of the data and points halfway between."""
        chosen = self.X[:: math.ceil(len(self.X) / NUM_PROBES)]
        probes = torch.cat([chosen, 0.5 * (chosen + chosen.roll(1, 0))]).unsqueeze(-2)
        mixture, level = self.posterior(quadrature, probes).marginals, probes.new_tensor(CHECKED_LEVELS).view(-1, 1, 1)
        quantiles = mixture.quantile(level.expand(-1, *mixture.batch_shape))
        parts = mixture.component_cdf(quantiles.unsqueeze(-1)) - level.unsqueeze(-1)
        errors = standard_error(mixture.probabilities * parts, quadrature.nodes.kernel)
        return float(errors.max())

    def leave_one_out(self, given: Nodes) -> LeaveOneOut:
        """The predictions of all outcomes by nodes, each with the weights that it has without the outcome."""
        nodes = self.weigh(*given)
        location, scale, log_weight = nodes.left_out()
        probabilities = log_weight.softmax(-1)
        is_used = (probabilities != 0).any(0)  # others may have scales that are infinite
        used = is_used.nonzero().squeeze(-1)
        probabilities = probabilities[:, used]
        posterior = TransformedTPosterior(
            location[:, used].unsqueeze(-2),
            scale[:, used].unsqueeze(-2),
            probabilities,
            nodes.regression.df - 1,
            self.warping(nodes.u[used]),
            offset=self.units.center,
            weight=self.units.scale,
        )
        y = self.y.to(nodes.u).view(-1, 1, 1)
        log_density = posterior.marginals.component_log_density(self.units.standardise(y)).squeeze(-2)
        share = probabilities * (log_density - log_density.amax(-1, keepdim=True)).exp()
        influence = (share / share.sum(-1, keepdim=True) - probabilities).sum(0)  # on the sum of log densities
        error = 0.0 if len(nodes.u) == 1 else float(standard_error(influence, nodes.kernel[used]))
        effective = 1 / probabilities.square().sum(-1)
        return LeaveOneOut(posterior, posterior.log_density(y).flatten(), posterior.cdf(y).flatten(), effective, error)
