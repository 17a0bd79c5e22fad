r"""The Bayesian transformed Gaussian process: numbers on an unknown scale.

.. [DeOliveira1997btg] V. De Oliveira, B. Kedem, D. A. Short. Bayesian prediction of transformed Gaussian random fields.
   Journal of the American Statistical Association 92, 1997.
.. [Zhu2023btg] X. Zhu, L. Huang, C. Ibrahim, E. H. Lee, D. Bindel. Bayesian transformed Gaussian processes.
   Transactions on Machine Learning Research, 2023.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Literal, Self, cast

import torch
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import InputTransform
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.models.inputs import check_query, check_train_X
from botorch_skewgp.models.transforms import transformed_dim
from botorch_skewgp.observations.checks import as_count, as_number, as_seed, check_parts
from botorch_skewgp.transformed.defaults import default_transformed_covar_module, default_transformed_likelihood
from botorch_skewgp.transformed.integrated_process import IntegratedProcess
from botorch_skewgp.transformed.leave_one_out import LeaveOneOut
from botorch_skewgp.transformed.mean_and_scale import MeanAndScale
from botorch_skewgp.transformed.outcomes import (
    OutcomeUnits,
    check_outcomes,
    checked_outcomes,
    outcome_units,
)
from botorch_skewgp.transformed.parameter_space import ParameterSpace
from botorch_skewgp.transformed.posterior import TransformedTPosterior
from botorch_skewgp.transformed.sparse_grid import MAX_LEVEL
from botorch_skewgp.transformed.weights import normalised, standard_error
from botorch_skewgp.warpings import SinhArcsinh, Warping

ACCEPTED_SUM_ERROR = 0.85  # of leave-one-out sums, times the root of the effective number asked for
NO_FANTASIES = (
    "A BayesianTransformedGP cannot be conditioned on batches of data, hence not be used by look-ahead acquisition "
    "functions, which make fantasies; use qLogNoisyExpectedImprovement, for instance."
)
NOISE_IS_LEARNED = "The noise is that of the warped outcome, and learned;"


class BayesianTransformedGP(IntegratedProcess):
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

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        warping: Warping | None = None,
        covar_module: Kernel | None = None,
        num_nodes: int | None = None,
        input_transform: InputTransform | None = None,
        mean: Literal["constant", "linear"] = "constant",
        quadrature: Literal["sobol", "smolyak", "mode"] = "sobol",
        level: int = 3,
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
            mean: The mean of the process: unknown and constant, or linear in the (transformed) inputs.
            quadrature: `"sobol"` for quasi-Monte Carlo nodes around all modes found and of the prior's size,
                `"smolyak"` for a sparse grid around the highest mode, whose weights may be negative; `"mode"` for that
                mode alone, a warped Gaussian process.
            level: The level of the sparse grid, from 2 to 8.
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
            InputDataError: If data are not finite, outcomes all equal, too few, or outside of the warping's domain; or
                a part of the model is of the wrong class, or a setting out of its range.
            UnsupportedError: If the kernel is a `ScaleKernel`, or it or the likelihood has a batch shape.
        """
        check_train_X(train_X)
        check_parts(
            warping=(warping, Warping),
            covar_module=(covar_module, Kernel),
            input_transform=(input_transform, InputTransform),
            likelihood=(likelihood, GaussianLikelihood),
        )
        _check_choice(mean, "mean", ("constant", "linear"))
        _check_choice(quadrature, "quadrature", ("sobol", "smolyak", "mode"))
        if num_nodes is not None:
            as_count(num_nodes, "num_nodes", least=1)
        as_count(num_restarts, "num_restarts", least=1)
        as_count(level, "level", least=2, most=MAX_LEVEL)
        as_count(num_moments, "num_moments", least=0)
        as_number(least_effective, "least_effective", least=0.0)
        if as_number(tolerance, "tolerance", least=0.0) >= 1:
            raise InputDataError(f"tolerance must be below 1; got {tolerance!r}.")
        as_seed(seed)
        _check_no_batches(covar_module, likelihood)
        super().__init__()
        self.warping = SinhArcsinh() if warping is None else warping
        dim = train_X.shape[-1] if input_transform is None else transformed_dim(input_transform, train_X)
        self.mean = mean
        num_coefficients = 1 if mean == "constant" else 1 + dim
        self.train_targets = checked_outcomes(train_X, train_Y, self.warping, num_coefficients).squeeze(-1)
        self._points = train_X
        self.restore_inputs()
        if covar_module is None:
            covar_module = default_transformed_covar_module(dim)
        self.covar_module = covar_module
        self.likelihood = default_transformed_likelihood() if likelihood is None else likelihood
        if input_transform is not None:
            self.input_transform = input_transform
        self.num_nodes, self.quadrature, self.level = num_nodes, quadrature, level
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
        r"""The constructor's arguments for a BoTorch dataset, from which Ax builds models.

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
        r"""Replace points, outcomes or both; makes new nodes and keeps the standardisation.

        Args:
            inputs: An `n x d` tensor, before any input transform.
            targets: An `n`-dim tensor of outcomes.
            strict: Not used.

        Raises:
            InputDataError: If the new data do not go together, or the constructor would refuse them.
        """
        X = self._points if inputs is None else (inputs if isinstance(inputs, Tensor) else inputs[0])
        y = self.train_targets if targets is None else targets
        check_train_X(X, warn=False)
        if X.shape[-1] != self._points.shape[-1] or y.shape != X.shape[:1]:
            raise InputDataError(
                f"inputs must be n x {self._points.shape[-1]} and targets n-dim, with one number for each point; got "
                f"{tuple(X.shape)} and {tuple(y.shape)}."
            )
        y = checked_outcomes(X, y.unsqueeze(-1), self.warping, self._num_coefficients).squeeze(-1)
        self._points, self.train_targets = X, y
        self._clear_cache()
        self.restore_inputs()
        if not self.training:
            self._set_transformed_inputs()

    @property
    def _num_coefficients(self) -> int:
        return self._basis(self.train_inputs[0]).shape[-1]

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
        r"""The model itself, for its only output.

        Args:
            idcs: `[0]`.

        Raises:
            UnsupportedError: If other outputs are wanted.
        """
        if list(idcs) not in ([0], [-1]):
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
        r"""The posterior at points.

        Args:
            X: A `batch_shape x q x d` tensor.
            output_indices: `[0]` or `None`: there is one output.
            observation_noise: Whether to predict new noisy outcomes instead of noise-free ones.
            posterior_transform: A posterior transform; a `ScalarizedPosteriorTransform` keeps the posterior's class.

        Raises:
            UnsupportedError: If the variances of noise are given, or there are other outputs than the first.
            InputDataError: If `X` is no tensor of single or double precision, or not finite.
            BotorchTensorDimensionError: If `X` has another number of dimensions or columns than the model's points.
        """
        if isinstance(observation_noise, Tensor):
            raise UnsupportedError(f"{NOISE_IS_LEARNED} give True or False.")
        if output_indices is not None and list(output_indices) != [0]:
            raise UnsupportedError(f"This model has one output; got output_indices={output_indices}.")
        posterior = self._law(self._integrate(), self.transform_inputs(self._checked_query(X)), observation_noise)
        if isinstance(posterior_transform, ScalarizedPosteriorTransform):
            return posterior.scalarize(cast(Tensor, posterior_transform.weights), posterior_transform.offset)
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    @torch.no_grad()
    def leave_one_out(self) -> LeaveOneOut:
        r"""The predictions of every noisy outcome from all others, for the cost of one model.

        They have nodes of their own, since one outcome may change much of what is known about the parameters; those
        that `use_nodes` was given are all kept. A `QuadratureWarning` is issued if too few of them count.

        Raises:
            UnsupportedError: If there is no degree of freedom left, or without one outcome all others are equal.
        """
        y = self.train_targets
        for end in (y.argmin(), y.argmax()):
            rest = torch.cat([y[:end], y[end + 1 :]])
            if bool(rest.amin() == rest.amax()):
                raise UnsupportedError(
                    f"Without row {int(end)} all outcomes are equal, which leaves the scale of that outcome "
                    "undetermined."
                )
        self._integrate()
        nodes = self._leave_one_out_nodes()
        laws = self._leave_one_out_laws(nodes)
        probabilities = normalised(laws.log_weight, nodes.sign)
        used = (probabilities != 0).any(0).nonzero().squeeze(-1)  # others may have scales that are infinite
        probabilities = probabilities[:, used]
        posterior = TransformedTPosterior(
            laws.location[:, used].unsqueeze(-2),
            laws.scale[:, used].unsqueeze(-2),
            probabilities,
            laws.df,
            self._warping_nodes(nodes.u[used]),
            offset=self.units.center,
            weight=self.units.scale,
        )
        y = y.to(nodes.u).view(-1, 1, 1)
        log_density = posterior.marginals.component_log_density(self.units.standardise(y)).squeeze(-2)
        share = probabilities * (log_density - log_density.amax(-1, keepdim=True)).exp()
        influence = (share / share.sum(-1, keepdim=True) - probabilities).sum(0)  # of nodes on the sum of log densities
        error = 0.0 if len(nodes.u) == 1 else float(standard_error(influence, nodes.kernel[used]))
        effective = 1 / probabilities.square().sum(-1)
        if error > self._accepted(ACCEPTED_SUM_ERROR):
            warnings.warn(
                f"The sum of leave-one-out log densities may be off by {error:.2f}: without some outcomes few nodes "
                f"count ({float(effective.min()):.1f} at least). Increase num_nodes.",
                QuadratureWarning,
                stacklevel=2,
            )
        return LeaveOneOut(posterior, posterior.log_density(y).flatten(), posterior.cdf(y).flatten(), effective, error)

    @torch.no_grad()
    def mean_and_scale(self) -> MeanAndScale:
        r"""The joint law of the mean's coefficients and the process's precision, which posteriors integrate out.

        Raises:
            UnsupportedError: If nodes of a sparse grid have negative weights.
        """
        nodes = self.weighted_nodes
        if bool((nodes.probabilities < 0).any()):
            raise UnsupportedError('Some nodes have negative weights; build the model with quadrature="sobol".')
        regression = nodes.regression
        return MeanAndScale(
            nodes.probabilities,
            nodes.select(regression.coefficients).mT,
            regression.basis_root[nodes.kernel],
            0.5 * regression.df,
            0.5 * nodes.select(regression.square),
        )

    def fantasize(self, X: Tensor, *args: Any, **kwargs: Any) -> Self:
        r"""Not supported, as batches of data are not.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(NO_FANTASIES)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Self:
        r"""The model given further outcomes: the same nodes with new weights.

        A `QuadratureWarning` is issued if few nodes carry the weight; `set_train_data` makes new ones.

        Args:
            X: A `m x d` tensor of points, before any input transform.
            Y: A `m x 1` tensor of noisy outcomes.
            kwargs: BoTorch's `noise` must be `None`; others are not used.

        Raises:
            UnsupportedError: If points have batch dimensions, such as those of fantasies, or variances of noise are
                given.
            InputDataError: If points or outcomes are not finite, or do not go together.
            BotorchTensorDimensionError: If points have another number of columns than the model's.
        """
        if isinstance(X, Tensor) and X.ndim > 2:
            raise UnsupportedError(NO_FANTASIES)
        if kwargs.get("noise") is not None:
            raise UnsupportedError(f"{NOISE_IS_LEARNED} leave noise out.")
        X = self._checked_query(X)
        check_outcomes(X, Y, "Y")
        self._integrate()
        points, targets = torch.cat([self._points, X]), torch.cat([self.train_targets, Y.squeeze(-1)])
        targets = checked_outcomes(points, targets.unsqueeze(-1), self.warping, self._num_coefficients).squeeze(-1)
        new = copy(self)
        new._points, new.train_targets = points, targets
        new.train_inputs = (torch.cat([self.train_inputs[0], self.transform_inputs(X)]),)
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


def _check_choice(value: str, name: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputDataError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def _check_no_batches(covar_module: Kernel | None, likelihood: GaussianLikelihood | None) -> None:
    """Raise unless there is one kernel, of a scale that is not learned, and one noise variance."""
    if isinstance(covar_module, ScaleKernel):
        raise UnsupportedError(
            "covar_module must not be a ScaleKernel: the scale is integrated out in closed form. Give its base kernel."
        )
    if covar_module is not None and covar_module.batch_shape:
        raise UnsupportedError(
            f"covar_module must have no batch shape; got {tuple(covar_module.batch_shape)}. Batches of models are not "
            "supported."
        )
    if likelihood is not None and likelihood.noise.shape != (1,):
        raise UnsupportedError(
            f"likelihood must have one noise variance; got {tuple(likelihood.noise.shape)}. Batches of models are not "
            "supported."
        )
