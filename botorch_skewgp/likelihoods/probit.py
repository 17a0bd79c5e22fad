r"""The probit likelihoods of yes/no labels, of valid and failed experiments, and of class labels and label graphs.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
.. [Wichmann2001psychometric] Wichmann, Hill. The psychometric function: I. Perception and Psychophysics 63, 2001.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import Interval
from gpytorch.priors import Prior
from torch import Tensor
from torch.distributions import Categorical

from botorch_skewgp.checks import MAX_CATEGORIES, as_count, as_number, check_flags, check_parts
from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import VALIDITY_NOISE
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.parameters import PositiveParameter, RateParameter, as_rate
from botorch_skewgp.observations import Binary, LabelPreference, Observation, Validity
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.parameters import register_named_prior
from botorch_skewgp.rows import Reading, Rows, shared_noise_rows


class NoisyValueLikelihood(RowLikelihood):
    r"""Base class of likelihoods that read values of the latent function, each with noise of one variance.

    Args:
        noise: The noise variance, in squared units of the latent function; by default 1, and learned beside numbers.
        learn_noise: Whether the noise is a parameter to fit; by default beside numbers, if nothing is said of it.
        noise_prior: A prior on the noise variance; by default its logarithm is N(-1, 1) beside numbers.
        noise_constraint: A constraint on the noise variance; positive by default.
        slip: The probability of a slip, an answer drawn uniformly from all possible ones: one for all judges, or a
            tensor with one for each; 0 by default.
        learn_slip: Whether it is a parameter to fit.
        slip_prior: A prior on it; by default half-Cauchy on its odds, with a median of 1 to 20.

    Raises:
        InputDataError: If the noise is not positive, or a rate not between 0 and 1.
    """

    noise = PositiveParameter()

    def __init__(
        self,
        noise: float | Tensor | None = None,
        learn_noise: bool | None = None,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
        *,
        slip: float | Tensor = 0.0,
        learn_slip: bool = False,
        slip_prior: Prior | None = None,
    ) -> None:
        super().__init__()
        self._open = {"noise"} if noise is learn_noise is noise_prior is noise_constraint is None else set()
        value = self.default_noise if noise is None else noise
        learn = learn_noise is not None and learn_noise
        self._register_positive("noise", value, learn, noise_prior, noise_constraint)
        self._register_slip(slip, learn_slip, slip_prior)

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise variance."""
        return self.noise


class ProbitLikelihood(NoisyValueLikelihood):
    r"""`P(label = 1) = Phi((f(x) - shift) / sqrt(noise))` ([Benavoli2021unified]_, section 1.1, equation (2)).

    Labels determine only the ratio of the kernel's output scale to the noise, which is therefore fixed at 1 by default,
    and `shift` at zero, as it can go into the mean. In a model of numbers, which fix scale and level of the function,
    both are learned unless they are given.

    With slips and guesses `P(label = 1) = slip / 2 + (1 - slip) (guess + (1 - guess) Phi)`, where `Phi` is the
    probability above: the psychometric function `g + (1 - g - l) Phi` with the lapse rate `l = slip / 2` and the guess
    rate `g = slip / 2 + (1 - slip) guess` ([Wichmann2001psychometric]_). With `guess=0.5`, as among two alternatives,
    the guess rate is one half for any slips.

    Args:
        guess: The probability of label 1 without any perception: 1 over the number of alternatives of a forced choice
            scored as right or wrong, 0 for yes/no questions.
        threshold: The given value of `shift`, in units of the outcome, as where a label tells whether a quantity that
            is also measured passes a known limit; a label that reads the measurement itself is `Censored`.
        learn_shift: Whether `shift` is a parameter to fit; by default beside numbers.
        shift_prior: A prior on it, in units of the latent function; for a learned one by default N(0, 2^2).
        kwargs: The other arguments are those of `NoisyValueLikelihood`.

    Raises:
        InputDataError: If the noise is not positive, a rate not in [0, 1), or another argument of another class.

    Example:
        >>> likelihood = ProbitLikelihood(guess=0.5, slip=0.04)
    """

    observation_types = (Binary,)
    guess = RateParameter()

    def __init__(
        self,
        *args: Any,
        guess: float = 0.0,
        threshold: float | None = None,
        learn_shift: bool | None = None,
        shift_prior: Prior | None = None,
        **kwargs: Any,
    ) -> None:
        rate = as_rate(guess, "guess")
        if rate.numel() != 1:
            raise InputDataError(f"guess must be one number; got {rate.tolist()}.")
        super().__init__(*args, **kwargs)
        self._register_shift(threshold, learn_shift, shift_prior)
        if float(rate) > 0:
            self._register_rate("guess", rate)

    def _slips(self, num_outcomes: int, like: Tensor, judge: Tensor | None = None) -> Tensor | None:
        """Slips, plus guesses of outcome 1 by attentive answers."""
        slips = super()._slips(num_outcomes, like, judge)
        if not hasattr(self, "raw_guess"):
            return slips
        slips = like.new_zeros(num_outcomes) if slips is None else slips
        right = torch.nn.functional.one_hot(torch.tensor(1, device=like.device), num_outcomes).to(like)
        return slips + (1 - slips.sum(-1, keepdim=True)) * self.guess.to(like) * right

    def share_of_slips(self, observation: Observation, rows: Rows) -> Tensor | float:
        """1 for outcome 0, less for outcome 1, which may be a guess."""
        slips = super()._slips(2, rows.noise, observation.judge)
        if slips is None:
            return 0.0
        assert rows.heights is not None
        return (slips[..., 0] / rows.heights.outside).clamp(max=1)

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """`f(x) + v` above the shift for outcome 1; else 0. A given threshold is in units of the outcome."""
        return Reading.at_point(self._level(like, scale), self.noise, self._slips(2, like))

    def answers(self, observation: Binary) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each point, and its label."""
        return observation.index.unsqueeze(-1), observation.labels.long()


class ValidityLikelihood(NoisyValueLikelihood):
    r"""`P(valid) = Phi((f(x) - threshold) / sqrt(noise))` ([Benavoli2021unified]_, equation (40)).

    Failures tend to repeat: the default noise is a hundredth of that of labels, so that the boundary is sharp beside
    the default output scale.

    Args:
        threshold: The value of the latent function above which experiments are valid, in units of the outcome.
        learn_threshold: Whether the threshold is a parameter to fit.
        threshold_prior: A prior on the threshold.
        kwargs: The other arguments are those of `NoisyValueLikelihood`.

    Raises:
        InputDataError: If the threshold is not a finite number, the noise not positive, or a rate not between 0 and 1.
    """

    observation_types = (Validity,)
    default_noise = VALIDITY_NOISE

    def __init__(
        self,
        threshold: float | Tensor = 0.0,
        learn_threshold: bool = False,
        *args: Any,
        threshold_prior: Prior | None = None,
        **kwargs: Any,
    ) -> None:
        check_flags(learn_threshold=learn_threshold)
        check_parts(threshold_prior=(threshold_prior, Prior))
        value = torch.tensor([as_number(threshold, "threshold")], dtype=torch.float64)
        super().__init__(*args, **kwargs)
        self.register_parameter("threshold", torch.nn.Parameter(value, requires_grad=learn_threshold))
        register_named_prior(self, "threshold", threshold_prior)

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """`f(x) + v` above the threshold for outcome 1, valid; else 0."""
        threshold = scale.standardize(self.threshold.to(like))
        return Reading.at_point(threshold, self.noise, self._slips(2, like))

    def answers(self, observation: Validity) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each point, and whether it is valid."""
        return observation.index.unsqueeze(-1), observation.valid.long()


