r"""The parameters that a transformed process integrates over, their nodes, and the weights of these."""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple, cast

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from torch import Tensor

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.models.transforms import TransformedInputsMixin
from botorch_skewgp.transformed.leave_one_out import LeaveOneOutLaws, leave_one_out_laws
from botorch_skewgp.transformed.nodes import (
    LogPosterior,
    Mode,
    Nodes,
    find_modes,
    prior_proposal,
    smolyak_nodes,
    sobol_nodes,
    widened,
)
from botorch_skewgp.transformed.outcomes import OutcomeUnits
from botorch_skewgp.transformed.parameter_space import ParameterSpace
from botorch_skewgp.transformed.posterior import JointScale, TransformedTPosterior, WarpingNodes
from botorch_skewgp.transformed.quadrature import Proposal, effective_number, keep_largest
from botorch_skewgp.transformed.weights import TransformedData, WeightedNodes, standard_error
from botorch_skewgp.warpings import Warping

MIN_VARIANCE = 1e-12  # posterior variance, in units of the prior's
NUM_PROBES = 8  # data at which probabilities are checked, and as many points between
CHECKED_LEVELS = (0.025, 0.5, 0.975)
ACCEPTED_ERROR = 0.135  # of probabilities, times the root of the effective number asked for
MAX_NODES, MIN_NODES = 512, 128  # by default
NODES_UP_TO = 30  # points, up to which there are most nodes; then in inverse proportion, for the posterior is narrower
LEFT_OUT_NODES = 8  # times as many for the posteriors from all data but one, up to the same number of points
MAX_CONDITION = 10.0  # absolute weights of a grid, relative to their sum


class Quadrature(NamedTuple):
    """The nodes kept, with the kernel (`T`), noise (`T x 1`) and warping there, and diagnostics.

    `log_evidence` and `effective_number` are over all nodes, including those left out.
    """

    nodes: WeightedNodes
    covar_module: Kernel
    noise: Tensor
    warping: WarpingNodes
    log_evidence: float
    effective_number: float
    share_left_out: float
    probability_error: float = 0.0


