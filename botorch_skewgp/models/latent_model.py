r"""The latent function given data: snapshots with draws, the posterior in latent units, and conditioning on more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any, Self

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models.model import FantasizeMixin
from botorch.models.utils.assorted import fantasize
from botorch.sampling.base import MCSampler
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from botorch_skewgp.checks import as_count, as_seed, check_class
from botorch_skewgp.inputs.points import check_train_X
from botorch_skewgp.models.conditioning import condition_mixture, draw_values, open_uniforms
from botorch_skewgp.models.inputs import as_observations, check_batch, check_observations, without_gradients
from botorch_skewgp.models.panel import NEW, SHARED, code_of, judges_of, with_code
from botorch_skewgp.models.prior_model import PriorModel
from botorch_skewgp.models.snapshot import FantasyLevel, Snapshot
from botorch_skewgp.models.state import ModelState
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.numeric import mean_known_noise
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.rows import FantasyRows
from botorch_skewgp.truncated.draws import Draws

NUM_FANTASY_DRAWS = 256  # of rows' values, for a posterior that is a single Gaussian


class LatentModel(PriorModel, FantasizeMixin):  # type: ignore[misc]
    r"""Base class of `SkewGP`: the posterior of the latent function, and models that are given more data.

    In training mode a call returns the prior, in evaluation mode the posterior, and `train_inputs` are transformed. The
    methods of the posterior use a `Snapshot` in either mode, so that one thread may call them while another fits.
    """

    _snapshot: Snapshot | None = None
    _fantasies: tuple[FantasyLevel, ...] = ()

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of the fantasies; empty without fantasies."""
        return self._fantasies[-1].mixture.weights.shape[:-2] if self._fantasies else torch.Size()

    def _clear_cache(self) -> None:
        self._snapshot = None

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        before = self._points
        super()._apply(fn, *args, **kwargs)
        if self._points is not before:
            self._fantasies = tuple(level.apply(fn) for level in self._fantasies)
        return self

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of the present model; a model of fantasies keeps the one it was made from."""
        snapshot = self._snapshot
        if snapshot is None or not (self._fantasies or snapshot.state.is_of(self, *self._settings)):
            frozen = copy(self)  # with modules of its own; data, which a model never writes into, are shared
            frozen.__dict__["_modules"] = deepcopy(self._modules)
            frozen._snapshot, frozen._fantasies = None, ()
            frozen.requires_grad_(False)
            frozen.restore_inputs()
            self._snapshot = snapshot = Snapshot(frozen.eval(), ModelState.of(self, *self._settings))
        return snapshot

    @property
    def _settings(self) -> tuple[Any, ...]:
        """What the posterior depends on beside modules."""
        return self._points, self._observations, self._outcome_scale, self.draw_settings, self.approximation

    def of_judge(self, code: int) -> Self:
        """A model of one judge's utility, which shares all modules with this one."""
        self.snapshot  # noqa: B018 - which both then share
        new = copy(self)
        new._judge = code
        return new

    def __call__(self, X: Tensor, *args: Any, **kwargs: Any) -> MultivariateNormal | SkewGPPosterior:
        r"""The prior in training mode; the posterior at (already transformed) inputs in evaluation mode."""
        if self.training:
            return super().__call__(X, *args, **kwargs)
        return self._posterior_at(X, self.snapshot)

    @property
    def draws(self) -> Draws:
        """The draws of the interval rows of the posterior, with their diagnostics; made on first use."""
        return self.snapshot.draws

    def latent_posterior(
        self, X: Tensor, judges: Sequence[int | str | None] | None = None, crossed: bool = False
    ) -> SkewGPPosterior:
        r"""The posterior of the latent function in its own units, those of the noise of labels and comparisons.

        Args:
            X: A `batch_shape x q x d` tensor, before input transforms.
            judges: The judge of each of the `q` points, as in `SkewGP.posterior`; the model's own utility if `None`.
            crossed: Whether every point has all judges instead, an output for each.

        Raises:
            InputDataError: As `SkewGP.posterior`, or if the number of judges is not that of points.
            BotorchTensorDimensionError: If `X` has another number of dimensions or columns.
            UnsupportedError: If judges are given to a model of fantasies, without judges, or of several functions.
        """
        X, now = self.checked_query(X), self.snapshot
        inputs = now.inputs_at(X, self.judge_code)
        if judges is None:
            return self._posterior_at(inputs, now)
        if self._panel is None:
            raise UnsupportedError(
                "Joint utilities of judges need a model with judges; name them with judge= in observations."
            )
        if not isinstance(judges, Sequence | Tensor) or not (crossed or len(judges) == X.shape[-2]):
            raise InputDataError(f"judges must name one for each of the {X.shape[-2]} points; got {judges!r}.")
        if self._num_outputs > 1 or self._fantasies:
            raise UnsupportedError(
                "Joint utilities of judges need a model of data with one latent function, without fantasies."
            )
        codes = [self._judge if judge is None else code_of(judge, self.judges) for judge in judges]
        if crossed:
            inputs = torch.stack([with_code(inputs[..., :-1], code) for code in codes], dim=-2).flatten(-3, -2)
            return now.posterior_at(inputs, codes, len(codes))
        column = inputs.new_tensor(codes).unsqueeze(-1).expand(*inputs.shape[:-1], 1)
        return now.posterior_at(torch.cat([inputs[..., :-1], column], dim=-1), codes)

    def posterior_of_mixture(self, X: Tensor, mixture: RepresenterMixture) -> SkewGPPosterior:
        """The posterior of the latent function in its own units, from a given mixture instead of the model's draws."""
        X = self.transform_inputs(self.checked_query(X))
        X = X if self._panel is None else with_code(X, self._judge)
        prior = self.latent_prior(self.train_inputs[0].double())
        return SkewGPPosterior(
            prior.mean_at(X), [prior.cross_covariance(X.double())], prior.covariance_at(X), mixture, self._num_outputs
        )

    def _posterior_at(self, X: Tensor, now: Snapshot) -> SkewGPPosterior:
        """The posterior at transformed inputs. Raises `BotorchTensorDimensionError`."""
        dim = now.model.train_inputs[0].shape[-1]
        if self._panel is not None and X.shape[-1] == dim:
            X = with_code(X, self._judge)
        if X.shape[-1] != dim + (self._panel is not None):
            raise BotorchTensorDimensionError(
                f"After input transforms X has {X.shape[-1]} columns, and train_X {dim}; transform both alike, or give "
                "train_X the columns that a transform appends to queries alone."
            )
        return now.posterior_at(X, (self._judge,), self._num_outputs, self._fantasies)

    # Conditioning

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None, **kwargs: Any
    ) -> Self:
        r"""A model with more data and the same hyperparameters.

        Data without batch dimensions are added to the model's, and new draws are made, as for a new model of all data.
        Batches of numbers or duels, as acquisition functions make them, are conditioned on in closed form: every draw
        is updated and reweighted, differentiably in `X` and `Y`.

        Args:
            X: New points, `n' x d`, or `batch_shape x n' x d` for a batch.
            Y: Observations of any kind whose indices refer to rows of `X`; or `n' x 1` numbers in floating point; or
                `m x 2` integers, duels with the winner first. For a batch, tensors with further dimensions in front.
            noise: Known noise variances of numbers, in squared units of the outcome, of `Y`'s shape; for a tensor of
                numbers by default the mean of the known ones, where all numbers of the model have one.

        Raises:
            InputDataError: If observations do not fit `X` or the likelihood, or an argument has another name.
            UnsupportedError: If a fantasy model gets data without batch dimensions, or these require gradients.
        """
        if kwargs:
            raise InputDataError(f"condition_on_observations has no argument {', '.join(kwargs)}; leave it out.")
        if isinstance(Y, Tensor) and (X.ndim > 2 or Y.ndim > 2):
            return self._condition_batch(X, Y, noise)
        if noise is None and isinstance(Y, Tensor) and Y.is_floating_point():
            noise = mean_known_noise(self.observations)
        observations = as_observations(Y, noise)
        check_train_X(X, warn=False, name="X")
        X = without_gradients(X, "X")
        if isinstance(Y, Tensor):
            without_gradients(Y, "Y")
        if self._fantasies:
            raise UnsupportedError("A fantasy model can only be conditioned on batches of numbers or duels.")
        old = self.datapoints
        if X.shape[-1] != old.shape[-1]:
            raise InputDataError(f"X must have {old.shape[-1]} columns like train_X; got {X.shape[-1]}.")
        check_observations(observations, X)
        observations = self._by_own_judge(observations)
        new = deepcopy(self)
        new.likelihood.extend_judges(max(judges_of(observations), default=-1) + 1)
        was_training = self.training
        new.train()
        further = tuple(entry.shift(old.shape[-2]) for entry in observations)
        new.set_train_data(torch.cat([old, X.to(old)], dim=-2), self._observations + further, strict=False)
        return new.train(was_training)

    def _by_own_judge(self, observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
        """Answers without a judge are assigned to the model's judge."""
        if self._judge == SHARED or all(entry.judge is not None for entry in observations):
            return observations
        if self._judge == NEW:
            raise InputDataError("These answers need judge=, as the model is for a new judge without a number.")
        return tuple(entry.by(self._judge - 1) if entry.judge is None else entry for entry in observations)

    def fantasize(self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any) -> Self:
        r"""A batch of models, each given one possible outcome at new points.

        The outcomes are numbers if the likelihood takes numbers; else the outcomes of noisy values of the latent
        function: a label, a grade or a validity at each point, or the preferred one of the points.

        Args:
            X: A `batch_shape x n' x d` tensor of new points.
            sampler: Draws the noisy values; its sample shape is the shape of the batch of fantasies.
            observation_noise: Noise variances of numbers, in squared units of the outcome; if `None` the mean of known
                variances where all numbers have one, else the likelihood's.

        Raises:
            InputDataError: If `X` is not a tensor of single or double precision, or `sampler` not a sampler.
            BotorchTensorDimensionError: If `X` has another number of columns.
            UnsupportedError: If outcomes are no numbers and noise is given, or cannot be drawn.
        """
        with fantasize():  # input transforms of queries alone leave new data as they are
            X = self.checked_query(X)
            check_class(sampler, "sampler", MCSampler)
            if X.shape[-2] == 0:
                none = X.new_zeros(*sampler.sample_shape, *X.shape[:-1])
                return self._condition_rows(X, FantasyRows.at_points(none, none, none))
            if self.likelihood.takes_numbers:
                return super().fantasize(X, sampler, observation_noise, **kwargs)
            if observation_noise is not None:
                raise UnsupportedError(
                    "observation_noise is for numbers; leave it out, as labels and comparisons have the likelihood's "
                    "noise."
                )
            latent = self.latent_posterior(X).add_noise(self.likelihood.latent_noise(X))
        noisy, round_ = sampler(latent).detach().squeeze(-1), len(self._fantasies)
        rows = self.answering_likelihood.fantasy_rows(noisy, self.outcome_scale, seed=round_)
        return self._condition_rows(X, rows)

    def _condition_batch(self, X: Tensor, Y: Tensor, noise: Tensor | None) -> Self:
        """Condition a batch of models on numbers, or on duels given as integer pairs."""
        check_batch(X, Y, noise)
        if Y.is_floating_point():
            # with a warping these are values of the warped function, as posteriors are
            values = self.outcome_scale.standardize(Y).squeeze(-1)
            if noise is None:
                variance = self.answering_likelihood.noise_of_numbers(X)
            else:
                variance = noise.expand_as(Y).squeeze(-1) / self.outcome_scale.scale**2
            return self._condition_rows(X, FantasyRows.at_points(values, values, variance))
        reading = self.answering_likelihood.reading(self.likelihood.kind_of_duels, X, self.outcome_scale)
        Y = Y.long()
        return self._condition_rows(X, reading.rows_over(Y, torch.full_like(Y[..., 0], reading.highest), X.shape[-2]))

    def _condition_rows(self, X: Tensor, rows: FantasyRows) -> Self:
        """A model that shares all modules with this one and is conditioned on further rows."""
        if self.num_outputs > 1:
            raise UnsupportedError("Fantasies of a model with several latent functions are not supported.")
        with fantasize():
            X = self.checked_query(X)
            posterior, inputs = self.latent_posterior(X), self.snapshot.inputs_at(X, self.judge_code)
        if posterior.mixture.num_draws == 1 and not bool((rows.lower == rows.upper).all()):
            posterior = posterior.with_draws_repeated(NUM_FANTASY_DRAWS)  # a row of one component would have one value
        # rounds must be independent given the draws
        generator = torch.Generator().manual_seed(self.draw_settings.seed + len(self._fantasies))
        shape = (rows.weight.shape[-2] * (1 if rows.slip is None else 2), posterior.mixture.num_draws)
        mixture = condition_mixture(posterior, rows, open_uniforms(shape, X, generator))
        new = copy(self)
        new._fantasies = (*self._fantasies, FantasyLevel(inputs, tuple(posterior.gains), mixture))
        return new

    def condition_on_draws(self, X: Tensor, samples_per_draw: int = 1, seed: int = 0) -> tuple[Self, Tensor]:
        r"""A model whose draws also know noise-free values at points, drawn from the posterior, and these values.

        The distribution of the latent function stays the same, as a finer mixture over draws of rows and values.

        Args:
            X: An `n x d` tensor of points; their values, in units of the outcome, are `n x S`.
            samples_per_draw: The number of draws of the values for each of the model's draws.
            seed: The seed of the base samples.

        Raises:
            UnsupportedError: If the model has several outputs or a batch of fantasies.
            InputDataError: If there are no points or draws.
        """
        if self.num_outputs != 1:
            raise UnsupportedError(
                f"condition_on_draws needs a model with one output; this one has {self.num_outputs}."
            )
        if self.batch_shape:
            raise UnsupportedError("condition_on_draws needs a model without a batch of fantasies.")
        X = self.checked_query(X)
        n = X.shape[-2]
        samples_per_draw, seed = as_count(samples_per_draw, "samples_per_draw", least=1), as_seed(seed)
        if n == 0:
            raise InputDataError(f"X must hold at least one point; got shape {tuple(X.shape)}.")
        posterior = self.latent_posterior(X)
        mixture, values = draw_values(posterior, samples_per_draw, seed)
        new = copy(self)
        level = FantasyLevel(self.snapshot.inputs_at(X, self.judge_code), tuple(posterior.gains), mixture)
        new._fantasies = (*self._fantasies, level)
        return new, self.outcome_scale.unstandardize(values)
