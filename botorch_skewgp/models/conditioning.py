r"""Conditioning a SkewGP: on new data, on fantasies in closed form, and on its own draws.

Given a draw, the latent function is Gaussian: a further number updates every draw's mean, and its probability by the
density of the number. A further interval row does so with a value drawn from its truncated normal and the probability
of the interval: a step of sequential importance sampling ([Geweke1991efficient]_).

.. [Geweke1991efficient] J. Geweke. Efficient simulation from the multivariate normal and Student-t distributions
   subject to linear constraints. Computing Science and Statistics 23, 1991.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import FantasizeMixin
from botorch.models.utils.assorted import fantasize
from botorch.sampling.base import MCSampler
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor

from botorch_skewgp.models.inputs import as_observations, check_batch, check_observations, check_train_X, moved
from botorch_skewgp.models.latent_model import LatentModel
from botorch_skewgp.models.panel import NEW, SHARED, judges_of
from botorch_skewgp.models.snapshot import FantasyLevel
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import as_count, as_seed, check_class
from botorch_skewgp.observations.numeric import mean_known_noise
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.rows import FantasyRows
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.truncated.univariate import (
    log_interval_probability,
    log_normal_density,
    sample_interval,
    standardise,
)

NUM_FANTASY_DRAWS = 256  # of rows' values, for a posterior that is a single Gaussian


class ConditioningMixin(LatentModel, FantasizeMixin):  # type: ignore[misc]
    """Methods that condition a SkewGP on further data."""

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None, **kwargs: Any
    ) -> Self:
        r"""A model with more data and the same hyperparameters.

        Data without batch dimensions are added to the model's, and new draws start from the old ones. Batches of
        numbers or duels, as acquisition functions make them, are conditioned on in closed form: every draw is updated
        and reweighted, differentiably in `X` and `Y`.

        Args:
            X: An `n' x d` tensor of new points; `batch_shape x n' x d` for a batch.
            Y: Observations of any kind whose indices refer to rows of `X`; or an `n' x 1` floating point tensor of
                numbers; or an `m x 2` integer tensor of duels, winner first, as `PairwiseGP` takes it. For a batch,
                tensors with further dimensions in front.
            noise: Known noise variances of numbers, in squared units of the outcome, of `Y`'s shape; for a tensor of
                numbers by default the mean of the known ones, where all numbers of the model have one.

        Returns:
            The new model.

        Raises:
            InputDataError: If the observations do not fit `X`, the likelihood does not take their kind, or an argument
                has another name.
            UnsupportedError: If a fantasy model gets data without batch dimensions.
        """
        if kwargs:
            raise InputDataError(f"condition_on_observations has no argument {', '.join(kwargs)}; leave it out.")
        if isinstance(Y, Tensor) and (X.ndim > 2 or Y.ndim > 2):
            return self._condition_batch(X, Y, noise)
        if noise is None and isinstance(Y, Tensor) and Y.is_floating_point():
            noise = mean_known_noise(self.observations)
        observations = as_observations(Y, noise)
        check_train_X(X, warn=False, name="X")
        if self._fantasies:
            raise UnsupportedError("A fantasy model can only be conditioned on batches of numbers or duels.")
        old = self.datapoints
        if X.shape[-1] != old.shape[-1]:
            raise InputDataError(f"X must have {old.shape[-1]} columns like train_X; got {X.shape[-1]}.")
        check_observations(observations, X)
        observations = self._by_own_judge(moved(observations, old))
        new = deepcopy(self)
        new.likelihood.extend_judges(max(judges_of(observations), default=-1) + 1)
        for entry in observations:
            new.likelihood.rows(entry, old.double(), self.outcome_scale)  # raises for kinds it does not take
        was_training = self.training
        new.train()
        further = tuple(entry.shift(old.shape[-2]) for entry in observations)
        new.set_train_data(torch.cat([old, X.to(old)], dim=-2), self._observations + further, strict=False)
        return new.train(was_training)

    def _by_own_judge(self, observations: Sequence[Observation]) -> tuple[Observation, ...]:
        """Answers without a judge are assigned to the model's judge."""
        if self._judge == SHARED:
            return tuple(observations)
        if self._judge == NEW and any(entry.judge is None for entry in observations):
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
            UnsupportedError: If noise is given for outcomes other than numbers, or the new observations cannot be
                drawn.
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
        uniforms = torch.rand(shape, generator=generator, dtype=torch.float64).to(X)
        mixture = condition_mixture(posterior, rows, uniforms)
        new = copy(self)
        new._fantasies = (*self._fantasies, FantasyLevel(inputs, tuple(posterior.gains), mixture))
        return new

    def condition_on_draws(self, X: Tensor, samples_per_draw: int = 1, seed: int = 0) -> tuple[Self, Tensor]:
        r"""A model whose draws are also conditioned on noise-free values at given points, drawn from the posterior.

        The distribution of the latent function stays the same, as a finer mixture over draws of rows and values.

        Args:
            X: An `n x d` tensor of points.
            samples_per_draw: The number of draws of the values for each of the model's draws.
            seed: The seed of the base samples.

        Returns:
            The model and the values, `n x S` in units of the outcome.

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


def condition_mixture(posterior: SkewGPPosterior, rows: FantasyRows, uniforms: Tensor) -> RepresenterMixture:
    """The mixture given rows, all numbers or all intervals; `uniforms` is `m x S`, `m x S` more for slips."""
    weight = rows.weight
    means = weight @ posterior.component_means
    covariance = weight @ posterior.gaussian_covariance @ weight.mT + rows.noise_covariance
    L = cholesky_with_relative_jitter(covariance)
    m = weight.shape[-2]
    lower, upper = rows.lower.unsqueeze(-1) - means, rows.upper.unsqueeze(-1) - means
    white: list[Tensor] = []
    log_weights = posterior.mixture.log_weights
    batch_shape = torch.broadcast_shapes(means.shape[:-2], rows.lower.shape[:-1])
    change = means.new_zeros(*batch_shape, means.shape[-1])
    for i in range(m):  # each row given those before
        scale = L[..., i, i].unsqueeze(-1)
        shift = sum((L[..., i, j].unsqueeze(-1) * white[j] for j in range(i)), means.new_zeros(()))
        a, b = (standardise(bound[..., i, :], shift, scale) for bound in (lower, upper))
        if bool((rows.lower == rows.upper).all()):
            white.append(a)
            change = change + log_normal_density(a) - scale.log()
        else:
            log_inside = log_interval_probability(a, b)
            drawn = _draw(a, b, uniforms[i].expand_as(a))
            if rows.slip is not None and rows.slip.shape[-1] == m:  # an answer of its own
                log_inside, slips = _step(log_inside, rows.slip[..., i, None], rows.attention, uniforms[m + i])
                drawn = torch.where(slips, torch.special.ndtri(uniforms[i]), drawn)
            change = change + log_inside
            white.append(drawn)
    if rows.slip is not None and rows.slip.shape[-1] != m:  # one answer of several rows
        change, slips = _step(change, rows.slip, rows.attention, uniforms[m])
        white = [torch.where(slips, torch.special.ndtri(uniforms[i]), drawn) for i, drawn in enumerate(white)]
    logits = change if log_weights is None else change + log_weights
    e = torch.stack(white, dim=-2) if m else means.new_zeros(*batch_shape, 0, means.shape[-1])
    L = L.expand(*batch_shape, m, m)
    weight = weight.expand(*batch_shape, *weight.shape[-2:])
    return RepresenterMixture(
        weights=weight.mT @ torch.linalg.solve_triangular(L.mT, e, upper=True),
        root=torch.linalg.solve_triangular(L, weight, upper=False).mT,
        log_weights=torch.log_softmax(logits, dim=-1),
        parent=posterior.mixture,
    )


def draw_values(posterior: SkewGPPosterior, samples_per_draw: int, seed: int) -> tuple[RepresenterMixture, Tensor]:
    """The mixture in which every draw is also conditioned on values drawn from the posterior; and these, `n x S`."""
    means = posterior.component_means.repeat_interleave(samples_per_draw, dim=-1)
    # the covariance may be much smaller than the prior's, and its rounding relative to that
    root = cholesky_with_relative_jitter(posterior.gaussian_covariance, scale=posterior.prior_variance)
    white = draw_sobol_normal_samples(
        d=root.shape[-1], n=means.shape[-1], device=means.device, dtype=means.dtype, seed=seed
    ).mT
    values = means + root @ white
    # representer weights of f(x) given the values
    representer = torch.linalg.solve_triangular(root.mT, white, upper=True)
    inverse_root = torch.linalg.inv(root).mT
    repeated = posterior.mixture.repeated(means.shape[-1])
    return RepresenterMixture(representer, inverse_root, repeated.log_weights, repeated), values


def _step(log_inside: Tensor, slip: Tensor, attention: Tensor | float, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The log probability of an answer, from that of an attentive one, and whether the draw is a slip."""
    log_attentive = log_inside + torch.as_tensor(attention).to(log_inside).log()
    log_step = torch.logaddexp(log_attentive, slip.log())
    return log_step, uniform >= (log_attentive - log_step).exp()


def _draw(lower: Tensor, upper: Tensor, uniform: Tensor) -> Tensor:
    """`sample_interval` with the derivatives in the bounds at a fixed level of the draw's cdf, all in logarithms."""
    with torch.no_grad():
        draw = sample_interval(lower, upper, uniform)
        given = log_interval_probability(lower, upper) + log_normal_density(draw)
        slopes = (
            torch.exp(log_interval_probability(draw, upper) + log_normal_density(lower) - given),
            torch.exp(log_interval_probability(lower, draw) + log_normal_density(upper) - given),
        )
    for bound, slope in zip((lower, upper), slopes, strict=True):
        bound = torch.where(bound.isfinite(), bound, 0.0)
        draw = draw + slope * (bound - bound.detach())
    return draw
