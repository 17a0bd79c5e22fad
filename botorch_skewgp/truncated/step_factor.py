r"""Walls of finite height: rows of answers that may be slips.

An answer is a slip, a lapse or a guess with a probability that does not depend on its rows. Its factor is then a step,
`outside + gain` where all of its rows are inside their intervals, and `outside` elsewhere: a mixture of interval
factors, if the answer is attentive, and a constant. It is not log-concave, and a site's precision can be negative.

Expectation propagation keeps the rows and this indicator, independent of each other: with `Z_i` the probability of row
`i`'s interval under its cavity, the answer is attentive with the odds `gain prod_i Z_i : outside`, which are exact for
an answer of one row, and the moments of a row are those of the mixture with these odds. The indicator's messages cancel
in the normaliser except for `log(outside + gain prod_i Z_i)`.

.. [Wichmann2001psychometric] Wichmann, Hill. The psychometric function: I. Perception and Psychophysics 63, 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_skewgp.truncated.row_factor import RowFactor, TiltedMoments
from botorch_skewgp.truncated.univariate import (
    interval_moments,
    log_interval_probability,
    sample_interval,
)


@dataclass(frozen=True, eq=False)
class Heights:
    """The heights of the factors of rows, one for each answer ([Wichmann2001psychometric]_)."""

    outside: Tensor  # `... x m`: the factor outside the intervals, the probability of the answer as a slip
    gain: Tensor  # `... x m`: the excess of the factor inside, the probability of an attentive answer
    # tensor of the same shape and dtype: the number of each row's answer, from 0; `None` if each row is an answer
    # of its own
    answer: Tensor | None = None

    @classmethod
    def cat(cls, parts: Sequence[Heights | None], sizes: Sequence[int], like: Tensor) -> Heights | None:
        """The heights of rows one after another; `None` if no part has any."""
        if all(part is None for part in parts):
            return None
        pairs = zip(parts, sizes, strict=True)
        every = [cls(like.new_zeros(m), like.new_ones(m)) if part is None else part for part, m in pairs]
        outside, gain = (torch.cat(values) for values in zip(*((h.outside, h.gain) for h in every), strict=True))
        if all(part.answer is None for part in every):
            return cls(outside, gain)
        answers, first = [], 0
        for part in every:
            answers.append(part.label + first)
            first += part.num_answers
        return cls(outside, gain, torch.cat(answers).to(like))

    def total(self, values: Tensor) -> Tensor:
        """The sums of values over the rows of each answer, at all of these rows; `... x m`."""
        if self.answer is None:
            return values
        label = self.label.expand(values.shape)
        sums = values.new_zeros(*values.shape[:-1], self.num_answers).scatter_add(-1, label, values)
        return sums.gather(-1, label)

    @cached_property
    def size(self) -> Tensor:
        """The number of rows of each answer, at all of its rows; `... x m`."""
        return self.total(torch.ones_like(self.outside))

    @property  # not cached: a first use without gradients would leave later ones without
    def log_gain(self) -> Tensor:
        """The log of `gain`."""
        return self.gain.log()

    @property
    def log_outside(self) -> Tensor:
        """The log of `outside`; minus infinity, without a derivative, where there are no slips."""
        possible = self.outside > 0
        return torch.where(possible, torch.where(possible, self.outside, 1.0).log(), -torch.inf)

    @property
    def jump(self) -> Tensor:
        """What the potential rises by where a row leaves its interval."""
        return torch.log(self.outside + self.gain) - self.log_outside

    @cached_property
    def label(self) -> Tensor:
        """The number of each row's answer, as integers."""
        if self.answer is None:
            return torch.arange(self.outside.shape[-1], device=self.outside.device)
        return self.answer.round().long()

    @cached_property
    def num_answers(self) -> int:
        """The number of answers."""
        return int(self.label.max()) + 1 if self.label.numel() else 0

    @cached_property
    def first_row(self) -> Tensor:
        """The first row of each answer, at all of its rows; `... x m`."""
        label, m = self.label, self.outside.shape[-1]
        place = torch.arange(m, device=label.device).expand(label.shape)
        first = torch.full((*label.shape[:-1], self.num_answers), m, device=label.device)
        return first.scatter_reduce(-1, label, place, "amin").gather(-1, label)


