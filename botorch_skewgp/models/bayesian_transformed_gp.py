r"""The Bayesian transformed Gaussian process: numbers on a scale that nobody knows.

.. [DeOliveira1997btg] V. De Oliveira, B. Kedem, D. A. Short. Bayesian prediction of transformed Gaussian random fields.
   Journal of the American Statistical Association 92, 1997.
.. [Hvarfner2024vanilla] C. Hvarfner, E. O. Hellsten, L. Nardi. Vanilla Bayesian optimization performs great in high
   dimensions. ICML 2024.
.. [Zhu2023btg] X. Zhu, L. Huang, C. Ibrahim, E. H. Lee, D. Bindel. Bayesian transformed Gaussian processes.
   Transactions on Machine Learning Research, 2023.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import copy
from typing import Any, Literal, NamedTuple, Self, cast

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.generation.gen import gen_candidates_scipy
from botorch.models.model import Model
from botorch.models.transforms.input import InputTransform
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
)
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import Kernel, ScaleKernel
from torch import Tensor

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.models.inputs import check_train_X
from botorch_skewgp.models.parameter_space import ParameterSpace
from botorch_skewgp.models.quadrature import Proposal, effective_number, keep_largest, smolyak_grid
from botorch_skewgp.models.transformed_regression import TransformedRegression
from botorch_skewgp.models.transforms import transformed_dim
from botorch_skewgp.posteriors.transformed_t import JointScale, TransformedTPosterior, WarpingNodes
from botorch_skewgp.warpings import SinhArcsinh, Warping

WARPINGS_PER_KERNEL = 4  # nodes of the warping for each of the kernel, with sobol nodes
WIDENING = 1.2  # of the Laplace approximation's standard deviations, for nodes in the tails
MOST_SPREAD = 2.0  # standard deviation of a coordinate that the data say little about, for nodes
MOST_ROUNDS = 6
REACH = 8.0  # how far from the start a mode is looked for, in coordinates
BOX = 2.5  # half the side of a Smolyak grid, in standard deviations along the axes of the Cholesky factor
SMALLEST = 1e-12  # posterior variance, in units of the prior's


class Nodes(NamedTuple):
    r"""Nodes of all parameters.

    Args:
        u: Their coordinates, `S x D`.
        log_weight: The logarithms of the absolute values of quadrature weights, `S`, without the posterior density.
        sign: The signs of those weights, `S`.
    """

    u: Tensor
    log_weight: Tensor
    sign: Tensor


class Fitted(NamedTuple):
    r"""What posteriors need, made once for given data and nodes.

    Args:
        regression: The factors, of `T` kernels and up to `J` warpings each.
        kernel: The kernel of every node, `S`.
        slot: Where the node's warped outcomes are among its kernel's, `S`.
        u: The nodes' coordinates, `S x D`.
        log_weight: The logarithms of absolute quadrature weights times posterior densities, `S`.
        log_likelihood: The log densities of the data, `S`.
        sign: The signs of weights, `S`.
        log_slope: The log derivatives of the warping at the outcomes, `S x n`.
        log_evidence: The logarithm of the integral over all nodes, those left out included.
        effective_number: The effective number of nodes.
        share_left_out: The share of the weight that sparsification has left out.
    """

    regression: TransformedRegression
    kernel: Tensor
    slot: Tensor
    u: Tensor
    log_weight: Tensor
    log_likelihood: Tensor
    sign: Tensor
    log_slope: Tensor
    log_evidence: float
    effective_number: float
    share_left_out: float

    @property
    def probabilities(self) -> Tensor:
        """The nodes' probabilities, which sum to one, `S`."""
        return _normalised(self.log_weight, self.sign)

    def select(self, x: Tensor) -> Tensor:
        r"""What belongs to the nodes.

        Args:
            x: A tensor `T x ... x J`.

        Returns:
            A tensor `... x S`.
        """
        return x.movedim(0, -2).flatten(-2)[..., self.kernel * x.shape[-1] + self.slot]


