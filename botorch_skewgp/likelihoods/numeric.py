r"""The Gaussian likelihood of numbers, exact or censored."""

from __future__ import annotations

from typing import Any

from botorch.models.utils.gpytorch_modules import MIN_INFERRED_NOISE_LEVEL
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.priors import LogNormalPrior, Prior
from torch import Tensor
from torch.distributions import Normal

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.likelihoods.parameters import PositiveParameter
from botorch_skewgp.observations import Censored, Numeric, Observation
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import Reading, Rows


class NumericLikelihood(RowLikelihood):
    r"""Readings `f(x) + v` with `v ~ N(0, noise)`, seen as numbers or as lying in an interval.

    Numbers with known variances use those instead of `noise`. Censored readings come from the same instrument and share
    its noise.

    Args:
        noise: The noise variance, in squared units of the latent function.
        learn_noise: Whether the noise is a parameter to fit.
        noise_prior: A prior on the noise variance; by default BoTorch's for a learned one, LogNormal(-4, 1).
        noise_constraint: A constraint on the noise variance; by default above BoTorch's least inferred noise.
    """

    observation_types = (Numeric, Censored)
    noise = PositiveParameter()

    def __init__(
        self,
        noise: float | Tensor | None = None,
        learn_noise: bool = True,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
    ) -> None:
        super().__init__()
        if noise_prior is None and learn_noise:
            noise_prior = LogNormalPrior(loc=-4.0, scale=1.0)
        if noise_constraint is None and learn_noise:
            noise_constraint = GreaterThan(MIN_INFERRED_NOISE_LEVEL)
        value = 0.1 if noise is None else noise
        self._register_positive("noise", value, learn_noise, noise_prior, noise_constraint)

    @property
    def takes_numbers(self) -> bool:
        """Always."""
        return True

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """One row per reading: an equality for a number, an interval for a censored reading."""
        self._check_type(observation)
        reading = Reading.at_point(like.new_zeros(0), self.noise)
        index = observation.index.unsqueeze(-1)  # type: ignore[attr-defined]
        if isinstance(observation, Numeric):
            values = scale.standardize(observation.values.to(like))
            noise = None if observation.noise is None else observation.noise.to(like) / scale.scale**2
            return reading.rows_between(index, values, values, noise)
        assert isinstance(observation, Censored)
        lower, upper = (scale.standardize(bound.to(like)) for bound in (observation.lower, observation.upper))
        return reading.rows_between(index, lower, upper)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Normal:
        r"""The distribution of a new reading.

        Args:
            function_samples: A tensor of values of the latent function.
        """
        return Normal(function_samples, self.noise.sqrt().expand_as(function_samples))

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> SkewGPPosterior:
        return posterior.add_noise(self.noise).scalarize(posterior.mean.new_tensor([scale.scale]), scale.location)

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise variance."""
        return self.noise
