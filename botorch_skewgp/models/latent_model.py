r"""The latent function given data: points, observations, rows, their draws, and the posterior in latent units.

What a SkewGP is before anybody asks in units of the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from gpytorch.models.gp import GP
from torch import Tensor

from botorch_skewgp.likelihoods import OutcomeScale, RowLikelihood
from botorch_skewgp.models.fantasy import FantasyLevel
from botorch_skewgp.models.inputs import as_sequence, check_observations, check_query, check_train_X, move
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.models.marginal_likelihood import Evidence
from botorch_skewgp.models.means import IntegratedConstantMean
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.models.transforms import untransformed_inputs
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.rows import ColumnLayout, Rows, slope_columns
from botorch_skewgp.truncated.draws import Draws, DrawSettings, draw


class _Fitted(NamedTuple):
    """What posteriors need, made once for given data and hyperparameters."""

    mixture: RepresenterMixture
    draws: Draws
    key: tuple[Any, ...]


class LatentModel(Model, GP):
    """Base class of `SkewGP`: data, prior, rows, draws, and the posterior of the latent function."""

    likelihood: RowLikelihood
    mean_module: Mean
    covar_module: Kernel
    skew_prior: SkewPrior | None
    draw_settings: DrawSettings
    train_inputs: tuple[Tensor]
    _observations: tuple[Observation, ...]
    _num_outputs: int
    _outcome_scale: OutcomeScale
    _slopes: tuple[Tensor, Tensor]
    _fitted: _Fitted | None
    _previous_draws: Draws | None
    _fantasies: tuple[FantasyLevel, ...]

    # Data

    @property
    def observations(self) -> tuple[Observation, ...]:
        """The observations, as a tuple."""
        return self._observations

    @property
    def train_targets(self) -> tuple[Observation, ...]:
        """The observations; the name that BoTorch's fitting functions ask for."""
        return self._observations

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return self._num_outputs

    @property
    def outcome_scale(self) -> OutcomeScale:
        """How outcomes relate to the latent function: the location and scale that an outcome transform has learned."""
        return self._outcome_scale

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of the model, which is that of its fantasies."""
        return self._fantasies[-1].mixture.weights.shape[:-2] if self._fantasies else torch.Size()

    @property
    def datapoints(self) -> Tensor:
        """The training points; the name that BoTorch's preference acquisition functions ask for."""
        return untransformed_inputs(self)

    @property
    def dim(self) -> int:
        """The dimension of the input space; the name that BoTorch's preference acquisition functions ask for."""
        return self.datapoints.shape[-1]

    def set_train_data(
        self,
        inputs: Tensor | tuple[Tensor] | None = None,
        targets: Observation | Sequence[Observation] | None = None,
        strict: bool = True,
    ) -> None:
        r"""Replace points, observations or both, without fitting again.

        Args:
            inputs: An `n x d` tensor.
            targets: The observations.
            strict: Whether new points must have the shape, dtype and device of the old ones.
        """
        X = self.train_inputs[0] if inputs is None else (inputs if isinstance(inputs, Tensor) else inputs[0])
        old = self.train_inputs[0]
        if strict and (X.shape, X.dtype, X.device) != (old.shape, old.dtype, old.device):
            raise RuntimeError(
                f"New points must have shape {tuple(old.shape)}, dtype {old.dtype} and device {old.device}; got "
                f"{tuple(X.shape)}, {X.dtype}, {X.device}. Pass strict=False to allow others."
            )
        check_train_X(X, warn=False)
        observations = self._observations if targets is None else as_sequence(targets)
        check_observations(observations, X)
        moved = tuple(entry.apply(lambda t: move(t, X)) for entry in observations)
        slopes = self._slopes_of(moved)  # raises for kinds that the likelihood does not take
        self.train_inputs, self._observations, self._slopes = (X,), moved, slopes
        self._clear_cache()

    def _slopes_of(self, observations: Sequence[Observation]) -> tuple[Tensor, Tensor]:
        """The points at which rows of observations read slopes, and the inputs in which they do."""
        like = torch.empty(0, dtype=torch.float64, device=self.train_inputs[0].device)
        blocks = [self.likelihood.rows(entry, like, self._outcome_scale) for entry in observations]
        return slope_columns(blocks)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        moved = tuple(fn(X) for X in self.train_inputs)
        if any(X.dtype not in (torch.float32, torch.float64) for X in moved):
            raise InputDataError(f"A SkewGP is of single or double precision; it cannot become {moved[0].dtype}.")
        self.train_inputs = moved  # type: ignore[assignment]
        if self._original_train_inputs is not None:
            self._original_train_inputs = fn(self._original_train_inputs)
        self._observations = tuple(entry.apply(fn) for entry in self._observations)
        self._fantasies = tuple(level.apply(fn) for level in self._fantasies)
        result = super()._apply(fn, *args, **kwargs)
        fitted = self._fitted
        if fitted is not None:
            mixture = fitted.mixture
            same = fn(mixture.weights)
            if same is not mixture.weights:
                self._clear_cache()
        return result

    def _clear_cache(self) -> None:
        self._fitted = None

    def _key(self) -> tuple[Any, ...]:
        """All that the draws depend on besides the data. Values and not versions: GPyTorch writes through `.data`."""
        values = [t.detach().clone() for t in [*self.parameters(), *self.buffers()]]
        return [id(module) for module in self.modules()], self.draw_settings, values

    def _is_current(self, fitted: _Fitted) -> bool:
        modules, settings, values = fitted.key
        now = [*self.parameters(), *self.buffers()]
        return (
            modules == [id(module) for module in self.modules()]
            and settings == self.draw_settings
            and len(values) == len(now)
            and all(old.dtype == new.dtype and torch.equal(old, new) for old, new in zip(values, now, strict=True))
        )

    # Prior and rows

    def forward(self, X: Tensor) -> MultivariateNormal:
        r"""The Gaussian prior over the latent function, before any skewness.

        Args:
            X: A `batch_shape x n x d` tensor; transformed here in training mode, as BoTorch's models do.

        Returns:
            The distribution of all columns: values at the points, then at the pseudo-points of a skew prior, then
            slopes.
        """
        if self.training:
            X = self.transform_inputs(X)
        return self.latent_prior(X.double()).columns()  # nearly equal points have a covariance in double precision only

    @property
    def prior_kernel(self) -> Kernel:
        """The kernel of the prior: the covariance module, with the constant of a mean that is integrated over."""
        if isinstance(self.mean_module, IntegratedConstantMean):
            return self.mean_module.added_to(self.covar_module)
        return self.covar_module

    def latent_prior(self, points: Tensor | None = None) -> LatentPrior:
        r"""The Gaussian prior over all that rows read, before any skewness.

        Args:
            points: The training points after input transforms, `n x d`; the model's own if `None`.
        """
        points = self.train_inputs[0] if points is None else points
        return LatentPrior(
            self.mean_module,
            self.prior_kernel,
            points,
            None if self.skew_prior is None else self.skew_prior.pseudo_points,
            self._column_layout(points.shape[-2]),
        )

    def _column_layout(self, num_points: int) -> ColumnLayout:
        num_pseudo_points = 0 if self.skew_prior is None else self.skew_prior.latent_dim
        return ColumnLayout(num_points, self._num_outputs, num_pseudo_points, *self._slopes)

    def __call__(self, X: Tensor, *args: Any, **kwargs: Any) -> MultivariateNormal | SkewGPPosterior:
        r"""The prior in training mode; the posterior at (already transformed) inputs in evaluation mode."""
        if self.training:
            return super().__call__(X, *args, **kwargs)
        return self._posterior_at(X)

    def row_model(self, prior: MultivariateNormal, observations: Sequence[Observation] | None = None) -> RowModel:
        r"""Rows of the observations under a prior at the training points, in float64 and differentiable.

        Args:
            prior: The prior over the latent function at the training points.
            observations: Other observations than the model's own.
        """
        mean, covariance = prior.mean.double(), prior.lazy_covariance_matrix.to_dense().double()
        observations = self._observations if observations is None else observations
        layout = self._column_layout(self.train_inputs[0].shape[-2])
        prior_rows = self._prior_rows(mean, covariance, layout)
        blocks = [layout.resolve(self.likelihood.rows(entry, mean, self._outcome_scale)) for entry in observations]
        return RowModel(mean=mean, covariance=covariance, rows=Rows.cat([prior_rows, *blocks]))

    def _prior_rows(self, mean: Tensor, covariance: Tensor, layout: ColumnLayout) -> Rows:
        """The rows of the skew prior."""
        if self.skew_prior is None:
            return Rows.empty(mean)
        first = layout.first_pseudo_point
        which = slice(first, first + layout.num_pseudo_points)
        return self.skew_prior.rows(mean[which], covariance.diagonal()[which], first)

    def evidence(self, prior: MultivariateNormal, observations: Sequence[Observation] | None = None) -> Evidence:
        r"""The parts of the evidence under a prior at the training points, in float64 and differentiable.

        Args:
            prior: As in `row_model`.
            observations: As in `row_model`.
        """
        row_model = self.row_model(prior, observations)
        prior_rows = self.row_model(prior, observations=())
        return Evidence(row_model.number_log_density, row_model.truncated_normal, prior_rows.truncated_normal)

    # Posterior

    def _fit_draws(self) -> _Fitted:
        """Draws and representer weights for the present data and hyperparameters."""
        if self._fitted is not None and self._is_current(self._fitted):
            return self._fitted
        with torch.no_grad():
            X = self.train_inputs[0]
            row_model = self.row_model(self.forward(X))
            draws = draw(row_model.truncated_normal, self.draw_settings, previous=self._previous_draws)
            mixture = row_model.representer_mixture(draws).in_space_filling_order(row_model.covariance)
            mixture = RepresenterMixture(mixture.weights.to(X), mixture.root.to(X))
        self._fitted = _Fitted(mixture, draws, self._key())
        return self._fitted

    @property
    def draws(self) -> Draws:
        """The draws of the interval rows behind the posterior, with their diagnostics; made if need be."""
        self.eval()
        return self._fit_draws().draws

    def latent_posterior(self, X: Tensor) -> SkewGPPosterior:
        r"""The posterior of the latent function in its own units, those of the noise of labels and comparisons.

        Args:
            X: A `batch_shape x q x d` tensor, before input transforms.

        Raises:
            InputDataError: If `X` is no tensor of single or double precision.
            BotorchTensorDimensionError: If `X` has another number of dimensions or columns.
        """
        self.eval()
        return self._posterior_at(self.transform_inputs(check_query(X, self.datapoints)))

    def _posterior_at(self, X: Tensor) -> SkewGPPosterior:
        """The posterior at transformed inputs."""
        prior = self.latent_prior()
        return SkewGPPosterior(
            location=prior.mean_at(X),
            cross_covariance=self._cross_covariances(prior, X),
            prior_covariance=prior.covariance_at(X),
            mixture=self._mixture(),
            num_outputs=self._num_outputs,
        )

    def _mixture(self) -> RepresenterMixture:
        return self._fantasies[-1].mixture if self._fantasies else self._fit_draws().mixture

    def _cross_covariances(self, prior: LatentPrior, X: Tensor) -> list[Tensor]:
        """The covariance with the columns, and with the points of each fantasy given what was known then."""
        crosses = [prior.cross_covariance(X)]
        roots = [self._mixture().levels[0].root]
        for level in self._fantasies:
            cross = prior.covariance_at(X, level.inputs).to_dense()
            for earlier, root, gain in zip(crosses, roots, level.gains, strict=True):
                cross = cross - (earlier @ root) @ gain.mT
            crosses.append(cross)
            roots.append(level.mixture.root)
        return crosses