class LabelPreferenceLikelihood(NoisyValueLikelihood):
    r"""`P(l beats k at x) = Phi((f_l(x) - f_k(x)) / sqrt(2 noise))` ([Benavoli2021unified]_, equation (5)).

    Args:
        num_labels: The number of labels, hence of latent functions.
        kwargs: The other arguments are those of `NoisyValueLikelihood`; the noise is that of one label.
    """

    observation_types = (LabelPreference,)

    def __init__(self, num_labels: int, *args: Any, **kwargs: Any) -> None:
        num_labels = as_count(num_labels, "num_labels", most=MAX_CATEGORIES)
        super().__init__(*args, **kwargs)
        self.num_labels = num_labels

    @property
    def num_outputs(self) -> int:
        """One latent function for each label."""
        return self.num_labels

    def latent_noise(self, X: Tensor) -> Tensor:
        """Not defined: the noise is that of labels, not of the latent functions."""
        return RowLikelihood.latent_noise(self, X)

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """The best label at a point."""
        return Reading.choice(self.num_labels, self.noise, like, self._slips(self.num_labels, like))

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """One row per preference of a label over another; those of one event share each label's noise. Raises
        `InputDataError` for another number of labels.
        """
        self.for_kind(type(observation))
        assert isinstance(observation, LabelPreference)
        if observation.num_labels != self.num_labels:
            raise InputDataError(
                f"The observations have {observation.num_labels} labels, the likelihood {self.num_labels}; give "
                f"LabelPreferenceLikelihood({observation.num_labels})."
            )
        labels = observation.labels
        index = observation.index.unsqueeze(-1).expand(-1, 2)
        rows = shared_noise_rows(labels, observation.event, self.noise, like, index, labels)
        event = observation.event.unique(return_inverse=True)[1]
        size = event.bincount()[event]
        best = torch.full_like(size, -1).scatter_reduce(0, event, labels[:, 0].to(event), "amax")[event]
        least = torch.full_like(size, self.num_labels).scatter_reduce(0, event, labels[:, 0].to(event), "amin")[event]
        is_class = (best == least) & (size == self.num_labels - 1)  # one label above all others
        num_outcomes = torch.where(is_class, float(self.num_labels), 2.0**size)
        return self._with_slips(rows, observation.judge, num_outcomes, event)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Categorical:
        """The distribution of the label that wins, from `... x num_labels` values; others raise `InputDataError`."""
        if function_samples.shape[-1] != self.num_labels:
            raise InputDataError(
                f"function_samples must be ... x {self.num_labels}, one value per label; got shape "
                f"{tuple(function_samples.shape)}."
            )
        reading = self.reading(LabelPreference, function_samples)
        return Categorical(logits=reading.log_probabilities(function_samples))
