r"""Probit likelihoods of a single point: yes/no labels, grades, and validity.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
.. [Chu2005ordinal] W. Chu, Z. Ghahramani. Gaussian processes for ordinal regression. JMLR 6, 2005.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import Interval, Positive
from gpytorch.priors import LogNormalPrior, Prior
from torch import Tensor
from torch.distributions import Bernoulli, Categorical

from botorch_skewgp.likelihoods.base import (
    OutcomeScale,
    PositiveParameter,
    ReadParameter,
    RowLikelihood,
    SetParameter,
    point_rows,
)
from botorch_skewgp.likelihoods.rows import FantasyRows, Rows
from botorch_skewgp.observations import Binary, Observation, Ordinal, Validity
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.univariate import log_interval_probability, probit_logits


class _PointProbitLikelihood(RowLikelihood):
    """What likelihoods of a noisy latent value in an interval share."""

    noise = PositiveParameter()

    def __init__(
        self,
        noise: float | Tensor = 1.0,
        learn_noise: bool = False,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
    ) -> None:
        r"""
        Args:
            noise: The noise variance, in squared units of the latent function.
            learn_noise: Whether the noise is a parameter to fit.
            noise_prior: A prior on the noise variance.
            noise_constraint: A constraint on the noise variance; positive by default.
        """
        super().__init__()
        self._register_positive("noise", noise, learn_noise, noise_prior, noise_constraint)

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise variance."""
        return self.noise

    def _probability(self, function_samples: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        scale = self.noise.sqrt()
        return log_interval_probability((lower - function_samples) / scale, (upper - function_samples) / scale).exp()


def _half_lines(above: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds of `(threshold, inf)` where a flag is set and of `(-inf, threshold]` where it is not."""
    threshold = threshold.expand(above.shape)
    return (
        torch.where(above, threshold, torch.full_like(threshold, -torch.inf)),
        torch.where(above, torch.full_like(threshold, torch.inf), threshold),
    )


class ProbitLikelihood(_PointProbitLikelihood):
    r"""`P(label = 1) = Phi(f(x) / sqrt(noise))` ([Benavoli2021unified]_, section 2.2).

    Labels alone cannot tell the noise from the kernel's output scale, so that it is fixed at 1 unless told otherwise.
    """

    observation_types = (Binary,)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """One row per label: `f(x) + v` in `(0, inf)` for 1, in `(-inf, 0]` for 0."""
        self._check_type(observation)
        assert isinstance(observation, Binary)
        lower, upper = _half_lines(observation.labels.to(like.device), like.new_zeros(1))
        return point_rows(observation.index, like, lower, upper, self.noise)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Bernoulli:
        r"""The law of a new label.

        Args:
            function_samples: A tensor of values of the latent function.
        """
        return Bernoulli(logits=probit_logits(function_samples / self.noise.sqrt()))

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Bernoulli:
        return Bernoulli(probs=posterior.add_noise(self.noise).probability_above(0.0))

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale) -> FantasyRows:
        """The labels of the noisy values."""
        return FantasyRows.at_points(*_half_lines(noisy > 0, noisy.new_zeros(1)), self.noise)


class ValidityLikelihood(_PointProbitLikelihood):
    r"""`P(valid) = Phi((f(x) - threshold) / sqrt(noise))` ([Benavoli2021unified]_, equation (40)).

    What fails tends to fail again: the default noise is a hundredth of that of labels, which makes the edge of what
    works sharp beside the default output scale.

    Args:
        threshold: The value of the latent function above which an experiment works, in units of the outcome.
        learn_threshold: Whether the threshold is a parameter to fit.
        noise: The noise variance, in squared units of the latent function.
        learn_noise: Whether the noise is a parameter to fit.
        noise_prior: A prior on the noise variance.
        noise_constraint: A constraint on the noise variance; positive by default.
        threshold_prior: A prior on the threshold.
    """

    observation_types = (Validity,)

    def __init__(
        self,
        threshold: float | Tensor = 0.0,
        learn_threshold: bool = False,
        noise: float | Tensor = 0.01,
        learn_noise: bool = False,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
        threshold_prior: Prior | None = None,
    ) -> None:
        super().__init__(noise, learn_noise, noise_prior, noise_constraint)
        value = torch.as_tensor(threshold, dtype=torch.float64).reshape(1)
        if not value.isfinite().all():
            raise InputDataError(f"threshold must be finite; got {value.tolist()}.")
        self.register_parameter("threshold", torch.nn.Parameter(value.clone(), requires_grad=learn_threshold))
        if threshold_prior is not None:
            self.register_prior("threshold_prior", threshold_prior, "threshold")

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """One row per outcome: `f(x) + v` above the threshold for a valid one, not above it for another."""
        self._check_type(observation)
        assert isinstance(observation, Validity)
        lower, upper = _half_lines(observation.valid.to(like.device), scale.standardize(self.threshold.to(like)))
        return point_rows(observation.index, like, lower, upper, self.noise)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Bernoulli:
        r"""The law of a new outcome.

        Args:
            function_samples: A tensor of values of the latent function, in units of the outcome if there is no outcome
                transform.
        """
        return Bernoulli(logits=probit_logits((function_samples - self.threshold) / self.noise.sqrt()))

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Bernoulli:
        return Bernoulli(probs=posterior.add_noise(self.noise).probability_above(scale.standardize(self.threshold)))

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale) -> FantasyRows:
        """Whether the noisy values are above the threshold."""
        threshold = scale.standardize(self.threshold.to(noisy))
        return FantasyRows.at_points(*_half_lines(noisy > threshold, threshold), self.noise)


class OrdinalLikelihood(_PointProbitLikelihood):
    r"""`P(grade = j) = Phi((b_j - f(x)) / s) - Phi((b_{j-1} - f(x)) / s)` with `s = sqrt(noise)`.

    The interval form of [Benavoli2021unified]_, equation (3), after [Chu2005ordinal]_. With learned cut-points the
    middle one (of the lower two, if their number is even) is fixed at zero, as a shift of all can go into the mean.

    Args:
        num_grades: The number of grades.
        cutpoints: Given cut-points `b_1 < ... < b_{num_grades - 1}`, in units of the outcome; learned if `None`.
        noise: The noise variance, in squared units of the latent function.
        learn_noise: Whether the noise is a parameter to fit.
        noise_prior: A prior on the noise variance.
        noise_constraint: A constraint on the noise variance; positive by default.
        gap_prior: A prior on the gaps between cut-points; by default LogNormal(0, 1) for learned ones, without which a
            grade that nobody gave would become impossible.
    """

    observation_types = (Ordinal,)
    gaps = PositiveParameter()

    def __init__(
        self,
        num_grades: int,
        cutpoints: Tensor | None = None,
        noise: float | Tensor = 1.0,
        learn_noise: bool = False,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
        gap_prior: Prior | None = None,
    ) -> None:
        super().__init__(noise, learn_noise, noise_prior, noise_constraint)
        self.num_grades = num_grades
        if num_grades < 2:
            raise InputDataError(f"num_grades must be at least 2; got {num_grades}.")
        learn = cutpoints is None
        points = torch.arange(num_grades - 1) - (num_grades - 2) // 2 if cutpoints is None else cutpoints
        points = torch.as_tensor(points, dtype=torch.float64)
        if points.shape != (num_grades - 1,) or not points.isfinite().all() or (points.diff() <= 0).any():
            raise InputDataError(
                f"cutpoints must be {num_grades - 1} finite increasing numbers, one fewer than grades; got "
                f"{points.tolist()}."
            )
        self.register_buffer("first_cutpoint", points[:1].clone())
        self.register_buffer("anchor", torch.tensor((num_grades - 2) // 2 if learn else -1))
        self.register_parameter(
            "raw_gaps", torch.nn.Parameter(torch.zeros(num_grades - 2, dtype=torch.float64), requires_grad=learn)
        )
        self.register_constraint("raw_gaps", Positive())
        if gap_prior is None and learn and num_grades > 2:
            gap_prior = LogNormalPrior(loc=0.0, scale=1.0)
        if gap_prior is not None:
            self.register_prior("gaps_prior", gap_prior, ReadParameter("gaps"), SetParameter("gaps"))
        if num_grades > 2:
            self.gaps = points.diff()

    @property
    def cutpoints(self) -> Tensor:
        """The cut-points, increasing; shape `num_grades - 1`."""
        steps = torch.cat([self.first_cutpoint.new_zeros(1), self.gaps.cumsum(-1)])
        if int(self.anchor) >= 0:
            return steps - steps[self.anchor]
        return self.first_cutpoint + steps

    def _bounds(self) -> Tensor:
        inner = self.cutpoints
        end = torch.full_like(inner[:1], torch.inf)
        return torch.cat([-end, inner, end])

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """One row per grade: `f(x) + v` between the cut-points around it."""
        self._check_type(observation)
        assert isinstance(observation, Ordinal)
        if observation.num_grades != self.num_grades:
            raise InputDataError(
                f"The observations have {observation.num_grades} grades, their likelihood {self.num_grades}."
            )
        bounds, grades = self._bounds().to(like), observation.grades.to(like.device)
        if int(self.anchor) < 0:
            bounds = scale.standardize(bounds)
        return point_rows(observation.index, like, bounds[grades], bounds[grades + 1], self.noise)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Categorical:
        r"""The law of a new grade.

        Args:
            function_samples: A tensor of values of the latent function.

        Returns:
            A categorical distribution over grades, of the samples' shape.
        """
        bounds = self._bounds().to(function_samples)
        return Categorical(probs=self._probability(function_samples.unsqueeze(-1), bounds[:-1], bounds[1:]))

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Categorical:
        noisy = posterior.add_noise(self.noise)
        cutpoints = self.cutpoints if int(self.anchor) >= 0 else scale.standardize(self.cutpoints)
        inner = torch.stack([noisy.cdf(point) for point in cutpoints], dim=-1)
        below = torch.cat([torch.zeros_like(inner[..., :1]), inner, torch.ones_like(inner[..., :1])], dim=-1)
        return Categorical(probs=below.diff(dim=-1))

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale) -> FantasyRows:
        """The grades of the noisy values."""
        bounds = self._bounds().to(noisy)
        if int(self.anchor) < 0:
            bounds = scale.standardize(bounds)
        grades = torch.searchsorted(bounds[1:-1].contiguous(), noisy.contiguous())
        return FantasyRows.at_points(bounds[grades], bounds[grades + 1], self.noise)
