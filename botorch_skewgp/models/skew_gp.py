r"""The skew Gaussian process as a BoTorch model.

.. [Benavoli2020skew] A. Benavoli, D. Azzimonti, D. Piga. Skew Gaussian processes for classification. Machine Learning
   109, 2020.
.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
.. [Hvarfner2024vanilla] C. Hvarfner, E. O. Hellsten, L. Nardi. Vanilla Bayesian optimization performs great in high
   dimensions. ICML 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any, NamedTuple, Self

import torch
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models.model import FantasizeMixin, Model
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.posteriors import Posterior
from botorch.sampling.base import MCSampler
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.probability import UnifiedSkewNormal
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from gpytorch.models.gp import GP
from linear_operator.operators import LinearOperator, to_linear_operator
from torch import Tensor

from botorch_skewgp.likelihoods import (
    OutcomeScale,
    RowLikelihood,
    Rows,
    default_likelihood,
)
from botorch_skewgp.likelihoods.rows import FantasyRows
from botorch_skewgp.models.datasets import as_observations, from_dataset
from botorch_skewgp.models.defaults import default_covar_module, default_mean_module
from botorch_skewgp.models.fantasy import FantasyLevel, condition_mixture
from botorch_skewgp.models.inputs import (
    as_sequence,
    check_observations,
    check_skew_prior,
    check_train_X,
    count_outputs,
    move,
    warn_of_scaling,
)
from botorch_skewgp.models.marginal_likelihood import Evidence, EvidenceMethod, log_normalizer
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.models.transforms import learn_outcome_scale, transformed_dim
from botorch_skewgp.models.unified_skew_normal import (
    UnifiedSkewNormalParameters,
    botorch_unified_skew_normal,
    unified_skew_normal_parameters,
)
from botorch_skewgp.observations import Numeric, Observation, Preference
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.draws import Draws, DrawSettings, draw
from botorch_skewgp.truncated.evidence import LogNormalizer


class _Fitted(NamedTuple):
    """What posteriors need, made once for given data and hyperparameters."""

    mixture: RepresenterMixture
    draws: Draws
    key: tuple[Any, ...]


class SkewGP(Model, GP, FantasizeMixin):
    r"""A Gaussian process with the exact, skewed posterior for observations that are not plain numbers.

    Each observation becomes rows: linear functionals of the latent function plus Gaussian noise, seen as numbers or in
    intervals. Their truncated normal is sampled once per fit; given its draws the latent function is Gaussian in closed
    form ([Benavoli2021unified]_, Theorems 3.1-3.3).

    Example:
        >>> train_X = torch.rand(10, 2, dtype=torch.double)
        >>> pairs = torch.tensor([[0, 1], [2, 3], [4, 1]])  # winner first
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        >>> fit_gpytorch_mll(mll)
        >>> posterior = model.posterior(torch.rand(5, 2, dtype=torch.double))
    """

    _supports_cache_root = False
    _supports_batched_models = False

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
    ) -> None:
        r"""
        Args:
            train_X: An `n x d` tensor of points, all of those that observations refer to.
            observations: One observation object or a sequence of them; `None` for the prior.
            likelihood: Holds noise and cut-points and turns observations into rows; by default the one for the kind
                of the observations.
            covar_module: The kernel; by default a scaled RBF kernel with the dimension-scaled lengthscale prior of
                [Hvarfner2024vanilla]_, which is for inputs in the unit cube and standardised numbers. Others are warned
                of, as by BoTorch's models, unless there is a transform.
            mean_module: The mean; by default a constant, with a prior as wide as the latent function where no numbers
                tell it (a few equal labels would make it infinite).
            skew_prior: The skewness of the prior; a Gaussian prior if `None`.
            input_transform: A BoTorch input transform.
            outcome_transform: `Standardize(m=1)`, to standardise numbers. Known variances, censoring bounds, thresholds
                and given cut-points move along; labels and comparisons stay as they are. Posteriors are in units of
                the outcome. Without numbers among the observations it does nothing.
            draw_settings: How posterior draws are made.

        Raises:
            InputDataError: If `train_X` is not a finite floating point `n x d` tensor, or observations refer to rows
                that it does not have.
        """
        check_train_X(train_X)
        observations = as_sequence(observations)
        check_observations(observations, train_X)
        super().__init__()
        self.train_inputs: tuple[Tensor] = (train_X,)
        self._observations = tuple(entry.apply(lambda t: move(t, train_X)) for entry in observations)
        self._num_outputs = count_outputs(self._observations, likelihood)
        self._outcome_scale = learn_outcome_scale(self._observations, outcome_transform)
        self.likelihood = default_likelihood(self._observations) if likelihood is None else likelihood
        d = train_X.shape[-1] if input_transform is None else transformed_dim(input_transform, train_X)
        if covar_module is None:
            covar_module = default_covar_module(d)
            warn_of_scaling(train_X, observations, inputs=input_transform is None, numbers=outcome_transform is None)
        check_skew_prior(skew_prior, d, self._num_outputs)
        self.skew_prior = skew_prior
        self.covar_module = covar_module
        self.mean_module = default_mean_module(self._observations) if mean_module is None else mean_module
        if input_transform is not None:
            self.input_transform = input_transform
        self.draw_settings = DrawSettings() if draw_settings is None else draw_settings
        self._fitted: _Fitted | None = None
        self._previous_draws: Draws | None = None
        self._fantasies: tuple[FantasyLevel, ...] = ()
        self.to(train_X)

    @classmethod
    def construct_inputs(cls, training_data: SupervisedDataset) -> dict[str, Any]:
        r"""The constructor's arguments for a BoTorch dataset, which is how Ax builds models.

        Args:
            training_data: A `SupervisedDataset` of numbers, or a `RankingDataset`, whose equal ranks are ties.

        Raises:
            UnsupportedError: If the dataset has tasks or several outcomes.
        """
        train_X, observations = from_dataset(training_data)
        return {"train_X": train_X, "observations": observations}

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
    def batch_shape(self) -> torch.Size:
        """The batch shape of the model, which is that of its fantasies."""
        return self._fantasies[-1].mixture.weights.shape[:-2] if self._fantasies else torch.Size()

    @property
    def datapoints(self) -> Tensor:
        """The training points; the name that BoTorch's preference acquisition functions ask for."""
        return self._untransformed_inputs()

    @property
    def dim(self) -> int:
        """The dimension of the input space; the name that BoTorch's preference acquisition functions ask for."""
        return self.datapoints.shape[-1]

    def _untransformed_inputs(self) -> Tensor:
        if self._has_transformed_inputs:
            assert self._original_train_inputs is not None
            return self._original_train_inputs
        return self.train_inputs[0]

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
        self.train_inputs = (X,)
        self._observations = tuple(entry.apply(lambda t: move(t, X)) for entry in observations)
        self._clear_cache()

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        self.train_inputs = tuple(fn(X) for X in self.train_inputs)  # type: ignore[assignment]
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
            The law of the values at the points, and after them at the pseudo-points of a skew prior.
        """
        if self.training:
            X = self.transform_inputs(X)
        Z = self._with_pseudo_points(X)
        return MultivariateNormal(self._prior_mean(Z), self._prior_covariance(Z))

    def _with_pseudo_points(self, X: Tensor) -> Tensor:
        if self.skew_prior is None:
            return X
        points = self.skew_prior.pseudo_points.to(X)
        return torch.cat([X, points.expand(*X.shape[:-2], *points.shape)], dim=-2)

    def _prior_mean(self, X: Tensor) -> Tensor:
        """The prior mean at points and outputs, `batch_shape x (n o)`, output fastest."""
        if self._num_outputs == 1:
            mean = self.mean_module(X)
        elif getattr(self.mean_module, "batch_shape", None):
            mean = self.mean_module(X.unsqueeze(-3)).mT.flatten(-2)
        else:
            mean = self.mean_module(X).repeat_interleave(self._num_outputs, dim=-1)
        # a constant mean is a view of its parameter, which requires gradients even where none are recorded
        return mean if torch.is_grad_enabled() else mean.detach()

    def _prior_covariance(self, X: Tensor, Z: Tensor | None = None) -> LinearOperator:
        """The prior covariance between points and outputs, `batch_shape x (n o) x (n' o)`, output fastest."""
        if self._num_outputs == 1:
            return self.covar_module(X) if Z is None else self.covar_module(X, Z)
        eye = torch.eye(self._num_outputs, dtype=X.dtype, device=X.device)
        if not self.covar_module.batch_shape:
            K = (self.covar_module(X) if Z is None else self.covar_module(X, Z)).to_dense()
            K = K.unsqueeze(-1).unsqueeze(-1) * eye  # ... x n x n' x o x o
        else:
            X = X.unsqueeze(-3)
            K = (self.covar_module(X) if Z is None else self.covar_module(X, Z.unsqueeze(-3))).to_dense()
            K = K.movedim(-3, -1).unsqueeze(-1) * eye
        return to_linear_operator(K.transpose(-3, -2).flatten(-4, -3).flatten(-2, -1))

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
        prior_rows = self._prior_rows(mean, covariance)
        blocks = [self.likelihood.rows(entry, mean, self._outcome_scale) for entry in observations]
        return RowModel(mean=mean, covariance=covariance, rows=Rows.cat([prior_rows, *blocks]))

    def _prior_rows(self, mean: Tensor, covariance: Tensor) -> Rows:
        """The rows of the skew prior, whose pseudo-points come last."""
        if self.skew_prior is None:
            return Rows.empty(mean)
        first = mean.shape[-1] - self.skew_prior.latent_dim
        return self.skew_prior.rows(mean[first:], covariance.diagonal()[first:], first)

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

    def _posterior_at(self, X: Tensor) -> SkewGPPosterior:
        return SkewGPPosterior(
            location=self._prior_mean(X),
            cross_covariance=self._cross_covariances(X),
            prior_covariance=self._prior_covariance(X),
            mixture=self._mixture(),
            num_outputs=self._num_outputs,
        )

    def _mixture(self) -> RepresenterMixture:
        return self._fantasies[-1].mixture if self._fantasies else self._fit_draws().mixture

    def _cross_covariances(self, X: Tensor) -> list[Tensor]:
        """The covariance with the training points, and with the points of each fantasy given what was known then."""
        crosses = [self._prior_covariance(X, self._with_pseudo_points(self.train_inputs[0])).to_dense()]
        roots = [self._mixture().levels[0].root]
        for level in self._fantasies:
            cross = self._prior_covariance(X, level.inputs).to_dense()
            for earlier, root, gain in zip(crosses, roots, level.gains, strict=True):
                cross = cross - (earlier @ root) @ gain.mT
            crosses.append(cross)
            roots.append(level.mixture.root)
        return crosses

    def posterior(  # type: ignore[override]
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        r"""The posterior of the latent function.

        Args:
            X: A `batch_shape x q x d` tensor.
            output_indices: The outputs wanted; all if `None`.
            observation_noise: Whether to add the likelihood's noise, or its variances as a tensor that broadcasts to
                `batch_shape x q x num_outputs`.
            posterior_transform: A posterior transform. Affine ones keep the skewness.

        Returns:
            A `SkewGPPosterior`, or what the transform makes of it.
        """
        self.eval()
        if X.ndim < 2:
            raise BotorchTensorDimensionError(f"X must be batch_shape x q x d; got shape {tuple(X.shape)}.")
        if output_indices is not None:
            bad = [i for i in output_indices if not -self._num_outputs <= i < self._num_outputs]
            if bad or not output_indices:
                raise UnsupportedError(f"output_indices must name outputs 0 to {self._num_outputs - 1}; got {bad}.")
        posterior = self._posterior_at(self.transform_inputs(X))
        if output_indices is not None and self._num_outputs > 1:
            posterior = posterior.select_outputs([i % self._num_outputs for i in output_indices])
        if isinstance(observation_noise, Tensor):
            posterior = posterior.add_noise(observation_noise)
        elif observation_noise:
            posterior = posterior.add_noise(self.likelihood.latent_noise(X))
        if self._outcome_scale != OutcomeScale():
            scale = self._outcome_scale
            posterior = posterior.scalarize(X.new_tensor([scale.scale]), scale.location)
        if posterior_transform is None:
            return posterior
        if type(posterior_transform) is ScalarizedPosteriorTransform:
            return posterior.scalarize(posterior_transform.get_buffer("weights"), posterior_transform.offset)
        if type(posterior_transform) is ExpectationPosteriorTransform:
            return posterior.expectation(posterior_transform.get_buffer("weights"), posterior_transform.n_w)
        return posterior_transform(posterior=posterior, X=X)

    def predictive(self, X: Tensor) -> Any:
        r"""The distribution of new observations at new points, as the likelihood defines it, in units of the outcome.

        Args:
            X: A `batch_shape x q x d` tensor.
        """
        self.eval()
        return self.likelihood(self._posterior_at(self.transform_inputs(X)), scale=self._outcome_scale)

    # The distribution in the papers' terms

    @torch.no_grad()
    def sun_parameters(self, X: Tensor) -> UnifiedSkewNormalParameters:
        r"""The posterior at new points as a unified skew-normal vector ([Benavoli2021unified]_, Theorems 3.1-3.3).

        `f(X) = location + D_scale (r_0 + skewness latent_covariance^-1 r_1)` with `D_scale` the diagonal matrix of
        standard deviations of `scale`, `r_1 ~ N(0, latent_covariance)` truncated to `r_1 > -truncation`, and `r_0`
        an independent normal vector. Numbers are conditioned on; a one-sided row is one latent dimension, a two-sided
        row two, whose latent covariance is singular. The rows of a skew prior come first. Without observations this
        is the prior.

        Args:
            X: A `q x d` tensor; in units of the latent function, before any outcome transform is undone.

        Returns:
            `(location, scale, skewness, truncation, latent_covariance)`, called xi, Omega, Delta, gamma and Gamma in
            the papers, in float64.
        """
        row_model, location, scale, cross = self._joint_with_rows(X)
        return unified_skew_normal_parameters(row_model.truncated_normal, location, scale, cross)

    @torch.no_grad()
    def unified_skew_normal(self, X: Tensor) -> UnifiedSkewNormal:
        r"""The posterior at new points as BoTorch's `UnifiedSkewNormal`, for small cases.

        Args:
            X: A `q x d` tensor of points, distinct from each other and from noise-free training points.
        """
        row_model, location, scale, cross = self._joint_with_rows(X)
        return botorch_unified_skew_normal(row_model.truncated_normal, location, scale, cross)

    def _joint_with_rows(self, X: Tensor) -> tuple[RowModel, Tensor, Tensor, Tensor]:
        """The rows, and the normal law of the latent function at new points and its covariance with them."""
        self.eval()
        if X.ndim != 2:
            raise BotorchTensorDimensionError(f"X must be q x d; got shape {tuple(X.shape)}.")
        X, Z = self.transform_inputs(X), self._with_pseudo_points(self.train_inputs[0])
        row_model = self.row_model(self.forward(self.train_inputs[0]))
        cross = self._prior_covariance(X, Z).to_dense().double()
        covariance = self._prior_covariance(X).to_dense().double()
        return row_model, *row_model.given_numbers(self._prior_mean(X).double(), cross, covariance)

    # Evidence

    @torch.no_grad()
    def log_marginal_likelihood(self, method: EvidenceMethod = "exact") -> LogNormalizer:
        r"""The log evidence of the observations ([Benavoli2021unified]_, Corollaries 1-3), without hyperparameter
        priors.

        Args:
            method: `"exact"` for bridge sampling, with a standard error; `"ep"` for expectation propagation;
                `"ep_corrected"` for that with a second-order correction, within a tenth of a nat where it was tried;
                `"mvnxpb"` for bivariate conditioning by BoTorch's `MVNXPB`, for up to about a hundred rows.

        Returns:
            The value and its standard error (NaN where the method has none).

        Raises:
            UnsupportedError: If the method is unknown.
        """
        self.eval()
        evidence = self.evidence(self.forward(self.train_inputs[0]))
        of_rows = log_normalizer(evidence.rows, method, self.draws if method == "exact" else None)
        of_prior_rows = log_normalizer(evidence.prior_rows, method)
        return LogNormalizer(
            evidence.log_evidence(of_rows.value, of_prior_rows.value),
            of_rows.standard_error.hypot(of_prior_rows.standard_error),
        )

    def log_predictive_probability(
        self, X: Tensor, Y: Observation | Sequence[Observation], method: EvidenceMethod = "ep"
    ) -> Tensor:
        r"""The joint log probability (or density, for numbers) of new observations, as a ratio of two evidences.

        For one label this is the ratio of two orthant probabilities of [Benavoli2020skew]_, Corollary 2; averaging over
        the mixture, as `predictive` does, gives the same up to Monte Carlo error.

        Args:
            X: An `n' x d` tensor of new points.
            Y: Observations whose indices refer to rows of `X`.
            method: How evidences are computed, see `log_marginal_likelihood`.
        """
        larger = self.condition_on_observations(X, Y)
        return larger.log_marginal_likelihood(method).value - self.log_marginal_likelihood(method).value

    def subset_output(self, idcs: list[int]) -> Self:
        """The model of the outputs wanted; the model itself as long as it has one output."""
        if [i % self._num_outputs for i in idcs] != list(range(self._num_outputs)):
            raise UnsupportedError(f"This model has {self._num_outputs} output(s); got idcs={idcs}.")
        return self

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None, **kwargs: Any
    ) -> Self:
        r"""A model with more data and the same hyperparameters.

        Data without batch dimensions are added to the model's, and fresh draws start from the old ones. Batches of
        numbers or duels, as acquisition functions make them, are conditioned on in closed form instead: every draw is
        updated and reweighted, differentiably in `X` and `Y`; nothing is drawn again.

        Args:
            X: An `n' x d` tensor of new points; `batch_shape x n' x d` for a batch.
            Y: Observations of any kind whose indices refer to rows of `X`; or an `n' x 1` floating point tensor of
                numbers; or an `m x 2` integer tensor of duels, winner first, as `PairwiseGP` takes it. For a batch,
                tensors with further dimensions in front.
            noise: Known noise variances of numbers, in units of the latent function, of `Y`'s shape.

        Returns:
            The new model.

        Raises:
            InputDataError: If the observations do not fit `X`, or the likelihood does not take their kind.
        """
        if isinstance(Y, Tensor) and (X.ndim > 2 or Y.ndim > 2):
            return self._condition_batch(X, Y, noise)
        observations = as_observations(Y, noise)
        check_train_X(X, warn=False)
        if self._fantasies:
            raise UnsupportedError("A fantasy model can only be conditioned on batches of numbers or duels.")
        old = self._untransformed_inputs()
        if X.shape[-1] != old.shape[-1]:
            raise InputDataError(f"X must have {old.shape[-1]} columns like train_X; got {X.shape[-1]}.")
        check_observations(observations, X)
        for entry in observations:
            self.likelihood.rows(entry, X.double(), self._outcome_scale)  # raises for kinds it does not take
        previous = None if self._fitted is None else self._fitted.draws
        was_training = self.training
        new = deepcopy(self)
        new.train()
        moved = tuple(entry.apply(lambda t: move(t, old)).shift(old.shape[-2]) for entry in observations)
        new.set_train_data(torch.cat([old, X.to(old)], dim=-2), self._observations + moved, strict=False)
        new._previous_draws = previous
        return new.train(was_training)

    def fantasize(self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any) -> Self:
        r"""A batch of models, each given one possible outcome at new points.

        The outcomes are of the kind that the likelihood is for: numbers if it takes numbers; else what noisy values of
        the latent function imply, a label, a grade or a validity at each point, or which of the points is preferred.

        Args:
            X: A `batch_shape x n' x d` tensor of new points.
            sampler: Draws the noisy values; its sample shape is the shape of the batch of fantasies.
            observation_noise: Noise variances of numbers; the likelihood's if `None`.
        """
        if X.shape[-2] == 0:
            none = X.new_zeros(*sampler.sample_shape, *X.shape[:-1])
            return self._condition_rows(X, FantasyRows.at_points(none, none, none))
        if Numeric in self.likelihood.observation_types:
            return super().fantasize(X, sampler, observation_noise, **kwargs)
        if observation_noise is not None:
            raise UnsupportedError(
                "observation_noise is for numbers; labels and comparisons have the likelihood's own."
            )
        self.eval()
        latent = self._posterior_at(self.transform_inputs(X)).add_noise(self.likelihood.latent_noise(X))
        rows = self.likelihood.fantasy_rows(sampler(latent).detach().squeeze(-1), self._outcome_scale)
        return self._condition_rows(X, rows)

    def _condition_batch(self, X: Tensor, Y: Tensor, noise: Tensor | None) -> Self:
        """Condition a batch of models on numbers, or on duels given as integer pairs."""
        if Y.is_floating_point():
            Y = self._outcome_scale.standardize(Y).squeeze(-1)
            variance = self.likelihood.for_kind(Numeric).latent_noise(X) if noise is None else noise.squeeze(-1)
            return self._condition_rows(X, FantasyRows.at_points(Y, Y, variance))
        points = torch.nn.functional.one_hot(Y, X.shape[-2]).to(X)
        lower = X.new_zeros(Y.shape[:-1])
        own = 2 * self.likelihood.for_kind(Preference).latent_noise(X).to(X).expand_as(lower)
        weight = points[..., 0, :] - points[..., 1, :]
        return self._condition_rows(
            X, FantasyRows(weight, lower, torch.full_like(lower, torch.inf), torch.diag_embed(own))
        )

    def _condition_rows(self, X: Tensor, rows: FantasyRows) -> Self:
        """A model that shares all modules with this one and knows of further rows."""
        if self._num_outputs > 1:
            raise UnsupportedError("Fantasies of a model with several latent functions are not supported.")
        self.eval()
        X = self.transform_inputs(X)
        posterior = self._posterior_at(X)
        generator = torch.Generator().manual_seed(self.draw_settings.seed)
        shape = (rows.weight.shape[-2], posterior.mixture.num_draws)
        uniforms = torch.rand(shape, generator=generator, dtype=torch.float64).to(X)
        mixture = condition_mixture(posterior, rows, uniforms)
        new = copy(self)
        new._fantasies = (*self._fantasies, FantasyLevel(X, tuple(posterior.gains), mixture))
        return new
