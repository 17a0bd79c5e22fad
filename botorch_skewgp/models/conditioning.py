r"""Conditioning a SkewGP on more: observations as new data, fantasies in closed form, and its own draws.

A mixin of `SkewGP`, so that the model's own file holds what a model is and this one how it learns more.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import FantasizeMixin
from botorch.sampling.base import MCSampler
from torch import Tensor

from botorch_skewgp.models.datasets import as_observations
from botorch_skewgp.models.fantasy import (
    FantasyLevel,
    SampledValues,
    condition_mixture,
    draw_values,
    mixture_of_samples,
)
from botorch_skewgp.models.inputs import check_batch, check_observations, check_query, check_train_X, moved
from botorch_skewgp.models.latent_model import LatentModel
from botorch_skewgp.models.panel import NEW, SHARED
from botorch_skewgp.observations import Observation
from botorch_skewgp.rows import FantasyRows

NUM_FANTASY_DRAWS = 256  # of rows' values, for a posterior that is a single Gaussian


class ConditioningMixin(LatentModel, FantasizeMixin):  # type: ignore[misc]
    """What makes a new model of a SkewGP and something more that is known."""

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
            noise: Known noise variances of numbers, in squared units of the outcome, of `Y`'s shape.

        Returns:
            The new model.

        Raises:
            InputDataError: If the observations do not fit `X`, or the likelihood does not take their kind.
            UnsupportedError: If data without batch dimensions are given to a fantasy model.
        """
        if isinstance(Y, Tensor) and (X.ndim > 2 or Y.ndim > 2):
            return self._condition_batch(X, Y, noise)
        observations = as_observations(Y, noise)
        check_train_X(X, warn=False, name="X")
        if self._fantasies or self._sampled is not None:
            raise UnsupportedError("A fantasy model can only be conditioned on batches of numbers or duels.")
        old = self.datapoints
        if X.shape[-1] != old.shape[-1]:
            raise InputDataError(f"X must have {old.shape[-1]} columns like train_X; got {X.shape[-1]}.")
        check_observations(observations, X)
        observations = self._by_own_judge(moved(observations, old))
        for entry in observations:
            self.likelihood.rows(entry, old.double(), self.outcome_scale)  # raises for kinds it does not take
        previous = None if self._snapshot is None else self._snapshot.draws_if_made
        was_training = self.training
        new = deepcopy(self)
        new.train()
        further = tuple(entry.shift(old.shape[-2]) for entry in observations)
        new.set_train_data(torch.cat([old, X.to(old)], dim=-2), self._observations + further, strict=False)
        new._previous_draws = previous
        return new.train(was_training)

    def _by_own_judge(self, observations: Sequence[Observation]) -> tuple[Observation, ...]:
        """Answers of which nobody is named, as those of the judge whom this model is for."""
        if self._judge == SHARED:
            return tuple(observations)
        if self._judge == NEW and any(entry.judge is None for entry in observations):
            raise InputDataError(
                "Say whose answers these are, with judge=: the model is for a new judge without a number."
            )
        return tuple(entry.by(self._judge - 1) if entry.judge is None else entry for entry in observations)

    def fantasize(self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any) -> Self:
        r"""A batch of models, each given one possible outcome at new points.

        The outcomes are of the kind that the likelihood is for: numbers if it takes numbers; else what noisy values of
        the latent function imply, a label, a grade or a validity at each point, or which of the points is preferred.

        Args:
            X: A `batch_shape x n' x d` tensor of new points.
            sampler: Draws the noisy values; its sample shape is the shape of the batch of fantasies.
            observation_noise: Noise variances of numbers, in squared units of the outcome; the likelihood's if `None`.

        Raises:
            UnsupportedError: If noise is given for outcomes that are no numbers, or the new observations
                cannot be drawn.
        """
        if X.shape[-2] == 0:
            none = X.new_zeros(*sampler.sample_shape, *X.shape[:-1])
            return self._condition_rows(X, FantasyRows.at_points(none, none, none))
        if self.likelihood.takes_numbers:
            return super().fantasize(X, sampler, observation_noise, **kwargs)
        if observation_noise is not None:
            raise UnsupportedError(
                "observation_noise is for numbers; labels and comparisons have the likelihood's own."
            )
        latent = self.latent_posterior(X).add_noise(self.likelihood.latent_noise(X))
        rows = self.likelihood.fantasy_rows(sampler(latent).detach().squeeze(-1), self.outcome_scale)
        return self._condition_rows(X, rows)

    def _condition_batch(self, X: Tensor, Y: Tensor, noise: Tensor | None) -> Self:
        """Condition a batch of models on numbers, or on duels given as integer pairs."""
        check_batch(X, Y, noise)
        if Y.is_floating_point():
            # with a warping the model's posteriors, and so the values of fantasies, are of the warped function
            values = self.outcome_scale.standardize(Y).squeeze(-1)
            if noise is None:
                variance = self.likelihood.noise_of_numbers(X)
            else:
                variance = noise.expand_as(Y).squeeze(-1) / self.outcome_scale.scale**2
            return self._condition_rows(X, FantasyRows.at_points(values, values, variance))
        reading = self.likelihood.reading(self.likelihood.kind_of_duels, X, self.outcome_scale)
        return self._condition_rows(X, reading.rows_over(Y, torch.full_like(Y[..., 0], reading.highest), X.shape[-2]))

    def _condition_rows(self, X: Tensor, rows: FantasyRows) -> Self:
        """A model that shares all modules with this one and knows of further rows."""
        if self.num_outputs > 1:
            raise UnsupportedError("Fantasies of a model with several latent functions are not supported.")
        X = check_query(X, self.datapoints)
        posterior = self.latent_posterior(X)
        if posterior.mixture.num_draws == 1 and not bool((rows.lower == rows.upper).all()):
            posterior = posterior.with_draws_repeated(NUM_FANTASY_DRAWS)  # else its rows had one value each
        generator = torch.Generator().manual_seed(self.draw_settings.seed)
        shape = (rows.weight.shape[-2] * (1 if rows.slip is None else 2), posterior.mixture.num_draws)
        uniforms = torch.rand(shape, generator=generator, dtype=torch.float64).to(X)
        mixture = condition_mixture(posterior, rows, uniforms)
        new = copy(self)
        level = FantasyLevel(self._inputs_at(X, self._now()), tuple(posterior.gains), mixture)
        new._fantasies = (*self._fantasies, level)
        return new

    def condition_on_draws(
        self, X: Tensor, samples_per_draw: int = 1, seed: int = 0, weight: Tensor | None = None
    ) -> tuple[Self, Tensor]:
        r"""A model in which every draw also knows the noise-free values, drawn from the posterior, at given points.

        The distribution of the latent function does not change, for it is only cut into smaller parts: a mixture over
        draws of the rows and of the values.

        Args:
            X: An `n x d` tensor of points.
            samples_per_draw: The number of draws of the values for each of the model's draws.
            seed: The seed of the base samples.
            weight: A `k x n` tensor, to draw `weight f(X)` (of the latent function, in its own units) instead.

        Returns:
            The model and the values, `n x S` in units of the outcome (`k x S` of the latent function with a weight).

        Raises:
            UnsupportedError: If the model has several outputs or is one of fantasies.
            InputDataError: If there are no points, fewer draws than one, or the weight has another shape.
        """
        if self.num_outputs != 1:
            raise UnsupportedError(f"Values can be drawn for models with one output; this one has {self.num_outputs}.")
        if self.batch_shape or self._sampled is not None:
            raise UnsupportedError("Values can be drawn for models of data, not of fantasies; build one from its data.")
        X = check_query(X, self.datapoints)
        n = X.shape[-2]
        if n == 0 or samples_per_draw < 1:
            raise InputDataError(
                f"At least one point and one sample per draw are needed; got {n} points and samples_per_draw="
                f"{samples_per_draw}."
            )
        if weight is not None and (weight.ndim != 2 or weight.shape[-1] != n):
            raise InputDataError(f"weight must be k x {n}, a column for each point; got shape {tuple(weight.shape)}.")
        posterior = self.latent_posterior(X)
        mixture, values = draw_values(posterior, samples_per_draw, seed, weight)
        new = copy(self)
        new._fantasies = (FantasyLevel(self._inputs_at(X, self._now()), tuple(posterior.gains), mixture),)
        return new, self.outcome_scale.unstandardize(values) if weight is None else values

    def condition_on_samples(self, X: Tensor, base_samples: Tensor) -> Self:
        r"""A model whose draws are joint samples of its posterior at given points, each with the values it has there.

        What acquisition functions ask for that sample new points together with a fixed baseline. A sample of this
        model's posterior at new points whose first base sample picks draw `i` is what the joint posterior at `X` and
        the new points gives for the `i`-th row of base samples, but nothing of `X` is computed again.

        Args:
            X: An `n x d` tensor of points.
            base_samples: `k x (1 + n)` standard normal numbers, as `posterior(X).rsample_from_base_samples` takes them.

        Raises:
            UnsupportedError: If the model has several outputs or slopes, or is one of fantasies or samples.
            InputDataError: If shapes disagree, or a base sample is not finite.
        """
        if self.num_outputs != 1 or self.latent_prior().has_slopes:
            raise UnsupportedError("Samples can be conditioned on for models with one output and without slopes.")
        if self._fantasies or self._sampled is not None or (self._judge > SHARED and self.inducing is not None):
            raise UnsupportedError(
                "Samples can be conditioned on for models of data, not of fantasies or samples, nor of a judge with "
                "inducing points."
            )
        X = check_query(X, self.datapoints)
        if X.ndim != 2 or base_samples.ndim != 2 or base_samples.shape[-1] != 1 + X.shape[-2]:
            raise InputDataError(
                "X must be n x d and base_samples k x (1 + n), the first column to pick a draw; got shapes "
                f"{tuple(X.shape)} and {tuple(base_samples.shape)}."
            )
        if not base_samples.isfinite().all():
            raise InputDataError("base_samples must be finite standard normal numbers.")
        mixture = mixture_of_samples(self.latent_posterior(X), base_samples.to(X))
        new = copy(self)
        new._sampled = SampledValues(self._inputs_at(X, self._now()), mixture)
        return new
