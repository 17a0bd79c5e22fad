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
from botorch_skewgp.transformed.nodes import Nodes, find_modes, smolyak_nodes, sobol_nodes
from botorch_skewgp.transformed.outcomes import OutcomeUnits
from botorch_skewgp.transformed.parameter_space import ParameterSpace
from botorch_skewgp.transformed.posterior import TransformedTPosterior, WarpingNodes
from botorch_skewgp.transformed.quadrature import effective_number, keep_largest
from botorch_skewgp.transformed.weights import TransformedData, WeightedNodes
from botorch_skewgp.warpings import Warping


class Quadrature(NamedTuple):
    r"""The nodes of posteriors, and diagnostics.

    Args:
        nodes: The nodes kept.
        covar_module: The kernel of every distinct kernel's parameters.
        noise: Their noise variances, `T x 1`.
        warping: The warping at the nodes.
        log_evidence: The logarithm of the integral over all nodes, including those left out.
        effective_number: The effective number of nodes.
        share_left_out: The share of the weight of the nodes left out.
    """

    nodes: WeightedNodes
    covar_module: Kernel
    noise: Tensor
    warping: WarpingNodes
    log_evidence: float
    effective_number: float
    share_left_out: float


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
    num_nodes: int
    level: int
    least_effective: float
    tolerance: float
    num_moments: int
    num_restarts: int
    seed: int
    _space: ParameterSpace
    _nodes: Nodes | None
    _quadrature: Quadrature | None

    def _clear_cache(self) -> None:
        self._nodes = self._quadrature = None

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
        self._nodes, self._quadrature = nodes, None

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
        if self.quadrature == "smolyak":
            return smolyak_nodes(modes[0], self.level)
        shared = space.dim("covar_module", "likelihood")
        return sobol_nodes(self.log_posterior, modes, shared, self.num_nodes, self.least_effective, self.seed)

    @torch.inference_mode(False)  # the search for modes needs gradients
    @torch.no_grad()
    def _integrate(self) -> Quadrature:
        self.eval()
        if self._quadrature is not None:
            return self._quadrature
        if self._nodes is None:
            self._nodes = self._make_nodes()
        given = self._nodes
        nodes = self._data.weigh(given.u)
        nodes = nodes._replace(log_weight=nodes.log_weight + given.log_weight, sign=given.sign)
        if bool(nodes.is_singular.any()):
            share = torch.softmax(given.log_weight, dim=0)[nodes.is_singular].sum()
            warnings.warn(
                f"The covariance of {int(nodes.is_singular.sum())} of {len(nodes.u)} nodes is singular; they are left "
                f"out, with {float(share):.1%} of the quadrature weight. Are points repeated, or the noise's prior too "
                "low?",
                QuadratureWarning,
                stacklevel=4,
            )
        log_evidence = float(nodes.log_weight.logsumexp(0))
        is_signed = bool((nodes.sign < 0).any())
        if is_signed:
            signed = (nodes.sign * (nodes.log_weight - log_evidence).exp()).sum()
            log_evidence = log_evidence + float(signed.log())
        if not math.isfinite(log_evidence):
            raise UnsupportedError(
                "The weights of all nodes do not sum to a positive number: the quadrature is too coarse. Use "
                'quadrature="sobol", or a higher level.'
            )
        probabilities = nodes.probabilities
        kept = keep_largest(probabilities, self.tolerance)
        kept_nodes, space = nodes.keep(kept), self._space
        raw_warping = space.raw_parameters(kept_nodes.u, "warping")
        self._quadrature = Quadrature(
            kept_nodes,
            cast(Kernel, space.at(kept_nodes.of_kernels, "covar_module")),
            space.at(kept_nodes.of_kernels, "likelihood").noise.reshape(-1, 1),
            WarpingNodes(self.warping, {name: raw.squeeze(-1) for name, raw in raw_warping.items()}),
            log_evidence,
            effective_number(probabilities),
            share_left_out=1 - float(probabilities[kept].abs().sum() / probabilities.abs().sum()),
        )
        if is_signed:
            self._check_monotone()
        return self._quadrature

    def _check_monotone(self) -> None:
        y = self.train_targets.double().sort().values
        grid = torch.cat([y, 0.5 * (y[1:] + y[:-1])]).sort().values
        posterior = self.posterior(self._points)
        assert isinstance(posterior, TransformedTPosterior)
        cdf = posterior.cdf(grid).squeeze(-1)
        if bool((cdf.diff(dim=0) < -1e-9).any()):
            warnings.warn(
                "Some of the sparse grid's weights are negative, and cdfs at the training points decrease in places by "
                f'up to {float(-cdf.diff(dim=0).min()):.2g}. Use quadrature="sobol", or another level.',
                QuadratureWarning,
                stacklevel=4,
            )

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
    def share_left_out(self) -> float:
        """The share of the weight of the nodes left out, which bounds the error of a cdf."""
        return self._integrate().share_left_out

    @property
    def weighted_nodes(self) -> WeightedNodes:
        """The nodes of posteriors, with their probabilities and coordinates."""
        return self._integrate().nodes