class LeaveOneOut(NamedTuple):
    r"""Predictions of every outcome from all others.

    Args:
        posterior: The laws of the noisy outcomes, a batch of shape `n` of one point each.
        log_density: Their log densities at the outcomes, `n`; the sum is the leave-one-out score of a model.
        level: Their cdfs at the outcomes, `n`; uniform if the model is right.
    """

    posterior: TransformedTPosterior
    log_density: Tensor
    level: Tensor


class BayesianTransformedGP(Model):
    r"""A Gaussian process of a warped outcome, over whose warping and kernel parameters is integrated.

    `g(f(x))` is a Gaussian process for an increasing map `g` with unknown shape. Mean and scale of the process are
    integrated out in closed form, as in [DeOliveira1997btg]_; the parameters of the warping, the kernel and the noise
    by quadrature ([Zhu2023btg]_). Nothing is fitted: the nodes are made when the posterior is first asked for.

    Outcomes are standardised inside by their median and interquartile range, on which scale the warpings' priors make
    sense; positive ones, if the warping needs them, divided by their geometric mean. Posteriors are in units of the
    outcome.

    Example:
        >>> transformed = BayesianTransformedGP(train_X, values.exp().unsqueeze(-1))
        >>> median = transformed.posterior(X).median
    """

    _supports_cache_root = False
    _supports_batched_models = False

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        warping: Warping | None = None,
        covar_module: Kernel | None = None,
        num_nodes: int = 128,
        input_transform: InputTransform | None = None,
        mean: Literal["constant", "linear"] = "constant",
        quadrature: Literal["sobol", "smolyak", "mode"] = "sobol",
        level: int = 3,
        least_effective: float = 32.0,
        tolerance: float = 1e-3,
        num_moments: int = 0,
        standardize: bool = True,
        num_restarts: int = 4,
        seed: int = 0,
    ) -> None:
        r"""
        Args:
            train_X: An `n x d` tensor of points.
            train_Y: An `n x 1` tensor of outcomes.
            warping: The warping; `SinhArcsinh()` if `None`, and `Affine()` for none.
            covar_module: The kernel, of unit variance; by default an RBF kernel with the dimension-scaled lengthscale
                prior of [Hvarfner2024vanilla]_.
            num_nodes: The number of quasi-Monte Carlo nodes in a round. Rounds follow, at most 6 in all, until the
                effective number of nodes is large enough.
            input_transform: A BoTorch input transform.
            mean: The mean of the process: unknown and constant, or linear in the (transformed) inputs.
            quadrature: `"sobol"` for quasi-Monte Carlo nodes around the mode, `"smolyak"` for a sparse grid in a box
                around it, whose weights may be negative; `"mode"` for the mode alone, a warped Gaussian process.
            level: The level of the sparse grid.
            least_effective: The effective number of quasi-Monte Carlo nodes that is enough.
            tolerance: The share of the weight whose nodes are left out, which bounds the error of the cdf.
            num_moments: The number of moments that the prior demands of outcomes: nodes of heavier tails are left out.
            standardize: Whether to standardise outcomes.
            num_restarts: The number of starts of the search for the mode.
            seed: Seeds the nodes and the starts.

        Raises:
            InputDataError: If data are not finite, outcomes all equal, too few, or outside of the warping's domain.
            UnsupportedError: If the kernel has a scale of its own.
        """
        check_train_X(train_X)
        super().__init__()
        if isinstance(covar_module, ScaleKernel):
            raise UnsupportedError(
                "covar_module must not be a ScaleKernel: the scale is integrated out in closed form. Give its base "
                "kernel."
            )
        self.warping = SinhArcsinh() if warping is None else warping
        dim = train_X.shape[-1] if input_transform is None else transformed_dim(input_transform, train_X)
        self.mean: Literal["constant", "linear"] = mean
        _check_outcomes(train_X, train_Y, self.warping, num_coefficients=1 if mean == "constant" else 1 + dim)
        self.train_inputs: tuple[Tensor] = (train_X,)
        self.train_targets = train_Y.squeeze(-1)
        if covar_module is None:
            covar_module = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
        self.covar_module = covar_module
        self.likelihood = get_gaussian_likelihood_with_lognormal_prior()
        if input_transform is not None:
            self.input_transform = input_transform
        self.num_nodes, self.quadrature, self.level = num_nodes, quadrature, level
        self.least_effective, self.tolerance = least_effective, tolerance
        self.num_moments, self.num_restarts, self.seed = num_moments, num_restarts, seed
        self.center, self.scale = _outcome_scale(self.train_targets, self.warping) if standardize else (0.0, 1.0)
        self._space = ParameterSpace(
            {"covar_module": self.covar_module, "likelihood": self.likelihood, "warping": self.warping}
        )
        self._nodes: Nodes | None = None
        self._fitted: Fitted | None = None
        self.to(train_X)

    @classmethod
    def construct_inputs(cls, training_data: SupervisedDataset, **kwargs: Any) -> dict[str, Any]:
        r"""The constructor's arguments for a BoTorch dataset, which is how Ax builds models.

        Args:
            training_data: A dataset of one outcome. Its noise variances, if any, are not used: noise is learned.
            kwargs: Further arguments of the constructor.

        Raises:
            UnsupportedError: If the dataset has several outcomes.
        """
        if training_data.Y.shape[-1] != 1:
            raise UnsupportedError(
                f"BayesianTransformedGP models one outcome; got {training_data.outcome_names}. Build one model for "
                "each and join them in a ModelList."
            )
        return {"train_X": training_data.X, "train_Y": training_data.Y, **kwargs}

    # The contract of BoTorch's models

    @property
    def num_outputs(self) -> int:
        """The number of outputs, which is one."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape, which is empty."""
        return torch.Size()

    def set_train_data(
        self, inputs: Tensor | tuple[Tensor] | None = None, targets: Tensor | None = None, strict: bool = True
    ) -> None:
        r"""Replace points, outcomes or both; the nodes are made anew, the standardisation stays.

        Args:
            inputs: An `n x d` tensor.
            targets: An `n`-dim tensor of outcomes.
            strict: Not used: other numbers of points are fine.
        """
        X = self.train_inputs[0] if inputs is None else (inputs if isinstance(inputs, Tensor) else inputs[0])
        y = self.train_targets if targets is None else targets
        _check_outcomes(X, y.unsqueeze(-1), self.warping, self._basis(X).shape[-1])
        self.train_inputs, self.train_targets = (X,), y
        self._clear_cache()

    def _clear_cache(self) -> None:
        self._nodes = self._fitted = None

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load parameters; the nodes are made anew."""
        self._clear_cache()
        return super().load_state_dict(*args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        self.train_inputs = tuple(fn(X) for X in self.train_inputs)  # type: ignore[assignment]
        if self._original_train_inputs is not None:
            self._original_train_inputs = fn(self._original_train_inputs)
        before, self.train_targets = self.train_targets, fn(self.train_targets)
        if self.train_targets is not before:
            self._fitted = None
        return super()._apply(fn, *args, **kwargs)

    def _basis(self, X: Tensor) -> Tensor:
        one = torch.ones_like(X[..., :1])
        return one if self.mean == "constant" else torch.cat([one, X], dim=-1)

    # Nodes

    def _regress(self, u: Tensor) -> Fitted:
        """The factors and weights of nodes `u`, those of equal kernel parameters together; differentiable in them."""
        space = self._space
        X, y = self.train_inputs[0].to(u), self._standardised_targets().to(u)
        num_shared = space.dim("covar_module", "likelihood")
        if u.requires_grad or len(u) == 1:
            first = kernel = torch.arange(len(u), device=u.device)
        else:
            _, kernel = torch.unique(u[:, :num_shared], dim=0, return_inverse=True)
            first = torch.zeros(int(kernel.max()) + 1, dtype=torch.long, device=u.device)
            first[kernel.flip(0)] = torch.arange(len(u), device=u.device).flip(0)
        order = torch.argsort(kernel, stable=True)
        slot = torch.empty_like(kernel)
        counts = torch.bincount(kernel)
        slot[order] = torch.arange(len(u), device=u.device) - (counts.cumsum(0) - counts)[kernel[order]]

        covar_module, likelihood = space.at(u[first], "covar_module"), space.at(u[first], "likelihood")
        covariance = covar_module(X).to_dense().expand(len(first), -1, -1)
        noise = likelihood.noise.reshape(-1, 1).expand(len(first), len(X))  # bounded below, which is jitter enough
        covariance = covariance + torch.diag_embed(noise)
        warping = space.at(u, "warping")
        z, log_slope = warping(y).expand(len(u), -1), warping.log_derivative(y).expand(len(u), -1)
        log_slope = log_slope - math.log(self.scale)
        inside = z.isfinite().all(-1) & (z.amax(-1) > z.amin(-1)) & log_slope.isfinite().all(-1)
        if self.num_moments:
            inside = inside & (self.num_moments * warping.tail_power.squeeze(-1) < len(y) - self._basis(X).shape[-1])
        z = torch.where(inside.unsqueeze(-1), z, y)  # what these say is not used
        outcomes = z.new_zeros(len(first), int(counts.max()), len(y)).index_put((kernel, slot), z).mT
        regression = TransformedRegression.of(covariance, self._basis(X), outcomes)
        jacobian = z.new_zeros(len(first), int(counts.max())).index_put((kernel, slot), log_slope.sum(-1))
        log_likelihood = regression.log_evidence(jacobian)[kernel, slot]
        log_likelihood = torch.where(inside & ~log_likelihood.isnan(), log_likelihood, -math.inf)
        return Fitted(
            regression=regression,
            kernel=kernel,
            slot=slot,
            u=u,
            log_weight=log_likelihood + space.log_prior(u),
            log_likelihood=log_likelihood,
            sign=torch.ones_like(log_likelihood),
            log_slope=log_slope,
            log_evidence=math.nan,
            effective_number=math.nan,
            share_left_out=0.0,
        )

    def _standardised_targets(self) -> Tensor:
        return (self.train_targets - self.center) / self.scale

    def log_posterior(self, u: Tensor) -> Tensor:
        r"""The log density of the data and of coordinates of all parameters; mean and scale are integrated out.

        Args:
            u: Coordinates, `S x D`, in the order of `parameter_names`.

        Returns:
            A `S`-dim tensor, minus infinity where the covariance is singular or outcomes leave the warping's domain.
        """
        self.eval()
        return self._regress(u).log_weight

    def parameter_names(self) -> list[str]:
        """The name of every coordinate that is integrated over; logarithms of positive parameters."""
        return self._space.names()

    def _find_mode(self) -> tuple[Tensor, Tensor]:
        """The mode of the parameters' posterior, and the lower root of the covariance of its Laplace approximation."""
        space = self._space
        start = space.coordinates()
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.randn(self.num_restarts - 1, len(start), generator=generator, dtype=start.dtype)
        starts = torch.cat([start.unsqueeze(0), start + noise]).to(self.train_targets.device)

        def objective(u: Tensor) -> Tensor:
            u = u.squeeze(-2)
            if (
                u.requires_grad
            ):  # where a warping overflows, the floor below is flat, but its gradient is 0 times infinity
                u.register_hook(lambda gradient: torch.where(gradient.isfinite(), gradient, 0.0))
            value = self._regress(u).log_weight
            return torch.where(value.isfinite(), value, -1e8)

        with torch.enable_grad(), warnings.catch_warnings(record=True):
            # of the optimiser, that it stopped early: a start, and not all of them, is to find the mode
            found, values = gen_candidates_scipy(
                starts.unsqueeze(-2),
                objective,  # type: ignore[arg-type]
                lower_bounds=start - REACH,
                upper_bounds=start + REACH,
                options={"maxiter": 60},
            )
        mode = found[values.argmax()].squeeze(0).detach()
        if not bool(values.max() > -1e8):
            raise InputDataError(
                "No parameters were found at which the covariance has a Cholesky factor and all outcomes are in the "
                "domain of the warping. Check the kernel and the warping."
            )
        return mode, torch.linalg.cholesky(self._laplace_covariance(mode, objective))

    def _laplace_covariance(self, mode: Tensor, objective: Callable[[Tensor], Tensor]) -> Tensor:
        """The inverse of the curvature at the mode, by central differences of gradients; its spread is bounded."""
        step = 1e-3 * torch.eye(len(mode), dtype=mode.dtype, device=mode.device)
        with torch.enable_grad():
            u = torch.cat([mode + step, mode - step]).requires_grad_()
            (gradient,) = torch.autograd.grad(objective(u.unsqueeze(-2)).sum(), u)
        curvature = -(gradient[: len(mode)] - gradient[len(mode) :]) / 2e-3
        curvature = 0.5 * (curvature + curvature.mT)
        values, vectors = torch.linalg.eigh(torch.where(curvature.isfinite(), curvature, 0.0))
        return (vectors / values.clamp_min(MOST_SPREAD**-2)) @ vectors.mT

    @torch.no_grad()
    def _make_nodes(self) -> Nodes:
        if self._space.dim() == 0:
            u = self.train_targets.new_zeros(1, 0, dtype=torch.float64)
            return Nodes(u, u.new_zeros(1), u.new_ones(1))
        mode, root = self._find_mode()
        self._space.assign(mode)
        if self.quadrature == "mode":
            return Nodes(mode.unsqueeze(0), mode.new_zeros(1), mode.new_ones(1))
        if self.quadrature == "smolyak":
            return self._smolyak_nodes(mode, root)
        return self._sobol_nodes(mode, WIDENING * root)

    def _smolyak_nodes(self, mode: Tensor, root: Tensor) -> Nodes:
        grid, weights = smolyak_grid(len(mode), self.level)
        grid, weights = grid.to(mode), weights.to(mode)
        volume = (2 * BOX * root.diagonal()).log().sum()
        return Nodes(mode + BOX * grid @ root.mT, weights.abs().log() + volume, weights.sign())

    def _sobol_nodes(self, mode: Tensor, root: Tensor) -> Nodes:
        """Rounds of nodes, each around the mean of those before, weighted as draws of the mixture of all rounds."""
        space = self._space
        shared = space.dim("covar_module", "likelihood")
        inner = WARPINGS_PER_KERNEL if shared < space.dim() else 1
        proposals = [Proposal(mode, root)]
        u, log_posterior = mode.new_zeros(0, len(mode)), mode.new_zeros(0)
        for i in range(MOST_ROUNDS):
            new = proposals[-1].nodes(max(self.num_nodes // inner, 1), inner, shared, self.seed + 2 * i)
            u, log_posterior = torch.cat([u, new]), torch.cat([log_posterior, self._regress(new).log_weight])
            log_density = torch.stack([proposal.log_density(u) for proposal in proposals]).logsumexp(0)
            log_density = log_density - math.log(len(proposals)) + math.log(len(u))
            weights = torch.softmax(log_posterior - log_density, dim=0)
            effective = effective_number(weights)
            if effective >= min(self.least_effective, 0.5 * self.num_nodes):
                break
            center = weights @ u
            covariance = (u - center).mT @ (weights.unsqueeze(-1) * (u - center))
            share = effective / (effective + len(mode))  # of few effective nodes, the covariance says little
            covariance = share * WIDENING**2 * covariance + (1 - share) * root @ root.mT
            proposals.append(Proposal(center, torch.linalg.cholesky(covariance)))
        else:
            warnings.warn(
                f"The effective number of nodes is {effective:.1f} after {len(u)} nodes; {self.least_effective:g} was "
                "asked for. Quantiles are less accurate; increase num_nodes, or use a warping with fewer parameters.",
                QuadratureWarning,
                stacklevel=4,
            )
        return Nodes(u, -log_density, torch.ones_like(log_density))

    @torch.no_grad()
    def _fit(self) -> Fitted:
        self.eval()
        if self._fitted is not None:
            return self._fitted
        if self._nodes is None:
            self._nodes = self._make_nodes()
        nodes = self._nodes
        fitted = self._regress(nodes.u)
        fitted = fitted._replace(log_weight=fitted.log_weight + nodes.log_weight, sign=nodes.sign)
        is_singular = ~fitted.regression.is_valid[fitted.kernel]
        if bool(is_singular.any()):
            share = torch.softmax(nodes.log_weight, dim=0)[is_singular].sum()
            warnings.warn(
                f"The covariance of {int(is_singular.sum())} of {len(nodes.u)} nodes is singular; they are left out, "
                f"with {float(share):.1%} of the quadrature weight. Are points repeated, or the noise's prior too low?",
                QuadratureWarning,
                stacklevel=4,
            )
        log_evidence = float(fitted.log_weight.logsumexp(0))
        if bool((fitted.sign < 0).any()):
            signed = (fitted.sign * (fitted.log_weight - log_evidence).exp()).sum()
            log_evidence = log_evidence + float(signed.log())
        if not math.isfinite(log_evidence):
            raise UnsupportedError(
                'The weights of all nodes sum to nothing: the quadrature is too coarse. Use quadrature="sobol", or a '
                "higher level."
            )
        probabilities = fitted.probabilities
        kept = keep_largest(probabilities, self.tolerance)
        kernels, kernel = torch.unique(fitted.kernel[kept], return_inverse=True)
        self._fitted = Fitted(
            regression=fitted.regression.at(kernels),
            kernel=kernel,
            slot=fitted.slot[kept],
            u=fitted.u[kept],
            log_weight=fitted.log_weight[kept],
            log_likelihood=fitted.log_likelihood[kept],
            sign=fitted.sign[kept],
            log_slope=fitted.log_slope[kept],
            log_evidence=log_evidence,
            effective_number=effective_number(probabilities),
            share_left_out=1 - float(probabilities[kept].abs().sum() / probabilities.abs().sum()),
        )
        self._check_monotone(self._fitted)
        return self._fitted

    def _check_monotone(self, fitted: Fitted) -> None:
        if not bool((fitted.sign < 0).any()):
            return
        y = self.train_targets.double().sort().values
        grid = torch.cat([y, 0.5 * (y[1:] + y[:-1])]).sort().values
        cdf = self.posterior(self._untransformed_inputs()).cdf(grid).squeeze(-1)
        if bool((cdf.diff(dim=0) < -1e-9).any()):
            warnings.warn(
                "Some of the sparse grid's weights are negative, and cdfs at the training points decrease in places by "
                f'up to {float(-cdf.diff(dim=0).min()):.2g}. Use quadrature="sobol", or another level.',
                QuadratureWarning,
                stacklevel=4,
            )

    def _untransformed_inputs(self) -> Tensor:
        if self._has_transformed_inputs:
            assert self._original_train_inputs is not None
            return self._original_train_inputs
        return self.train_inputs[0]

    @property
    def log_evidence(self) -> float:
        """The log density of the outcomes, all parameters integrated out; comparable between warpings of the same data.

        The priors of mean and scale are improper, hence so is the constant: compare models with the same `mean` only.
        """
        return self._fit().log_evidence

    @property
    def effective_number_of_nodes(self) -> float:
        """`(sum w)^2 / sum w^2` over the nodes' weights."""
        return self._fit().effective_number

    @property
    def share_left_out(self) -> float:
        """The share of the weight that belongs to nodes left out, which bounds the error that this makes in a cdf."""
        return self._fit().share_left_out

    # Predictions

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> TransformedTPosterior:
        r"""The posterior at points.

        Args:
            X: A `batch_shape x q x d` tensor.
            output_indices: `[0]` or `None`: there is one output.
            observation_noise: Whether to predict new noisy outcomes instead of noise-free ones.
            posterior_transform: A `ScalarizedPosteriorTransform` is an affine map of the posterior; others are called
                with it.

        Raises:
            UnsupportedError: If the variances of noise are given, or there are other outputs than the first.
        """
        if isinstance(observation_noise, Tensor):
            raise UnsupportedError("The noise is that of the warped outcome and learned; give True or False.")
        if output_indices is not None and list(output_indices) != [0]:
            raise UnsupportedError(f"This model has one output; got output_indices={output_indices}.")
        fitted = self._fit()
        inputs = self.transform_inputs(X)
        batch_shape, q = inputs.shape[:-2], inputs.shape[-2]
        first = torch.zeros(int(fitted.kernel.max()) + 1, dtype=torch.long, device=fitted.kernel.device)
        first[fitted.kernel] = torch.arange(len(fitted.kernel), device=first.device)
        space = self._space
        covar_module = space.at(fitted.u[first], "covar_module")
        flat, train = inputs.reshape(-1, inputs.shape[-1]).to(fitted.u), self.train_inputs[0].to(fitted.u)
        basis, regression = self._basis(flat), fitted.regression
        cross = covar_module(train, flat).to_dense().expand(len(first), -1, -1)
        gain, rest = regression.gains(cross, basis)
        noise = space.at(fitted.u[first], "likelihood").noise.reshape(-1, 1) if observation_noise else 0.0
        prior = covar_module(flat, diag=True) + noise
        square = prior - gain.square().sum(-2) + rest.square().sum(-2)  # T x N
        square = square.clamp_min(SMALLEST)  # rounding, where the noise is next to nothing
        factor = fitted.select(regression.square) / regression.df  # S
        location = fitted.select(regression.locations(gain, basis))  # N x S
        scale = (square.mT[:, fitted.kernel] * factor).sqrt()

        def matrix() -> Tensor:
            points = inputs.to(fitted.u).unsqueeze(-3)
            dense = covar_module(points).to_dense()
            if observation_noise:
                dense = dense + torch.diag_embed(torch.as_tensor(noise).expand(-1, q))
            parts = (part.unflatten(-1, (*batch_shape, q)).movedim((0, 1), (-3, -2)) for part in (gain, rest))
            known, unknown = parts
            return dense - known.mT @ known + unknown.mT @ unknown

        raw = {name: value.squeeze(-1) for name, value in space.raw_parameters(fitted.u, "warping").items()}
        dtype = inputs.dtype
        posterior = TransformedTPosterior(
            location.view(*batch_shape, q, -1).to(dtype),
            scale.view(*batch_shape, q, -1).to(dtype),
            fitted.probabilities.to(dtype),
            regression.df,
            WarpingNodes(self.warping, {name: value.to(dtype) for name, value in raw.items()}),
            JointScale(lambda: matrix().to(dtype), fitted.kernel, factor.to(dtype)),
            offset=self.center,
            weight=self.scale,
        )
        if isinstance(posterior_transform, ScalarizedPosteriorTransform):
            return posterior.scalarize(cast(Tensor, posterior_transform.weights), posterior_transform.offset)
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    @torch.no_grad()
    def leave_one_out(self) -> LeaveOneOut:
        r"""The predictions of every noisy outcome from all others, in closed form.

        They equal those of `n` models of `n - 1` points each, with the same nodes, for the cost of one: with
        `Q = K^-1 - K^-1 M A^-1 M^T K^-1`, leaving out point `i` takes `(Q z)_i^2 / Q_ii` from `q` and `(Q z)_i / Q_ii`
        from `z_i`, and multiplies the determinants by `Q_ii`.

        Raises:
            UnsupportedError: If there is no degree of freedom left.
        """
        fitted = self._fit()
        regression = fitted.regression
        n, df = self.train_targets.shape[0], regression.df - 1
        p = n - 1 - df
        if df < 1:
            raise UnsupportedError(f"Leaving one of {n} points out leaves none for the scale; add points.")
        diagonal, precision = regression.precisions()
        shrink = fitted.select(precision) / diagonal.mT[:, fitted.kernel]  # n x S
        diagonal = diagonal.mT[:, fitted.kernel]
        z = self._space.at(fitted.u, "warping")(self._standardised_targets().to(fitted.u)).expand(len(fitted.u), -1).mT
        square = fitted.select(regression.square) - shrink.square() * diagonal
        determinants = regression.log_determinants()[fitted.kernel] + diagonal.log()
        jacobian = fitted.log_slope.sum(-1) - fitted.log_slope.mT
        log_likelihood = -0.5 * determinants - 0.5 * df * square.log() + (1 - p / (n - 1)) * jacobian
        log_weight = fitted.log_weight - fitted.log_likelihood + log_likelihood
        raw = {name: value.squeeze(-1) for name, value in self._space.raw_parameters(fitted.u, "warping").items()}
        posterior = TransformedTPosterior(
            (z - shrink).unsqueeze(-2),
            (square / (diagonal * df)).sqrt().unsqueeze(-2),
            _normalised(log_weight, fitted.sign),
            df,
            WarpingNodes(self.warping, raw),
            offset=self.center,
            weight=self.scale,
        )
        y = self.train_targets.to(z).view(n, 1, 1)
        return LeaveOneOut(posterior, posterior.log_density(y).view(n), posterior.cdf(y).view(n))

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Self:
        r"""The model of further outcomes, whose nodes stay where they are and are weighted anew.

        Args:
            X: A `m x d` tensor of points, before any input transform.
            Y: A `m x 1` tensor of noisy outcomes.
            kwargs: Not used.

        Raises:
            UnsupportedError: If points have batch dimensions, such as those of fantasies.
        """
        if X.ndim != 2:
            raise UnsupportedError(
                "A BayesianTransformedGP cannot be conditioned on batches of data, so that look-ahead acquisition "
                "functions, which make fantasies, cannot use it; take qLogNoisyExpectedImprovement, say."
            )
        self._fit()
        new = copy(self)
        inputs = torch.cat([self.train_inputs[0], self.transform_inputs(X)])
        targets = torch.cat([self.train_targets, Y.squeeze(-1)])
        _check_outcomes(inputs, targets.unsqueeze(-1), self.warping, self._basis(inputs).shape[-1])
        new.train_inputs, new.train_targets = (inputs,), targets
        if self._has_transformed_inputs:
            new._original_train_inputs = torch.cat([self._untransformed_inputs(), X])
        new._fitted = None
        return new


def _normalised(log_weight: Tensor, sign: Tensor) -> Tensor:
    """Weights that sum to one, over the last dimension."""
    weight = sign * (log_weight - log_weight.amax(-1, keepdim=True)).exp()
    return weight / weight.sum(-1, keepdim=True)


def _check_outcomes(X: Tensor, Y: Tensor, warping: Warping, num_coefficients: int) -> None:
    if not isinstance(Y, Tensor) or Y.shape != (X.shape[-2], 1):
        shape = tuple(Y.shape) if isinstance(Y, Tensor) else type(Y).__name__
        raise InputDataError(f"train_Y must be n x 1 with n = {X.shape[-2]}; got {shape}.")
    if not bool(Y.isfinite().all()):
        where = (~Y.isfinite()).any(-1).nonzero().squeeze(-1)[:5].tolist()
        raise InputDataError(f"train_Y contains NaN or infinite values in rows {where}; remove or repair these.")
    if len(Y) < num_coefficients + 2:
        raise InputDataError(
            f"There are {len(Y)} points for the {num_coefficients} coefficients of the mean and the scale of the "
            f"process; at least {num_coefficients + 2} are needed."
        )
    if bool(Y.amax() == Y.amin()):
        raise InputDataError("All values of train_Y are equal; they say nothing about the scale of the outcome.")
    lowest = _fixed_domain(warping)
    is_inside = lowest < Y
    if not bool(is_inside.all()):
        where = (~is_inside).squeeze(-1).nonzero().squeeze(-1)[:5].tolist()
        raise InputDataError(
            f"The warping is for outcomes above {lowest:g}; rows {where} of train_Y are not. Shift them, or put an "
            "Affine or Arcsinh warping inside."
        )


def _fixed_domain(warping: Warping) -> float:
    """The lower end of the domain of the innermost warping."""
    chain = list(getattr(warping, "warpings", [warping]))
    return float(chain[0].domain[0].detach().max())


def _outcome_scale(y: Tensor, warping: Warping) -> tuple[float, float]:
    """What outcomes are taken relative to, and in units of."""
    y = y.double()
    if _fixed_domain(warping) == 0:
        return 0.0, float(y.log().mean().exp())
    low, center, high = torch.quantile(y, torch.tensor([0.25, 0.5, 0.75], dtype=y.dtype, device=y.device)).tolist()
    return (center, (high - low) / 1.349) if high > low else (center, float(y.std()))
