"""Data and prior of a model, and the rows under that prior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, Self

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from gpytorch.models.gp import GP
from torch import Tensor

from botorch_skewgp.checks import check_class, check_flags, check_parts
from botorch_skewgp.inputs.points import check_digits_of_points, check_finite, check_query, check_train_X
from botorch_skewgp.inputs.transforms import TransformedInputsMixin, num_appended_columns, transformed_dim
from botorch_skewgp.kernels.evaluation import PlusConstantKernel
from botorch_skewgp.kernels.items import categorical_inputs
from botorch_skewgp.kernels.judges import JudgeKernel, Reliability
from botorch_skewgp.likelihoods import Context, OutcomeScale, RowLikelihood, default_likelihood
from botorch_skewgp.models import defaults, inducing, transforms
from botorch_skewgp.models.inputs import (
    WIDE,
    as_sequence,
    check_batch_shapes,
    check_digits_of_bounds,
    check_observations,
    check_skew_prior,
    count_outputs,
    move_priors,
    moved,
    scale_of_readings,
    warn_of_scaling,
    without_gradients,
)
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.models.panel import SHARED, Panel, judges_of, with_code
from botorch_skewgp.models.row_model import Evidence, RowModel
from botorch_skewgp.models.row_plan import RowBlock, RowPlan, merged_blocks, row_blocks
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.models.state import ModelState, attributes_of
from botorch_skewgp.observations import Observation
from botorch_skewgp.rows import ColumnLayout, Rows, slope_columns
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

MAX_SINGLE_ROWS = 1024  # beyond which equal rows are merged


class PriorModel(TransformedInputsMixin, Model, GP):
    """A `SkewGP` without its posterior: points, observations, the prior of their columns, and their rows."""

    train_inputs: tuple[Tensor]

    def __init__(
        self,
        train_X: Tensor,
        observations: Observation | Sequence[Observation] | None = None,
        likelihood: RowLikelihood | None = None,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
        skew_prior: SkewPrior | None = None,
        input_transform: InputTransform | None = None,
        outcome_transform: OutcomeTransform | None = None,
        draw_settings: DrawSettings | None = None,
        inducing_points: Tensor | int | None = None,
        learn_inducing_points: bool = False,
        judge_covar_module: Kernel | None = None,
        approximation: Literal["ep"] | None = None,
        learn_judge_reliability: bool = False,
    ) -> None:
        check_train_X(train_X)
        train_X = without_gradients(train_X, "train_X")
        observations = as_sequence(observations)
        check_observations(observations, train_X)
        check_parts(
            likelihood=(likelihood, RowLikelihood),
            covar_module=(covar_module, Kernel),
            mean_module=(mean_module, Mean),
            skew_prior=(skew_prior, SkewPrior),
            input_transform=(input_transform, InputTransform),
            judge_covar_module=(judge_covar_module, Kernel),
        )
        check_flags(learn_inducing_points=learn_inducing_points, learn_judge_reliability=learn_judge_reliability)
        if approximation not in (None, "ep"):
            raise InputDataError(f"approximation must be 'ep' or None; got {approximation!r}.")
        if inducing_points is not None:
            inducing.check_given_points(inducing_points, train_X)
        observations = moved(observations, train_X)
        num_outputs = count_outputs(observations, likelihood)
        check_batch_shapes(num_outputs, covar_module=covar_module, mean_module=mean_module)
        likelihood = _for_model(default_likelihood(observations, given=likelihood), train_X, observations)
        # transforms learn from data, and those that are given may serve other models
        outcome_scale = transforms.learn_outcome_scale(observations, deepcopy(outcome_transform))
        input_transform = deepcopy(input_transform)
        d = train_X.shape[-1] if input_transform is None else transformed_dim(input_transform, train_X)
        if covar_module is None:
            covar_module = defaults.default_covar_module(d, observations, likelihood=likelihood)
            warn_of_scaling(train_X, observations, input_transform is None, outcome_transform is None, likelihood)
            if outcome_transform is None and (size := scale_of_readings(observations)[1]) > WIDE:
                # from a smaller start fits explain little, in a local optimum
                covar_module.outputscale = min(size**2, 0.99 * defaults.OUTPUTSCALE_BOUNDS[1])
        check_skew_prior(skew_prior, d, num_outputs)
        super().__init__()
        self._points, self.train_inputs, self._judge = train_X, (train_X,), SHARED
        self._num_outputs, self._outcome_scale = num_outputs, outcome_scale
        self.likelihood, self.covar_module = likelihood, covar_module
        self.mean_module = (
            defaults.default_mean_module(observations, likelihood) if mean_module is None else mean_module
        )
        self.skew_prior, self.judge_covar_module = skew_prior, judge_covar_module
        self.inducing: inducing.InducingPoints | None = None
        if isinstance(inducing_points, Tensor):
            self.inducing = inducing.InducingPoints(inducing_points, learn_inducing_points)
        if input_transform is not None:
            self.input_transform = input_transform
        self.approximation = approximation
        self.draw_settings = DrawSettings() if draw_settings is None else draw_settings
        self.judge_reliability: Reliability | None = None
        self._learns_reliability = learn_judge_reliability
        self._set_data(train_X, observations)
        self.to(train_X)
        if isinstance(inducing_points, int):
            self.choose_inducing_points(inducing_points, learn_inducing_points)

    # Data

    def choose_inducing_points(self, num_points: int | None = None, learn: bool | None = None) -> None:
        r"""Choose inducing points among the training points by greedy variance reduction under the present kernel.

        A fit may shorten lengthscales until the points are too sparse in some places; then choose again and refit.

        Args:
            num_points: The number of points, at most that of distinct training points; the present number if `None`.
            learn: Whether the points are fitted with the hyperparameters; as before if `None`.

        Raises:
            InputDataError: If the number is not between 1 and that of the training points, or missing for a model
                without inducing points.
        """
        self._check_own_data("choose_inducing_points")
        present = self.inducing_points
        if num_points is None:
            if present is None:
                raise InputDataError("The model has no inducing points yet; give num_points.")
            num_points = len(present)
        inducing.check_given_points(num_points, self._points)
        learn = (present is not None and present.requires_grad) if learn is None else learn
        check_flags(learn=learn)
        with torch.no_grad():
            transformed = self.transform_inputs(self._points)
        points = inducing.choose_inducing_points(self._points, transformed, self.covar_module, num_points)
        self.inducing = inducing.InducingPoints(points, learn)

    def _set_data(self, X: Tensor, observations: Sequence[Observation]) -> None:
        """Set points and observations; an error leaves the model unchanged."""
        judges = judges_of(observations)
        for entry in [] if judges else observations:
            by_judge = self.likelihood.for_kind(type(entry)).parameters_by_judge
            if by_judge and entry.num_answers:
                raise InputDataError(
                    f"The likelihood has {by_judge[0]} for each judge, and no answer names one; name judges with "
                    "judge= in observations, or give one value."
                )
        if len(judges) > 1 and self._learns_reliability and any(entry.anchors_scale for entry in observations):
            raise UnsupportedError("Numbers fix the scale of utilities; leave learn_judge_reliability out.")
        panel = Panel.of(observations, X.device)
        resolved = observations if panel is None else panel.resolve(observations)
        like = torch.empty(0, dtype=torch.float64, device=X.device)
        # raises for kinds that the likelihood does not take
        blocks = [self.likelihood.rows(entry, like, self._outcome_scale) for entry in resolved]
        for entry, block in zip(observations, blocks, strict=True):
            check_digits_of_bounds(entry, block)
        slopes = slope_columns(blocks)
        if panel is not None:
            self._start_judges(X, observations, panel.num_judges)
        self._points, self._observations = X, tuple(observations)
        self._panel, self._slopes = panel, slopes

    def _start_judges(self, X: Tensor, observations: Sequence[Observation], num_judges: int) -> None:
        """Add a kernel of each judge's own part, and reliabilities, if they are needed and missing."""
        if self.judge_covar_module is None:
            transform = getattr(self, "input_transform", None)
            dim = X.shape[-1] if transform is None else transformed_dim(deepcopy(transform).train(), X)
            self.judge_covar_module = defaults.default_judge_covar_module(
                dim, observations, categorical_inputs(self.covar_module, dim)
            ).to(X)
        if self._learns_reliability and self.judge_reliability is None:
            self.judge_reliability = Reliability(num_judges).to(X)
        elif self.judge_reliability is not None and len(self.judge_reliability.logarithm) < num_judges:
            self.judge_reliability = self.judge_reliability.extended(num_judges)

    @property
    def judges(self) -> frozenset[int]:
        """The numbers of all judges who gave answers."""
        return frozenset(judges_of(self._observations))

    @property
    def observations(self) -> tuple[Observation, ...]:
        """The observations, as a tuple."""
        return self._observations

    train_targets = observations  # the name that BoTorch's fitting functions use

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return self._num_outputs

    @property
    def outcome_scale(self) -> OutcomeScale:
        """The location and scale that an outcome transform has learned."""
        return self._outcome_scale

    @property
    def inducing_points(self) -> Tensor | None:
        """The inducing points in the units of the training points, `M x d`; `None` for the exact model."""
        return None if self.inducing is None else self.inducing.points

    @property
    def datapoints(self) -> Tensor:
        """The training points, by the name that BoTorch's preference acquisition functions use."""
        return self._points

    @property
    def dim(self) -> int:
        """The dimension of the input space, by the name that BoTorch's preference acquisition functions use."""
        return self.datapoints.shape[-1]

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        points = fn(self._points)
        if points.dtype not in (torch.float32, torch.float64):
            raise InputDataError(f"A SkewGP has single or double precision; got {points.dtype}.")
        if points is not self._points:  # BoTorch's analytic functions call `to` without a change
            self._points = points
            self.train_inputs = tuple(fn(X) for X in self.train_inputs)  # type: ignore[assignment]
            if self._original_train_inputs is not None:
                self._original_train_inputs = points
            self._observations = tuple(entry.apply(fn) for entry in self._observations)
        result = super()._apply(fn, *args, **kwargs)
        move_priors(self, fn)
        return result

    @property
    def draw_settings(self) -> DrawSettings:
        """How draws are made. Raises `InputDataError` if set to something else."""
        return self._draw_settings

    @draw_settings.setter
    def draw_settings(self, settings: DrawSettings) -> None:
        check_class(settings, "draw_settings", DrawSettings)
        self._check_own_data("draw_settings")
        self._draw_settings = settings

    def _check_own_data(self, name: str) -> None:
        """Raise an error where a change would have no effect, as the posterior is kept."""

    # Prior and rows

    def forward(self, X: Tensor) -> MultivariateNormal:
        """The Gaussian prior of all columns, before any skewness; in training mode points are transformed here."""
        if self.training:
            X = self.transform_inputs(X)
            check_finite(X, "train_X, after input transforms,")
            check_digits_of_points(X)
        try:  # nearly equal points have a covariance in double precision only
            return self.latent_prior(X.double()).columns()
        except RuntimeError as error:  # torch's, of a product of matrices
            if self.train_inputs[0].dtype == torch.float64 or "dtype" not in str(error):
                raise
            raise UnsupportedError(
                "The mean or the kernel of a model in single precision must take points of double precision, which "
                "products with matrices of weights do not. Build the model from train_X.double()."
            ) from error

    @property
    def prior_kernel(self) -> Kernel:
        """The kernel of the prior, with the constant of an integrated mean, and each judge's own part."""
        shared = self.covar_module
        if isinstance(self.mean_module, defaults.IntegratedConstantMean):
            shared = PlusConstantKernel(self.covar_module, self.mean_module.kernel)
        if self._panel is None:
            return shared
        assert self.judge_covar_module is not None
        return JudgeKernel(shared, self.judge_covar_module, self.judge_reliability)

    def latent_prior(self, points: Tensor | None = None) -> LatentPrior:
        """The prior over all columns, before any skewness; `points` are other transformed training points, `n x d`."""
        training_points = self.train_inputs[0] if points is None else points
        points = training_points
        if self.inducing is not None:
            points = self.inducing.points.to(training_points)
            if hasattr(self, "input_transform"):  # without learning from them
                points = self.input_transform.preprocess_transform(points)
        pseudo_points = None if self.skew_prior is None else self.skew_prior.pseudo_points
        slope_points, slope_dims = self._slopes
        if self._panel is not None:
            training_points = self._panel.points(training_points)
            points = training_points if self.inducing is None else with_code(points, SHARED)
            pseudo_points = None if pseudo_points is None else with_code(pseudo_points, SHARED)
            if self.inducing is not None:  # columns are of what judges share
                slope_points, slope_dims = self._panel.shared_slopes(slope_points, slope_dims)
        layout = self._column_layout(points.shape[-2])
        layout = replace(layout, slope_points=slope_points, slope_dims=slope_dims)
        slopes_at = training_points[..., slope_points.to(training_points.device), :]
        if self._panel is not None and self.inducing is not None:
            slopes_at = with_code(slopes_at[..., :-1], SHARED)
        return LatentPrior(
            self.mean_module,
            self.prior_kernel,
            points,
            pseudo_points,
            layout,
            slopes_at,
            training_points,
            self._panel is not None,
        )

    @property
    def _column_points(self) -> Tensor:
        """The points of value columns of the data, after input transforms in evaluation mode."""
        return self.train_inputs[0] if self._panel is None else self._panel.points(self.train_inputs[0])

    def _column_layout(self, num_points: int) -> ColumnLayout:
        num_pseudo_points = 0 if self.skew_prior is None else self.skew_prior.latent_dim
        return ColumnLayout(num_points, self._num_outputs, num_pseudo_points, *self._slopes)

    def row_plan(
        self,
        observations: Sequence[Observation] | None = None,
        merge_equal: bool = False,
        known: RowPlan | None = None,
    ) -> RowPlan:
        """How observations become rows, of which many equal ones are merged if allowed; `known` again, if all that it
        depends on is as it was.
        """
        observations = self._observations if observations is None else observations
        column_points = self._column_points if self.inducing is None else None
        num_points = len(self.train_inputs[0] if column_points is None else column_points)
        data = observations, column_points, num_points
        settings = data, merge_equal, self._outcome_scale, self.draw_settings, self.skew_prior
        attributes = attributes_of(self.likelihood)
        if known is not None and known.state.is_of(self.likelihood, settings, attributes):
            return known
        layout = self._column_layout(self._column_points.shape[-2])
        blocks = row_blocks(observations, self.likelihood, self._outcome_scale, layout, self._panel, column_points)
        if merge_equal and self._are_many(blocks):
            blocks = merged_blocks(blocks, self.skew_prior is not None)
        state = ModelState.of(self.likelihood, settings, attributes, learned=False)
        return RowPlan(blocks, self._outcome_scale, state)

    def _are_many(self, blocks: Sequence[RowBlock]) -> bool:
        """Whether rows are so many that equal ones are merged. Neither noise nor scale have a part in it, so that rows
        are the same ones at all hyperparameters.
        """
        if self.draw_settings.sampler not in (None, "hamiltonian"):
            return False
        points = self._column_points if self.inducing is None else self.inducing.points
        layout = self._column_layout(len(points))
        num_rows = layout.num_pseudo_points + sum(block.rows.num_rows for block in blocks)
        return num_rows > max(MAX_SINGLE_ROWS, layout.num_columns)

    def row_model(self, prior: MultivariateNormal, plan: RowPlan | None = None) -> RowModel:
        """Rows under a prior at the training points; by default those of the observations, none of them merged."""
        if self.inducing is not None:
            return self.white_rows(prior, plan).for_judges()[0]
        return RowModel(*_moments(prior), self._rows(prior, plan))

    def white_rows(self, prior: MultivariateNormal, plan: RowPlan | None = None) -> inducing.WhiteRows:
        """The rows over the white coordinates of the inducing points' columns."""
        rows = self._rows(prior, plan)
        if self._panel is not None and 0 < rows.numbers.num_rows < rows.num_rows:
            raise UnsupportedError(
                "Numbers beside other answers of several judges need the exact model; leave out inducing_points."
            )
        points = self.train_inputs[0]
        points = self.transform_inputs(points) if self.training else points
        layout = self._column_layout(self._column_points.shape[-2])
        return inducing.over_white_columns(rows, layout, self.latent_prior(points.double()), prior)

    def _rows(self, prior: MultivariateNormal, plan: RowPlan | None) -> Rows:
        """The rows of a plan over columns of the training points, after those of a skew prior."""
        mean, covariance = _moments(prior)
        rows = (self.row_plan() if plan is None else plan).rows(mean)
        if self.skew_prior is None:
            return rows
        layout = self._column_layout(self._column_points.shape[-2])
        first = layout.first_pseudo_point
        start = first if self.inducing is None else len(self.inducing.points) * self._num_outputs
        which = slice(start, start + layout.num_pseudo_points)
        return Rows.cat([self.skew_prior.rows(mean[which], covariance.diagonal()[which], first), rows])

    def evidence(self, prior: MultivariateNormal, plan: RowPlan | None = None) -> Evidence:
        """The parts of the evidence under a prior at the training points, in float64 and differentiable."""
        plan = self.row_plan() if plan is None else plan
        row_model = self.row_model(prior, plan)
        prior_rows = TruncatedNormal.empty(row_model.mean)
        if self.skew_prior is not None:
            prior_rows = self.row_model(prior, self.row_plan(observations=())).truncated_normal
        number_log_density = row_model.number_log_density
        for block in plan.blocks:
            jacobian = block.likelihood.log_jacobian(block.observation, row_model.mean, plan.scale)
            number_log_density = number_log_density + jacobian.sum()
        return Evidence(number_log_density, row_model.numbers.num_rows, row_model.truncated_normal, prior_rows)

    def checked_query(self, X: Tensor) -> Tensor:
        """Points of a query before input transforms, in double precision if the model's are."""
        transform = getattr(self, "input_transform", None)
        return check_query(X, self._points, num_appended_columns(transform, self._points))

    @property
    def judge_code(self) -> int | None:
        """The code of the model's judge, the last input of points; `None` without several judges."""
        return None if self._panel is None else self._judge


def _for_model(likelihood: RowLikelihood, train_X: Tensor, observations: Sequence[Observation]) -> RowLikelihood:
    """A model's copy of a likelihood; parameters of another dtype or device than the points' cannot be shared."""
    if any((p.dtype, p.device) != (train_X.dtype, train_X.device) for p in likelihood.parameters()):
        likelihood = deepcopy(likelihood)
    kinds = tuple({type(entry) for entry in observations})
    return likelihood.resolved_beside(Context(kinds, tuple(observations)))


def _moments(prior: MultivariateNormal) -> tuple[Tensor, Tensor]:
    """Mean and covariance, in double precision."""
    return prior.mean.double(), prior.lazy_covariance_matrix.to_dense().double()
