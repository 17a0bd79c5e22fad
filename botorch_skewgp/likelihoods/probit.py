r"""The probit likelihood of yes/no labels.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
.. [Wichmann2001psychometric] F. A. Wichmann, N. J. Hill. The psychometric function: I. Fitting, sampling, and goodness
   of fit. Perception and Psychophysics 63, 2001.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import Interval
from gpytorch.priors import NormalPrior, Prior
from torch import Tensor

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import JUDGEMENT_NOISE, SHIFT_SPREAD
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.likelihoods.parameters import (
    PositiveParameter,
    RateParameter,
    ReadParameter,
    SetParameter,
    as_rate,
    register_rate,
)
from botorch_skewgp.observations import Binary, Observation
from botorch_skewgp.observations.checks import check_flags, check_parts
from botorch_skewgp.rows import Reading, Rows


class NoisyValueLikelihood(RowLikelihood):
    r"""Base class of likelihoods that read the latent function at one point, with noise.

    Args:
        noise: The noise variance, in squared units of the latent function.
        learn_noise: Whether the noise is a parameter to fit.
        noise_prior: A prior on the noise variance.
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
        noise: float | Tensor = JUDGEMENT_NOISE,
        learn_noise: bool = False,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
        slip: float | Tensor = 0.0,
        learn_slip: bool = False,
        slip_prior: Prior | None = None,
    ) -> None:
        super().__init__()
        self._register_positive("noise", noise, learn_noise, noise_prior, noise_constraint)
        self._register_slip(slip, learn_slip, slip_prior)

    def _register_shift(self, shift: Tensor, learn: bool, prior: Prior | None) -> None:
        """Register `shift`, the value of the latent function at the middle cut-point, of shape `1`.

        Raises:
            InputDataError: If an argument is of another class.
        """
        check_flags(learn_shift=learn)
        check_parts(shift_prior=(prior, Prior))
        self.register_parameter("shift", torch.nn.Parameter(shift.to(torch.float64).clone(), requires_grad=learn))
        if prior is None and learn:
            prior = NormalPrior(0.0, SHIFT_SPREAD)
        if prior is not None:
            self.register_prior("shift_prior", prior, ReadParameter("shift"), SetParameter("shift"))

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise variance."""
        return self.noise


class ProbitLikelihood(NoisyValueLikelihood):
    r"""`P(label = 1) = Phi((f(x) - shift) / sqrt(noise))` ([Benavoli2021unified]_, section 1.1, equation (2)).

    Labels determine only the ratio of the kernel's output scale to the noise, which is therefore fixed at 1 by default.
    `shift` is zero, as it can go into the mean, unless numbers fix the level of the function.

    With slips and guesses `P(label = 1) = slip / 2 + (1 - slip) (guess + (1 - guess) Phi)`, where `Phi` is the
    probability above: the psychometric function `g + (1 - g - l) Phi` with the lapse rate `l = slip / 2` and the guess
    rate `g = slip / 2 + (1 - slip) guess` ([Wichmann2001psychometric]_). With `guess=0.5`, as among two alternatives,
    the guess rate is one half for any slips.

    Args:
        guess: The probability of label 1 without any perception: 1 over the number of alternatives of a forced choice
            scored as right or wrong, 0 for yes/no questions.
        learn_shift: Whether `shift` is a parameter to fit, sensible beside numbers.
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
        learn_shift: bool = False,
        shift_prior: Prior | None = None,
        **kwargs: Any,
    ) -> None:
        rate = as_rate(guess, "guess")
        if rate.numel() != 1:
            raise InputDataError(f"guess must be one number; got {rate.tolist()}.")
        super().__init__(*args, **kwargs)
        self._register_shift(torch.zeros(1), learn_shift, shift_prior)
        if float(rate) > 0:
            register_rate(self, "guess", rate)

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

    def reading(
        self,
        kind: type[Observation],
        like: Tensor,
        scale: OutcomeScale = OutcomeScale(),  # noqa: B008
        num_points: int | None = None,
    ) -> Reading:
        """`f(x) + v` above the shift for outcome 1; else 0."""
        return Reading.at_point(self.shift.to(like), self.noise, self._slips(2, like))

    def answers(self, observation: Binary) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each point, and its label."""
        return observation.index.unsqueeze(-1), observation.labels.long()
