r"""The Gaussian likelihood of numbers, exact or censored, as they are or warped.

.. [Snelson2003warped] E. Snelson, C. E. Rasmussen, Z. Ghahramani. Warped Gaussian processes. NIPS 2003.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.utils.gpytorch_modules import MIN_INFERRED_NOISE_LEVEL
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.priors import Prior
from torch import Tensor
from torch.distributions import Normal

from botorch_skewgp.checks import check_flags, check_parts
from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import NUMERIC_NOISE, NUMERIC_NOISE_PRIOR
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.parameters import PositiveParameter
from botorch_skewgp.observations import Censored, Numeric, Observation
from botorch_skewgp.parameters import LogarithmPrior
from botorch_skewgp.posteriors import SkewGPPosterior, WarpedPosterior
from botorch_skewgp.rows import Reading, Rows
from botorch_skewgp.warpings import Warping


class NumericLikelihood(RowLikelihood):
    r"""Readings `f(x) + v` with `v ~ N(0, noise)`, observed as numbers or in an interval.

    Numbers with weights are `sum_j w_j f(x_j) + v`, with the same noise, that of the whole sum.

    Numbers with known variances use those instead of `noise`; where all have one, new numbers are expected to have
    their mean. Censored readings without known variances have the likelihood's noise.

    With a warping `g`, for numbers of unknown scale, the reading is `g(y)` of the (standardised) outcome `y`. Its
    parameters are fitted with the others, to an evidence that includes the derivative of `g` ([Snelson2003warped]_).
    Comparisons, labels and validity are about the warped function and do not depend on `g`. A model's posteriors are of
    the warped function too; `predictive` and `outcome_posterior` are in units of the outcome.

    Example:
        >>> likelihood = NumericLikelihood(warping=SinhArcsinh())
        >>> model = SkewGP(train_X, [Numeric(values.exp()), Preference(pairs)], likelihood=likelihood)
        >>> median = model.predictive(X[:2])[Numeric].quantile(0.5)

    Args:
        noise: The noise variance, in squared units of the latent function.
        learn_noise: Whether the noise is a parameter to fit.
        noise_prior: A prior on the noise variance; for a learned one by default N(-4, 1) of its
            logarithm.
        noise_constraint: A constraint on the noise variance; by default above BoTorch's minimum.
        warping: The warping of outcomes; none if `None`. Parameters that are redundant with an affine map of the latent
            function are not fitted.
    """

    observation_types = (Numeric, Censored)
    takes_numbers = True
    noise = PositiveParameter()
    _known_noise: Tensor | None = None  # of new numbers

    def __init__(
        self,
        noise: float | Tensor | None = None,
        learn_noise: bool = True,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
        warping: Warping | None = None,
    ) -> None:
        super().__init__()
        check_flags(learn_noise=learn_noise)
        check_parts(warping=(warping, Warping))
        self.warping = warping
        if warping is not None:
            for name in warping.redundant_parameters():
                warping.get_parameter(name).requires_grad_(False)
        if noise_prior is None and learn_noise:
            noise_prior = LogarithmPrior(*NUMERIC_NOISE_PRIOR)
        if noise_constraint is None and learn_noise:
            noise_constraint = GreaterThan(MIN_INFERRED_NOISE_LEVEL)
        value = NUMERIC_NOISE if noise is None else noise
        self._register_positive("noise", value, learn_noise, noise_prior, noise_constraint)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """One row per reading: an equality for a number, an interval for a censored one. Raises `InputDataError` for
        other kinds and values outside the warping's domain, `UnsupportedError` for known variances and sums of warped
        numbers.
        """
        self.for_kind(type(observation))
        reading = Reading.at_point(like.new_zeros(0), self.noise)
        assert isinstance(observation, Numeric | Censored)
        noise = observation.noise
        if self.warping is not None and noise is not None and bool((noise > 0).any()):
            raise UnsupportedError(
                "Known variances are those of the outcome, but a warping has noise in the warped outcome. Leave "
                "the observations' noise out, to learn it, or the likelihood's warping."
            )
        noise = None if noise is None else noise.to(like) / scale.scale**2
        if isinstance(observation, Numeric) and observation.weights is not None:
            return self._rows_of_sums(observation, reading, scale, noise)
        index = observation.index.unsqueeze(-1)
        if isinstance(observation, Numeric):
            values = self._warped(scale.standardize(observation.values.to(like)))
            self._check_domain(values, observation.values, scale)
            return reading.rows_between(index, values, values, noise)
        lower, upper = (self._warped(scale.standardize(b.to(like))) for b in (observation.lower, observation.upper))
        self._check_domain(upper.clamp_max(0), observation.upper, scale)
        rows = reading.rows_between(index, lower, upper, noise).weighted(observation.answer_weights)
        if self.warping is None:
            return rows
        return rows.of_parameters(observation.lower).of_parameters(observation.upper)  # which warping may make equal

    def _rows_of_sums(self, observation: Numeric, reading: Reading, scale: OutcomeScale, noise: Tensor | None) -> Rows:
        """Rows `sum_j w_j f_j` for numbers `y = sum_j w_j (location + scale f_j)`; raises `UnsupportedError`."""
        if self.warping is not None:
            raise UnsupportedError(
                "Weighted numbers are linear in the outcome, which a warping is not; leave out the weights, or the "
                "likelihood's warping."
            )
        assert observation.weights is not None
        weights = observation.weights.to(reading.weight)
        sums = (observation.values.to(weights) - scale.location * weights.sum(-1)) / scale.scale
        return replace(reading.rows_between(observation.index, sums, sums, noise), coefficient=weights)

    def _check_domain(self, warped: Tensor, outcome: Tensor, scale: OutcomeScale) -> None:
        """Raise `InputDataError` if some warped numbers, or upper bounds, are outside of the warping's domain."""
        outside = warped == -torch.inf
        if self.warping is None or not bool(outside.any()):
            return
        least = float(self.warping.domain[0].max())
        standardised = scale != OutcomeScale()
        hint = ", or leave outcome_transform out" if standardised and bool((outcome[outside] > least).all()) else ""
        raise InputDataError(
            f"The warping needs {'standardised ' if standardised else ''}outcomes above {least:g}; those at positions "
            f"{outside.nonzero().squeeze(-1)[:5].tolist()} are not. Give a warping of all numbers, such as SinhArcsinh "
            f"or Arcsinh{hint}."
        )

    def _warped(self, outcome: Tensor) -> Tensor:
        """Warped outcomes or bounds; infinite where they are, or outside the warping's domain."""
        if self.warping is None:
            return outcome
        least = self.warping.domain[0].to(outcome)
        inside = outcome.isfinite() & (outcome > least)
        warped = self.warping(torch.where(inside, outcome, torch.where(least.isfinite(), least + 1, 0.0)))
        return torch.where(inside, warped, torch.where(outcome > least, outcome, -torch.inf))

    def log_jacobian(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Tensor:
        """The log derivatives of the warping at numbers; zero for censored readings."""
        if self.warping is None or not isinstance(observation, Numeric):
            return super().log_jacobian(observation, like, scale)
        return self.warping.log_derivative(scale.standardize(observation.values.to(like)))

    def outcome_posterior(
        self,
        posterior: SkewGPPosterior,
        scale: OutcomeScale = UNIT,
    ) -> SkewGPPosterior | WarpedPosterior:
        r"""The posterior of outcomes without noise, in their units, given the latent function's posterior and scale.

        Example:
            >>> likelihood, latent = objective.likelihood.for_kind(Numeric), objective.latent_posterior(X)
            >>> upper = likelihood.outcome_posterior(latent, objective.outcome_scale).quantile(0.9)
        """
        if self.warping is None:
            return posterior.scalarize(posterior.mean.new_tensor([scale.scale]), scale.location)
        return WarpedPosterior(posterior, self.warping, scale.location, scale.scale)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Normal:
        """The distribution of new readings, of the shape of values of the latent function."""
        return Normal(function_samples, self.latent_noise().sqrt().expand_as(function_samples))

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> SkewGPPosterior | WarpedPosterior:
        return self.outcome_posterior(posterior.add_noise(self.latent_noise()), scale)

    def latent_noise(self, X: Tensor | None = None) -> Tensor:
        """The noise variance of new numbers, the same everywhere."""
        noise = self.noise
        return noise if self._known_noise is None else self._known_noise.to(noise).expand_as(noise)

    def with_noise_of_numbers(self, noise: Tensor) -> Self:
        """The likelihood of new numbers of a known noise variance, which shares its parameters with this one."""
        return self._but(_known_noise=noise)