@dataclass(eq=False)
class StepFactor(RowFactor):
    """Steps of finite height, see this module's first lines. Log factors of an answer are shared among its rows."""

    heights: Heights

    def clamp(self, u: Tensor) -> Tensor:
        """Rows put inside their bounds where their answers cannot be slips."""
        return torch.where(self.heights.outside > 0, u, super().clamp(u))

    def log_inside(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The log probability that a row is inside its interval, for `h ~ N(mean, variance)`; `... x m`."""
        return super().log_probability(mean, variance)

    def attention(self, mean: Tensor, variance: Tensor) -> Tensor:
        """The probability that a row's answer is no slip, for `h ~ N(mean, variance)`; `... x m`."""
        return self._attention(self.log_inside(mean, variance))

    def _attention(self, log_inside: Tensor) -> Tensor:
        """The same from the log probabilities of the intervals."""
        return torch.sigmoid(self.heights.log_gain + self.heights.total(log_inside) - self.heights.log_outside)

    def _log_step(self, log_inside: Tensor) -> Tensor:
        """Each row's share of the log of its answer's step, from the log probabilities of the intervals."""
        log_attentive = self.heights.log_gain + self.heights.total(log_inside)
        return torch.logaddexp(log_attentive, self.heights.log_outside) / self.heights.size

    def log_probability(self, mean: Tensor, variance: Tensor) -> Tensor:
        return self._log_step(super().log_probability(mean, variance))

    def log_likelihood(self, h: Tensor) -> Tensor:
        return self._log_step(super().log_likelihood(h))

    def log_likelihood_and_slope(self, h: Tensor) -> tuple[Tensor, Tensor]:
        log_inside, slope = super().log_likelihood_and_slope(h)
        return self._log_step(log_inside), self._attention(log_inside) * slope

    def moments(self, mean: Tensor, variance: Tensor) -> TiltedMoments:
        scale = self.scale(variance)
        log_inside, shift, left = interval_moments(*self._standard(mean, scale))
        attention = self._attention(log_inside)
        slip = 1 - attention
        return TiltedMoments(scale, attention * shift, attention * left + slip + attention * slip * shift.square())

    def draw(self, centre: Tensor, scale: Tensor, uniform: Tensor) -> Tensor:
        lower, upper = self._standard(centre, scale)
        attention = self._attention(log_interval_probability(lower, upper))
        attentive, rest = self._toss(attention, uniform)
        inside = centre + scale * sample_interval(lower, upper, rest)
        slip = centre + scale * torch.special.ndtri(rest)
        return torch.where(attentive, RowFactor.clamp(self, inside), slip)

    def _toss(self, attention: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Whether rows' answers are attentive, by one uniform for all rows of each; and uniforms left to draw with."""
        coin = uniform
        if self.heights.answer is not None:
            coin = uniform.gather(-1, self.heights.first_row.expand(uniform.shape))
        attentive = coin < attention
        # given this, the coin is uniform in one of the two parts of (0, 1): the first row draws with its place there
        rest = torch.where(attentive, coin / attention, (coin - attention) / (1 - attention))
        if self.heights.answer is not None:
            row = torch.arange(uniform.shape[-1], device=uniform.device)
            rest = torch.where(self.heights.first_row == row, rest, uniform)
        eps = torch.finfo(rest.dtype).eps
        return attentive, rest.clamp(0.25 * eps, 1 - 0.5 * eps)

    def _moments_given(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, variance, skewness = super()._moments_given(h)
        p = self._attention(super().log_likelihood(h))
        first, second = p * mean, p * (variance + mean.square()) + (1 - p)
        third = p * (skewness * variance.pow(1.5) + 3 * variance * mean + mean.pow(3))
        spread = second - first.square()
        return first, spread, (third - 3 * first * second + 2 * first.pow(3)) / spread.pow(1.5)