class IntegratedProcess(TransformedInputsMixin, Model):
    r"""Base class of `BayesianTransformedGP`: its data and its nodes, which are made on first use."""

    train_inputs: tuple[Tensor]
    train_targets: Tensor
    covar_module: Kernel
    likelihood: Likelihood
    warping: Warping
    units: OutcomeUnits
    mean: Literal["constant", "linear"]
    quadrature: Literal["sobol", "smolyak", "mode"]
    num_nodes: int | None
    level: int
    least_effective: float
    tolerance: float
    num_moments: int
    num_restarts: int
    seed: int
    _space: ParameterSpace
    _nodes: Nodes | None
    _quadrature: Quadrature | None
    _proposals: tuple[list[Mode], Proposal] | None  # of which the nodes were made

    def _clear_cache(self) -> None:
        self._nodes = self._quadrature = self._proposals = None

    def _basis(self, X: Tensor) -> Tensor:
        one = torch.ones_like(X[..., :1])
        return one if self.mean == "constant" else torch.cat([one, X], dim=-1)

    @property
    def _data(self) -> TransformedData:
        X = self.train_inputs[0]
        y = self.units.standardise(self.train_targets)
        return TransformedData(self._space, X, y, self._basis(X), math.log(self.units.scale), self.num_moments)

    def parameter_names(self) -> list[str]:
        """The name of every integrated coordinate; logarithms of positive parameters."""
        return self._space.names()

    def coordinates(self) -> Tensor:
        """The coordinates of the modules' present parameters, in the order of `parameter_names`."""
        return self._space.coordinates()

    def log_prior(self, u: Tensor) -> Tensor:
        r"""The log prior density of coordinates of all parameters.

        Args:
            u: Coordinates, `S x D`, in the order of `parameter_names`.
        """
        return self._space.log_prior(u)

    def log_posterior(self, u: Tensor) -> Tensor:
        r"""The log density of the data and of coordinates of all parameters; mean and scale are integrated out.

        Args:
            u: Coordinates, `S x D`, in the order of `parameter_names`.

        Returns:
            A `S`-dim tensor, minus infinity where the covariance is singular or outcomes leave the warping's domain.
        """
        self.eval()
        return self._data.weigh(u).log_weight

    def use_nodes(self, nodes: Nodes) -> None:
        r"""Integrate with given nodes instead of those of `quadrature`, until data or parameters are replaced.

        Args:
            nodes: The nodes. A draw of the parameters' posterior has the weight one over its density, see
                `log_posterior`.
        """
        self._nodes, self._quadrature, self._proposals = nodes, None, None

    @torch.no_grad()
    def _make_nodes(self) -> Nodes:
        space = self._space
        if space.dim() == 0:
            return Nodes.single(self.train_targets.new_zeros(0, dtype=torch.float64))
        start = space.coordinates().to(self.train_targets.device)
        along = torch.tensor([float("lengthscale" in name) for name in space.names()]).to(start)
        modes = find_modes(self.log_posterior, start, self.num_restarts, self.seed, along if along.any() else None)
        space.assign(modes[0].center)
        if self.quadrature == "mode":
            return Nodes.single(modes[0].center)
        modes = [widened(self.log_posterior, mode) for mode in modes]
        if self.quadrature == "smolyak":
            return smolyak_nodes(modes, self.level)
        self._proposals = modes, prior_proposal(self.log_prior, start)
        return self._sobol_nodes(self.log_posterior)

    def _sobol_nodes(self, log_targets: LogPosterior, times: int = 1) -> Nodes:
        assert self._proposals is not None
        num_nodes, n = self.num_nodes, len(self.train_targets)
        if num_nodes is None:
            num_nodes = max(min(MAX_NODES, MAX_NODES * NODES_UP_TO // n), MIN_NODES)
        num_nodes *= max(min(times, times * NODES_UP_TO // n), 1)
        return sobol_nodes(log_targets, *self._proposals, num_nodes, self.least_effective, self.seed)

    def _warping_nodes(self, u: Tensor) -> WarpingNodes:
        raw = self._space.raw_parameters(u, "warping")
        return WarpingNodes(self.warping, {name: value.squeeze(-1) for name, value in raw.items()})

    def _leave_one_out_laws(self, nodes: WeightedNodes) -> LeaveOneOutLaws:
        y = self.units.standardise(self.train_targets.to(nodes.u))
        return leave_one_out_laws(nodes, self._space.at(nodes.u, "warping")(y).expand(len(nodes.u), -1))

    def _leave_one_out_nodes(self) -> WeightedNodes:
        """All nodes if they were given; else nodes for the posteriors from all outcomes but each."""
        data, given = self._data, self._nodes
        if self._proposals is not None:
            given = self._sobol_nodes(lambda u: self._leave_one_out_laws(data.weigh(u)).log_weight.mT, LEFT_OUT_NODES)
        assert given is not None
        nodes = data.weigh(given.u)
        return nodes._replace(log_weight=nodes.log_weight + given.log_weight, sign=given.sign)

    @torch.inference_mode(False)  # the search for modes needs gradients
    @torch.no_grad()
    def _integrate(self) -> Quadrature:
        self.eval()
        if self._quadrature is not None:
            return self._quadrature
        if self._nodes is None:
            self._nodes = self._make_nodes()
        quadrature = self._weighted(self._nodes)
        if self._nodes.is_single:
            error = 0.0
        elif self._nodes.coarser:
            error = max(self._difference(quadrature, nodes) for nodes in self._nodes.coarser)
        else:
            error = self._standard_error(quadrature)
        self._quadrature = quadrature._replace(probability_error=error)
        if error > self._accepted(ACCEPTED_ERROR):
            warnings.warn(
                f"Probabilities of predictions may be off by {error:.2f}: too few nodes count, or the data determine "
                "the parameters too poorly. Increase num_nodes, or use a warping with fewer parameters; after "
                "condition_on_observations call set_train_data, which makes new nodes.",
                QuadratureWarning,
                stacklevel=4,
            )
        return self._quadrature

    def _accepted(self, error: float) -> float:
        """An error that nodes of the effective number asked for have."""
        return error / math.sqrt(self.least_effective) if self.least_effective else math.inf

    def _weighted(self, given: Nodes) -> Quadrature:
        """Given nodes with their weights, without those of little weight."""
        nodes = self._data.weigh(given.u)
        nodes = nodes._replace(log_weight=nodes.log_weight + given.log_weight, sign=given.sign)
        if bool(nodes.is_singular.any()):
            share = torch.softmax(given.log_weight, dim=0)[nodes.is_singular].sum()
            warnings.warn(
                f"The covariance of {int(nodes.is_singular.sum())} of {len(nodes.u)} nodes is singular; they are left "
                f"out, with {float(share):.1%} of the quadrature weight. Are points repeated, or the noise's prior too "
                "low?",
                QuadratureWarning,
                stacklevel=5,
            )
        sizes = nodes.log_weight.logsumexp(0)
        total = (nodes.sign * (nodes.log_weight - sizes).exp()).sum()  # of positive weights it is one
        log_evidence = float(sizes + total.log())
        if not math.isfinite(log_evidence) or float(total) * MAX_CONDITION < 1:
            raise UnsupportedError(
                "The weights of all nodes do not sum to a positive number, or negative ones all but cancel the others: "
                'the quadrature is too coarse. Use quadrature="sobol", or another level.'
            )
        probabilities = nodes.probabilities
        kept = keep_largest(probabilities, self.tolerance)
        kept_nodes, space = nodes.keep(kept), self._space
        return Quadrature(
            kept_nodes,
            cast(Kernel, space.at(kept_nodes.of_kernels, "covar_module")),
            space.at(kept_nodes.of_kernels, "likelihood").noise.reshape(-1, 1),
            self._warping_nodes(kept_nodes.u),
            log_evidence,
            effective_number(probabilities),
            share_left_out=1 - float(probabilities[kept].abs().sum() / probabilities.abs().sum()),
        )

    def _law(self, quadrature: Quadrature, inputs: Tensor, observation_noise: bool = False) -> TransformedTPosterior:
        """The posterior at transformed points, `batch_shape x q x d`."""
        nodes, covar_module = quadrature.nodes, quadrature.covar_module
        batch_shape, q = inputs.shape[:-2], inputs.shape[-2]
        regression = nodes.regression
        flat, train = inputs.flatten(0, -2).to(nodes.u), self.train_inputs[0].to(nodes.u)
        basis = self._basis(flat)
        cross = covar_module(train, flat).to_dense().expand(len(nodes.of_kernels), -1, -1)
        gain, rest = regression.gains(cross, basis)
        noise = quadrature.noise if observation_noise else 0.0
        prior = (covar_module(flat, diag=True) + noise).expand(len(nodes.of_kernels), -1)
        square = prior - gain.square().sum(-2) + rest.square().sum(-2)  # T x N
        square = square.clamp_min(MIN_VARIANCE)  # rounding, where noise is tiny
        factor = nodes.select(regression.square) / regression.df  # S
        location = nodes.select(regression.locations(gain, basis))  # N x S
        scale = (square.mT[:, nodes.kernel] * factor).sqrt()

        def matrix() -> Tensor:
            points = inputs.to(nodes.u).unsqueeze(-3)
            dense = covar_module(points).to_dense()
            if observation_noise:
                dense = dense + torch.diag_embed(torch.as_tensor(noise).expand(-1, q))
            parts = (part.unflatten(-1, (*batch_shape, q)).movedim((0, 1), (-3, -2)) for part in (gain, rest))
            known, unknown = parts
            return dense - known.mT @ known + unknown.mT @ unknown

        dtype, shape = inputs.dtype, (*batch_shape, q, len(nodes.kernel))
        return TransformedTPosterior(
            location.view(shape).to(dtype),
            scale.view(shape).to(dtype),
            nodes.probabilities.to(dtype),
            regression.df,
            quadrature.warping.to(dtype),
            JointScale(matrix, nodes.kernel, factor.to(dtype), prior.unflatten(-1, (*batch_shape, q)).movedim(0, -2)),
            offset=self.units.center,
            weight=self.units.scale,
        )

    def _probes(self) -> Tensor:
        """Transformed points at which probabilities are checked: some of the data and points halfway between."""
        X = self.train_inputs[0]
        chosen = X[:: math.ceil(len(X) / NUM_PROBES)]
        return torch.cat([chosen, 0.5 * (chosen + chosen.roll(1, 0))]).unsqueeze(-2)

    def _standard_error(self, quadrature: Quadrature) -> float:
        """The largest standard error of a cdf at its own quantiles, from the spread over kernels."""
        law, nodes = self._law(quadrature, self._probes()).marginals, quadrature.nodes
        level = nodes.u.new_tensor(CHECKED_LEVELS).to(law.probabilities).unsqueeze(-1).unsqueeze(-1)
        components = law.component_cdf(law.quantile(level.expand(-1, *law.batch_shape)).unsqueeze(-1))
        parts = law.probabilities * (components - level.unsqueeze(-1))
        return float(standard_error(parts, nodes.kernel).max())

    def _difference(self, quadrature: Quadrature, coarser: Nodes) -> float:
        """The largest difference of a cdf, at its own quantiles, from that of other nodes; infinite if these fail."""
        probes = self._probes()
        level = probes.new_tensor(CHECKED_LEVELS)
        try:
            other = self._law(self._weighted(coarser), probes)
        except UnsupportedError:
            return math.inf
        cdf = other.cdf(self._law(quadrature, probes).quantile(level))
        return float((cdf - level.view(-1, 1, 1, 1)).abs().max())

    @property
    def log_evidence(self) -> float:
        """The log density of the outcomes, all parameters integrated out; comparable between warpings of the same data.

        The priors of mean and scale are improper, hence so is the constant: compare models with the same `mean` only.
        """
        return self._integrate().log_evidence

    @property
    def effective_number_of_nodes(self) -> float:
        """`(sum w)^2 / sum w^2` over the nodes' weights."""
        return self._integrate().effective_number

    @property
    def probability_error(self) -> float:
        """An estimate of the largest error of the cdf of a prediction, from the nodes themselves.

        The standard error at levels of 2.5, 50 and 97.5 %, from the spread over kernels; of a sparse grid, the
        difference from the grids one and two levels below.
        """
        return self._integrate().probability_error

    @property
    def share_left_out(self) -> float:
        """The share of the weight of the nodes left out, which bounds the error of a cdf."""
        return self._integrate().share_left_out

    @property
    def weighted_nodes(self) -> WeightedNodes:
        """The nodes of posteriors, with their probabilities and coordinates."""
        return self._integrate().nodes
