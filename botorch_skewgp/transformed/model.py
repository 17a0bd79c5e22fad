r"""The Bayesian transformed Gaussian process: numbers on an unknown scale.

.. [DeOliveira1997btg] De Oliveira, Kedem, Short. Bayesian prediction of transformed Gaussian random fields. 1997.
.. [Zhu2023btg] Zhu et al. Bayesian transformed Gaussian processes. Transactions on Machine Learning Research, 2023.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any, Literal, Self, cast

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.models.transforms.input import InputTransform
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_skewgp.checks import as_count, as_number, as_seed, check_class, check_flags, check_parts
from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.inputs.points import check_query, check_train_X
from botorch_skewgp.inputs.transforms import TransformedInputsMixin, transformed_dim
from botorch_skewgp.parameters import ParameterSpace
from botorch_skewgp.transformed.defaults import (
    Mean,
    OutcomeUnits,
    check_left_out,
    check_outcomes,
    checked_outcomes,
    default_transformed_covar_module,
    default_transformed_likelihood,
    is_combination,
    mean_basis,
    outcome_units,
)
from botorch_skewgp.transformed.integrated_process import IntegratedProcess, LeaveOneOut, Quadrature
from botorch_skewgp.transformed.nodes import (
    LogPosterior,
    Mode,
    Nodes,
    Proposal,
    find_modes,
    prior_proposal,
    sobol_nodes,
    widened,
)
from botorch_skewgp.transformed.posterior import TransformedTPosterior
from botorch_skewgp.transformed.regression import MeanAndScale, WeightedNodes
from botorch_skewgp.warpings import SinhArcsinh, Warping

MAX_NODES, MIN_NODES = 512, 128  # by default
NODES_UP_TO = 30  # points, up to which there are most nodes; then in inverse proportion, for the posterior is narrower
LEFT_OUT_NODES = 8  # times as many for the posteriors from all data but one, up to the same number of points
ACCEPTED_ERROR = 0.135  # of probabilities, times the root of the effective number asked for
ACCEPTED_SUM_ERROR = 0.85  # of leave-one-out sums, times the root of the effective number asked for
NO_FANTASIES = (
    "A BayesianTransformedGP cannot be conditioned on batches of data, hence not be used by look-ahead acquisition "
    "functions, which make fantasies; use qLogNoisyExpectedImprovement, for instance."
)
NOISE_IS_LEARNED = "The noise is that of the warped outcome, and learned;"


class BayesianTransformedGP(TransformedInputsMixin, Model):
    r"""A Gaussian process of a warped outcome, with its warping and kernel parameters integrated out.

    `g(f(x))` is a Gaussian process for an increasing map `g` with unknown shape. Mean and scale of the process are
    integrated out in closed form, as in [DeOliveira1997btg]_; the parameters of the warping, the kernel and the noise
    by quadrature ([Zhu2023btg]_). Nothing is fitted: the nodes are made with the first posterior.

    Outcomes are standardised by their median and interquartile range, the scale of the warpings' priors; positive ones,
    if the warping needs them, are divided by their geometric mean. Posteriors are in units of the outcome.

    Example:
        >>> transformed = BayesianTransformedGP(train_X, values.exp().unsqueeze(-1))
        >>> median = transformed.posterior(X).median
    """

    _supports_cache_root = False
    _supports_batched_models = False

    train_inputs: tuple[Tensor]
    _nodes: Nodes | None
    _quadrature: Quadrature | None
    _proposals: tuple[list[Mode], Proposal] | None  # of which the nodes were made

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        warping: Warping | None = None,
        covar_module: Kernel | None = None,
        num_nodes: int | None = None,
        input_transform: InputTransform | None = None,
        mean: Mean = "constant",
        quadrature: Literal["sobol", "mode"] = "sobol",
        least_effective: float = 32.0,
        tolerance: float = 1e-2,
        num_moments: int = 0,
        standardize: bool = True,
        num_restarts: int = 4,
        seed: int = 0,
        likelihood: GaussianLikelihood | None = None,
    ) -> None:
        r"""
        Args:
            train_X: An `n x d` tensor of points.
            train_Y: An `n x 1` tensor of outcomes.
            warping: The warping; `SinhArcsinh()` if `None`; `Affine()` is none.
            covar_module: The kernel, of unit variance; by default an RBF kernel whose lengthscales have a wide prior,
                with a median of `0.3 sqrt(d)` in the unit cube.
            num_nodes: The number of quasi-Monte Carlo nodes, in four rounds that adapt; four more follow if the
                effective number of nodes is too low. By default 512 up to 30 points, and then fewer in inverse
                proportion, but at least 128.
            input_transform: A BoTorch input transform.
            mean: The mean of the process, basis functions with unknown coefficients: `"constant"`, `"linear"` in the
                (transformed) inputs, or a function that takes transformed points, `n x d`, to values of the basis
                functions there, `n x p`, which must not depend on the other points.
            quadrature: `"sobol"` for quasi-Monte Carlo nodes around all modes found and of the prior's size; `"mode"`
                for the highest mode alone, a warped Gaussian process.
            least_effective: The effective number of nodes to reach. A `QuadratureWarning` is issued if probabilities
                may be off by more than 0.135 over its square root (0.024 by default); never if it is 0.
            tolerance: The share of the weight whose nodes are left out, which bounds the error of a cdf from that.
            num_moments: The number of moments that outcomes must have: nodes of heavier tails are left out.
            standardize: Whether to standardise outcomes.
            num_restarts: The number of starts of the search for modes.
            seed: The seed of the nodes and the starts.
            likelihood: The noise of the warped outcome, in units of the process's variance; by default with a wide
                prior.

        Raises:
            InputDataError: If data are not finite, outcomes all equal, fewer than `p + 2`, or outside of the warping's
                domain; if basis functions of the mean are not finite, linearly dependent at the points, fit outcomes
                exactly, or have no constant combination while outcomes are standardised; or if a part of the model is
                of the wrong class, or a setting out of its range.
            UnsupportedError: If the kernel is a `ScaleKernel`, or it or the likelihood has a batch shape.
        """
        check_train_X(train_X)
        check_parts(
            warping=(warping, Warping),
            covar_module=(covar_module, Kernel),
            input_transform=(input_transform, InputTransform),
            likelihood=(likelihood, GaussianLikelihood),
        )
        if not callable(mean):
            _check_choice(mean, "mean", ("constant", "linear"))
        _check_choice(quadrature, "quadrature", ("sobol", "mode"))
        if num_nodes is not None:
            as_count(num_nodes, "num_nodes", least=1)
        as_count(num_restarts, "num_restarts", least=1)
        as_count(num_moments, "num_moments", least=0)
        as_number(least_effective, "least_effective", least=0.0)
        if as_number(tolerance, "tolerance", least=0.0) >= 1:
            raise InputDataError(f"tolerance must be below 1; got {tolerance!r}.")
        as_seed(seed)
        check_flags(standardize=standardize)
        _check_no_batches(covar_module, likelihood)
        super().__init__()
        self.warping = SinhArcsinh() if warping is None else warping
        dim = train_X.shape[-1] if input_transform is None else transformed_dim(input_transform, train_X)
        self.mean = mean
        if input_transform is not None:
            self.input_transform = input_transform
        basis = self._basis_at(train_X)
        self.train_targets = checked_outcomes(train_X, train_Y, self.warping, basis)
        if standardize and not is_combination(torch.ones_like(self.train_targets), basis):
            raise InputDataError(
                "No linear combination of the basis functions of the mean is constant, but outcomes are standardised, "
                "which may shift them. Add a column of ones to what mean returns, or give standardize=False."
            )
        self._points = train_X
        self.restore_inputs()
        if covar_module is None:
            covar_module = default_transformed_covar_module(dim)
        self.covar_module = covar_module
        self.likelihood = default_transformed_likelihood() if likelihood is None else likelihood
        self.num_nodes, self.quadrature = num_nodes, quadrature
        self.least_effective, self.tolerance = least_effective, tolerance
        self.num_moments, self.num_restarts, self.seed = num_moments, num_restarts, seed
        self.units = outcome_units(self.train_targets, self.warping) if standardize else OutcomeUnits(0.0, 1.0)
        self._space = ParameterSpace(
            {"covar_module": self.covar_module, "likelihood": self.likelihood, "warping": self.warping}
        )
        self._clear_cache()
        self.to(train_X)

    @classmethod
    def construct_inputs(cls, training_data: SupervisedDataset, **kwargs: Any) -> dict[str, Any]:
        """The constructor's arguments for a BoTorch dataset, from which Ax builds models, and others that are given.

        Raises `UnsupportedError` if there are several outcomes. Variances of noise are not used: noise is learned.
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
        """Replace points, `n x d` before any input transform, outcomes, `n`, or both.

        Makes new nodes and keeps the standardisation; `strict` is not used. Raises `InputDataError` if the new data do
        not go together, or the constructor would refuse them.
        """
        X = self._points if inputs is None else inputs
        if isinstance(X, tuple | list) and len(X) == 1:
            (X,) = X
        y = self.train_targets if targets is None else targets
        check_class(y, "targets", Tensor)
        check_train_X(X, warn=False)
        if X.shape[-1] != self._points.shape[-1] or y.shape != X.shape[:1]:
            raise InputDataError(
                f"inputs must be n x {self._points.shape[-1]} and targets n-dim, with one number for each point; got "
                f"{tuple(X.shape)} and {tuple(y.shape)}."
            )
        self.train_targets = checked_outcomes(X, y.unsqueeze(-1), self.warping, self._basis_at(X))
        self._points = X
        self._clear_cache()
        self.restore_inputs()
        if not self.training:
            self._set_transformed_inputs()

    def _basis_at(self, points: Tensor) -> Tensor:
        """The basis functions of the mean at new training points; the input transform learns nothing from them."""
        if hasattr(self, "input_transform"):
            with torch.no_grad():
                points = deepcopy(self.input_transform).preprocess_transform(points)
        return mean_basis(self.mean, points)

    def _clear_cache(self) -> None:
        self._nodes = self._quadrature = self._proposals = None

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load parameters; nodes are made again."""
        self._clear_cache()
        return super().load_state_dict(*args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        points = fn(self._points)
        if points.dtype not in (torch.float32, torch.float64):
            raise InputDataError(
                f"A BayesianTransformedGP has single or double precision; it cannot become {points.dtype}."
            )
        if points is not self._points:
            self._points = points
            self.train_inputs = (fn(self.train_inputs[0]),)
            if self._original_train_inputs is not None:
                self._original_train_inputs = points
        before, self.train_targets = self.train_targets, fn(self.train_targets)
        if self.train_targets is not before:
            self._quadrature = None
        return super()._apply(fn, *args, **kwargs)

    def subset_output(self, idcs: list[int]) -> Self:
        """The model itself, for its only output `[0]`; raises `UnsupportedError` for others."""
        if idcs not in ([0], [-1], (0,), (-1,)):
            raise UnsupportedError(f"This model has one output; got idcs={idcs}.")
        return self

    # Predictions

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> TransformedTPosterior:
        r"""The posterior of noise-free values at points, `batch_shape x q x d`, or of noisy ones.

        A `ScalarizedPosteriorTransform` keeps its class; `output_indices` must be `[0]` or `None`. Raises
        `UnsupportedError` if variances of noise are given, or other outputs; `InputDataError` if `X` is no tensor of
        single or double precision, or not finite; `BotorchTensorDimensionError` if dimensions or columns do not fit.
        """
        if isinstance(observation_noise, Tensor):
            raise UnsupportedError(f"{NOISE_IS_LEARNED} give True or False.")
        check_flags(observation_noise=observation_noise)
        check_parts(posterior_transform=(posterior_transform, PosteriorTransform))
        if output_indices not in (None, [0], (0,)):
            raise UnsupportedError(f"This model has one output; got output_indices={output_indices}.")
        quadrature = self._integrate()
        inputs = self.transform_inputs(self._checked_query(X))
        posterior = self._process.posterior(quadrature, inputs, observation_noise)
        if isinstance(posterior_transform, ScalarizedPosteriorTransform):
            return posterior.scalarize(cast(Tensor, posterior_transform.weights), posterior_transform.offset)
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    @torch.no_grad()
    def leave_one_out(self) -> LeaveOneOut:
        r"""The predictions of every noisy outcome from all others, for the cost of one model.

        They have nodes of their own, since one outcome may change much of what is known about the parameters; those
        that `use_nodes` was given are all kept. A `QuadratureWarning` is issued if too few of them count. Raises
        `UnsupportedError` if there is no degree of freedom left, or without one outcome all others are equal, fitted
        exactly by the mean, or too few to determine its coefficients.
        """
        self.eval()
        check_left_out(self.train_targets, mean_basis(self.mean, self.train_inputs[0]))
        self._integrate()
        process, given = self._process, self._nodes
        if self._proposals is not None:  # else nodes were given, and all are kept
            given = self._sobol_nodes(lambda u: process.weigh(u).left_out()[-1].mT, LEFT_OUT_NODES)
        assert given is not None
        result = process.leave_one_out(given)
        if result.standard_error > self._accepted(ACCEPTED_SUM_ERROR):
            warnings.warn(
                "The sum of leave-one-out log densities may be off (standard_error of the result): without some "
                "outcomes few nodes count (effective_number). Increase num_nodes.",
                QuadratureWarning,
                stacklevel=3,
            )
        return result

    @torch.no_grad()
    def mean_and_scale(self) -> MeanAndScale:
        """The joint law of the mean's coefficients and the process's precision, which posteriors integrate out."""
        nodes = self.weighted_nodes
        regression, differences = nodes.regression, self._process.differences.to(nodes.u)
        # of a basis `m C` with coefficients `b` and root `L` those of `m` are `C b` and, but for a rotation, `C^-T L`
        root = torch.linalg.solve(differences.mT, regression.basis_root)
        of_given = torch.linalg.qr(root.mT).R.mT
        of_given = of_given * of_given.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
        return MeanAndScale(
            nodes.probabilities,
            nodes.select(differences @ regression.coefficients).mT,
            of_given[nodes.kernel],
            0.5 * regression.df,
            0.5 * nodes.select(regression.square),
        )

    def fantasize(self, X: Tensor, *args: Any, **kwargs: Any) -> Self:
        """Not supported, as batches of data are not; raises `UnsupportedError`."""
        raise UnsupportedError(NO_FANTASIES)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Self:
        r"""The model given further noisy outcomes, `m x 1`, at points, `m x d`: the same nodes with new weights.

        A `QuadratureWarning` is issued if few nodes carry the weight; `set_train_data` makes new ones. Raises
        `UnsupportedError` if points have batch dimensions, such as those of fantasies, or variances of noise are given;
        `InputDataError` if data are not finite or do not go together; `BotorchTensorDimensionError` if columns do not
        fit. Further arguments are not used.
        """
        if isinstance(X, Tensor) and X.ndim > 2:
            raise UnsupportedError(NO_FANTASIES)
        if kwargs.get("noise") is not None:
            raise UnsupportedError(f"{NOISE_IS_LEARNED} leave noise out.")
        X = self._checked_query(X)
        check_outcomes(X, Y, "Y")
        self._integrate()
        points, targets = torch.cat([self._points, X]), torch.cat([self.train_targets.unsqueeze(-1), Y])
        inputs = torch.cat([self.train_inputs[0], self.transform_inputs(X)])
        new = copy(self)
        new.train_targets = checked_outcomes(points, targets, self.warping, mean_basis(self.mean, inputs))
        new._points = points
        new.train_inputs = (inputs,)
        if self._original_train_inputs is not None:
            new._original_train_inputs = points
        new._quadrature = new._proposals = None
        new._integrate()
        return new

    def _checked_query(self, X: Tensor) -> Tensor:
        X = check_query(X, self._points)
        if not bool(X.isfinite().all()):
            raise InputDataError("X contains NaN or infinite values; remove or repair these.")
        return X

    # The integral over parameters

    @property
    def _process(self) -> IntegratedProcess:
        X, y = self.train_inputs[0], self.train_targets
        return IntegratedProcess(self._space, X, y, self.units, self.mean, self.num_moments)

    def parameter_names(self) -> list[str]:
        """The name of every integrated coordinate; logarithms of positive parameters."""
        return self._space.names()

    def coordinates(self) -> Tensor:
        """The coordinates of the modules' present parameters, in the order of `parameter_names`."""
        return self._space.coordinates()

    def log_prior(self, u: Tensor) -> Tensor:
        """The log prior density, `S`, of coordinates of all parameters, `S x D`, in the order of `parameter_names`.

        Raises `InputDataError` if coordinates have another shape.
        """
        self._check_coordinates(u, "u")
        return self._space.log_prior(u)

    def log_posterior(self, u: Tensor) -> Tensor:
        """The log density, `S`, of the data and of coordinates as of `log_prior`; mean and scale are integrated out.

        It is minus infinity where the covariance is singular or outcomes leave the warping's domain. Raises as
        `log_prior`.
        """
        self._check_coordinates(u, "u")
        self.eval()
        return self._process.weigh(u).log_weight

    def use_nodes(self, nodes: Nodes) -> None:
        """Integrate with given nodes instead of those of `quadrature`, until data or parameters are replaced.

        A draw of the parameters' posterior has the weight one over its density, see `log_posterior`. Raises
        `InputDataError` if these are no nodes of the model's parameters.
        """
        check_class(nodes, "nodes", Nodes)
        self._check_coordinates(nodes.u, "nodes.u")
        self._nodes, self._quadrature, self._proposals = nodes, None, None

    def _check_coordinates(self, u: Tensor, name: str) -> None:
        check_class(u, name, Tensor)
        if u.ndim != 2 or u.shape[-1] != self._space.dim():
            raise InputDataError(
                f"{name} must have the coordinates of {self._space.dim()} parameters, see parameter_names, in each "
                f"row; got shape {tuple(u.shape)}."
            )

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
        self._proposals = modes, prior_proposal(self.log_prior, start)
        return self._sobol_nodes(self.log_posterior)

    def _sobol_nodes(self, log_targets: LogPosterior, times: int = 1) -> Nodes:
        assert self._proposals is not None
        num_nodes, n = self.num_nodes, len(self.train_targets)
        if num_nodes is None:
            num_nodes = max(min(MAX_NODES, MAX_NODES * NODES_UP_TO // n), MIN_NODES)
        num_nodes *= max(min(times, times * NODES_UP_TO // n), 1)
        return sobol_nodes(log_targets, *self._proposals, num_nodes, self.least_effective, self.seed)

    @torch.inference_mode(False)  # the search for modes needs gradients
    @torch.no_grad()
    def _integrate(self) -> Quadrature:
        self.eval()
        if self._quadrature is not None:
            return self._quadrature
        if self._nodes is None:
            self._nodes = self._make_nodes()
        process = self._process
        quadrature = process.quadrature(self._nodes, self.tolerance)
        error = 0.0 if len(self._nodes.u) == 1 else process.probability_error(quadrature)  # one stands for all
        self._quadrature = quadrature._replace(probability_error=error)
        if error > self._accepted(ACCEPTED_ERROR):
            warnings.warn(
                "Probabilities of predictions may be off (model.probability_error): too few nodes count, or the data "
                "determine the parameters too poorly. Increase num_nodes, or use a warping with fewer parameters; "
                "after condition_on_observations call set_train_data, which makes new nodes.",
                QuadratureWarning,
                stacklevel=5,
            )
        return self._quadrature

    def _accepted(self, error: float) -> float:
        """An error that nodes of the effective number asked for have."""
        return error / math.sqrt(self.least_effective) if self.least_effective else math.inf

    @property
    def log_evidence(self) -> float:
        """The log density of the outcomes, all parameters integrated out; comparable between warpings of the same data.

        The priors of mean and scale are improper, hence so is the constant: compare models with the same `mean` only,
        for the constant depends on the scale of its basis functions.
        """
        return self._integrate().log_evidence

    @property
    def effective_number_of_nodes(self) -> float:
        """`(sum w)^2 / sum w^2` over the nodes' weights."""
        return self._integrate().effective_number

    @property
    def probability_error(self) -> float:
        """An estimate of the largest error of the cdf of a prediction, from the nodes themselves. It is the standard
        error at levels of 2.5, 50 and 97.5 %, from the spread over kernels.
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


def _check_choice(value: str, name: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputDataError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def _check_no_batches(covar_module: Kernel | None, likelihood: GaussianLikelihood | None) -> None:
    """Raise unless there is one kernel, of a scale that is not learned, and one noise variance."""
    if isinstance(covar_module, ScaleKernel):
        raise UnsupportedError(
            "covar_module must not be a ScaleKernel: the scale is integrated out in closed form. Give its base kernel."
        )
    no_batches = "Batches of models are not supported."
    if covar_module is not None and covar_module.batch_shape:
        shape = tuple(covar_module.batch_shape)
        raise UnsupportedError(f"covar_module must have no batch shape; got {shape}. {no_batches}")
    if likelihood is not None and likelihood.noise.shape != (1,):
        shape = tuple(likelihood.noise.shape)
        raise UnsupportedError(f"likelihood must have one noise variance; got {shape}. {no_batches}")
