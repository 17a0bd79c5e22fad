r"""The probit likelihood of comparisons between points: duels, ties, graded duels, choices, rankings.

.. [Benavoli2021preferential] Benavoli, Azzimonti, Piga. GECCO 2021.
.. [Chu2005preference] W. Chu, Z. Ghahramani. Preference learning with Gaussian processes. ICML 2005.
.. [Thurstone1927law] L. L. Thurstone. A law of comparative judgment. Psychological Review 34, 1927.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.priors import LogNormalPrior
from torch import Tensor
from torch.distributions import Categorical

from botorch_skewgp.checks import MAX_CATEGORIES, as_count, as_tensor, check_flags
from botorch_skewgp.likelihoods.defaults import (
    GAP_PRIOR,
    STRENGTH_GAP,
    TIE_WIDTH,
    TIE_WIDTH_PRIOR,
    TIE_WIDTH_SPREAD,
    Context,
)
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.parameters import ROUNDING, JudgeParameter, PositiveParameter, ReadCommon
from botorch_skewgp.likelihoods.predictions import best_of_probabilities
from botorch_skewgp.likelihoods.probit import NoisyValueLikelihood
from botorch_skewgp.observations import Choice, ChoiceOrNone, GradedPreference, Observation, Preference, Ranking, Tie
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.parameters import register_named_prior
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import Reading, Rows, shared_noise_rows

# Cells of the difference of two items around -width and width, in the order of outcomes.
WIN = 0
LOSS = 1
TIE = 2
CELLS = [[2, 3], [0, 1], [1, 2]]


class PreferenceLikelihood(NoisyValueLikelihood):
    r"""`P(a beats b) = Phi((f(a) - f(b)) / sqrt(2 noise))`: each item's utility is read with its own noise.

    Comparisons determine only the ratio of the kernel's output scale to the noise. The noise is therefore fixed at 1 by
    default, as in the papers and in BoTorch's `PairwiseProbitLikelihood`, and the unit of the utility is the standard
    deviation of one item's noise. The difference of two items has noise variance `2 noise`
    ([Chu2005preference]_, equation (4); [Benavoli2021preferential]_, equation (6)). In a choice or ranking each item's
    noise is drawn once ([Thurstone1927law]_), so that its comparisons have correlated noise.

    Args:
        tie_width: The half-width of the interval of noisy differences that are ties, also between items of a ranking
            (`botorch_skewgp.observations.rankings`): one for all judges, or a tensor with one for each; by default 0.5,
            and learned if some answers are ties.
        learn_tie_width: Whether the width of ties is a parameter to fit, with the prior LogNormal(-1, 1). Judges'
            widths are a common one times a factor each, with a normal logarithm, whose spread of 0.7
            `fit_skew_gp` learns. Predictions for new judges are averages over theirs; of given widths they have the
            average.
        ties_allowed: Whether duels may end in a tie. Then a win is a noisy difference beyond the width, and the
            probabilities of a win, a loss and a tie add up to one; by default where the model has `Tie` observations.
            Rankings say so themselves, see `Ranking(ties_allowed=)`. Choices force an answer.
        num_strengths: The number of strengths of a win, see `Preference`; 1 for answers without a strength. The
            cut-points are symmetric around zero, with a tie (if allowed) in the middle, and are fitted; the gaps
            between them have the prior LogNormal(0, 1).
        threshold: The utility of the answer "none of these" of `ChoiceOrNone`, in units of the outcome; by default
            `shift`, which is 0 as the mean absorbs a shift.
        learn_threshold: Whether `shift` is a parameter to fit, with the prior N(0, 2^2); by default beside numbers,
            which fix the function's level.
        kwargs: The other arguments are those of `NoisyValueLikelihood`; the noise is that of one item.
    """

    observation_types: ClassVar[tuple[Kind, ...]] = (Preference, Tie, Choice, ChoiceOrNone, Ranking)
    predicts_choices = True
    tie_width = JudgeParameter()
    strength_gaps = PositiveParameter()

    def __init__(
        self,
        *args: Any,
        tie_width: float | Tensor | None = None,
        learn_tie_width: bool | None = None,
        ties_allowed: bool | None = None,
        num_strengths: int = 1,
        threshold: float | None = None,
        learn_threshold: bool | None = None,
        **kwargs: Any,
    ) -> None:
        check_flags(ties_allowed=ties_allowed is not None and ties_allowed)
        super().__init__(*args, **kwargs)
        self.ties_allowed = ties_allowed is True
        self._register_shift(threshold, learn_threshold)
        if ties_allowed is None:
            self._open = self._open | {"ties_allowed"}
        if learn_tie_width is tie_width is None:
            self._open = self._open | {"tie_width"}
        width = TIE_WIDTH if tie_width is None else tie_width
        learn = False if learn_tie_width is None else learn_tie_width
        self._register_by_judge("tie_width", width, learn, TIE_WIDTH_SPREAD, LogNormalPrior(*TIE_WIDTH_PRIOR))
        self.num_strengths = as_count(num_strengths, "num_strengths", least=1, most=MAX_CATEGORIES)
        if self.num_strengths > 1:
            prior = LogNormalPrior(*GAP_PRIOR)
            shape = (self.num_strengths - 1,)
            self._register_positive("strength_gaps", STRENGTH_GAP, True, prior, Positive(), shape)

    def set_defaults_beside(self, context: Context) -> None:
        """Also of ties: where duels may end in one they are allowed, and the width of ties is a parameter to fit."""
        super().set_defaults_beside(context)
        of_duels = any(issubclass(kind, Tie) for kind in context.kinds)
        of_rankings = any(isinstance(seen, Ranking) and seen.ties_allowed for seen in context.observations)
        if not (of_duels or of_rankings):
            return
        if of_duels and "ties_allowed" in self._open:
            self.ties_allowed = True
            self._open = self._open - {"ties_allowed"}
        if "tie_width" in self._open and math.isclose(float(self.tie_width), TIE_WIDTH, rel_tol=ROUNDING):
            self._learn_own("raw_tie_width")
            register_named_prior(self, "tie_width", LogNormalPrior(*TIE_WIDTH_PRIOR), ReadCommon)
        self._open = self._open - {"tie_width"}

    @property
    def parameters_by_judge(self) -> list[str]:
        """Slips and widths of ties, as far as they have a value for each judge."""
        return super().parameters_by_judge + (["tie_width"] if self.tie_width.numel() > 1 else [])

    @property
    def kinds_of_outcomes(self) -> tuple[Kind, ...]:
        """A duel, with a tie as one of its outcomes, and a graded duel if there are strengths."""
        return (Preference, GradedPreference) if self.num_strengths > 1 else (Preference,)

    @property
    def strength_cutpoints(self) -> Tensor:
        """Cut-points of a winner's advantage, `num_strengths`, increasing; the first is zero, or the width of ties."""
        width = self._of_judges("tie_width", self.noise)
        least = width if self.ties_allowed else torch.zeros_like(width)
        return least if self.num_strengths == 1 else torch.cat([least, least + self.strength_gaps.cumsum(-1)])

    def none_utility(self, like: Tensor, scale: OutcomeScale = UNIT) -> Tensor:
        """The latent function at the utility of the answer "none of these", of shape `1`."""
        return self._level(like, scale)

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        r"""The noisy difference of two items; for choices the differences of all pairs of items.

        Outcome 1 of a duel is that the first item wins, 0 that the second does. If ties are allowed, outcomes 0, 1 and
        2 are a win of the first, a loss, and a tie. Outcomes of graded duels are in the order of the difference, from
        "the second is much better" to "the first is"; without strengths they raise `InputDataError`. Outcome `i` of a
        choice is that item `i` is best.
        """
        if issubclass(kind, Choice | Ranking) or (num_points or 2) > 2:
            return Reading.choice(num_points or 2, self.noise, like, self._slips(num_points or 2, like))
        weight = like.new_tensor([[1.0, -1.0]])
        if issubclass(kind, GradedPreference):
            self._check_strengths(2)
            above = self.strength_cutpoints.to(like)
            below = -(above if self.ties_allowed else above[1:]).flip(-1)
            cutpoints = torch.cat([below, above]).unsqueeze(0)
            return Reading(weight, cutpoints, self.noise.to(like), slips=self._slips(cutpoints.shape[-1] + 1, like))
        if not self.ties_allowed and not issubclass(kind, Tie):
            return Reading(weight, like.new_zeros(1, 1), self.noise.to(like), slips=self._slips(2, like))
        width = self._of_judges("tie_width", like)
        cells = torch.tensor(CELLS, device=like.device).unsqueeze(-2)
        return Reading(
            weight, torch.cat([-width, width]).unsqueeze(0), self.noise.to(like), cells, self._slips(3, like)
        )

    def answers(self, observation: Preference | Tie) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Each pair, with a win of the first or a tie as the outcome."""
        win = WIN if self.ties_allowed else 1
        outcome = TIE if isinstance(observation, Tie) else win
        return observation.pairs, observation.pairs.new_full(observation.pairs.shape[:1], outcome)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """One row per comparison; those of one choice or ranking share each item's noise."""
        if isinstance(observation, Choice | ChoiceOrNone | Ranking):
            return self._rows_of_orders(observation, like, scale)
        if isinstance(observation, Preference) and observation.strength is not None:
            self._check_strengths(observation.num_strengths or 2)
            reading = self.reading(GradedPreference, like, scale)
            rows = reading.rows(observation.pairs, reading.num_outcomes - self.num_strengths + observation.strength)
            rows = self._at_judges_widths(rows, observation).weighted(observation.answer_weights)
            return self._with_slips(rows, observation.judge, reading.num_outcomes)
        return self._at_judges_widths(super().rows(observation, like, scale), observation)

    def answer_of_rows(self, observation: Observation, rows: Rows) -> Tensor:
        """One for each row, but for the rows of one choice or ranking."""
        if not isinstance(observation, Choice | ChoiceOrNone | Ranking):
            return super().answer_of_rows(observation, rows)
        ranking = observation if isinstance(observation, Ranking) else observation.as_ranking()
        return ranking.contrasts()[-1].to(rows.noise.device)

    def _rows_of_orders(self, observation: Choice | ChoiceOrNone | Ranking, like: Tensor, scale: OutcomeScale) -> Rows:
        """The rows of an order's contrasts; "none" has no item but a known utility."""
        ranking = observation if isinstance(observation, Ranking) else observation.as_ranking()
        place, weight, lower, upper, event = ranking.contrasts()
        items = ranking.items[event.unsqueeze(-1), place]
        rows = shared_noise_rows(place, event, self.noise, like, items, weight=weight)
        judge = None if observation.judge is None else observation.judge[event]
        num_outcomes = ranking.num_orders
        if isinstance(observation, ChoiceOrNone):
            num_outcomes = (ranking.items >= 0).sum(-1)
            outside = (place == ranking.items.shape[-1] - 1).to(like.device)
            sign = -1.0 if observation.turned else 1.0
            asked = outside.to(like)
            coefficient = sign * rows.coefficient.masked_fill(outside, 0.0)
            level = sign * self._level(like, scale) * (asked[:, 1] - asked[:, 0])
            rows = replace(rows, coefficient=coefficient, lower=level)
        elif ranking.ties_allowed:
            rows = self._beyond_ties(rows, lower, upper, judge)
        return self._with_slips(rows, judge, num_outcomes[event], event)

    def _beyond_ties(self, rows: Rows, lower: Tensor, upper: Tensor, judge: Tensor | None) -> Rows:
        """Rows in intervals given in widths of ties, those of their judges."""
        width = self._of_judges("tie_width", rows.bias, judge)
        ends = (bound.to(width) for bound in (lower, upper))
        low, high = (torch.where(end.isfinite(), end.nan_to_num(posinf=0.0) * width, end) for end in ends)
        rows = rows.of_parameters(judge if self.tie_width.numel() > 1 else None)
        return replace(rows, lower=low, upper=high)

    def _at_judges_widths(self, rows: Rows, observation: Observation) -> Rows:
        """Rows of differences, one for each answer, between the cut-points of their judges."""
        if not (self.ties_allowed or isinstance(observation, Tie)):
            return rows
        lower, upper = (self._at_judges_width(bound, observation.judge) for bound in (rows.lower, rows.upper))
        rows = rows.of_parameters(observation.judge if self.tie_width.numel() > 1 else None)
        return replace(rows, lower=lower, upper=upper)

    def _at_judges_width(self, cut: Tensor, judge: Tensor | None) -> Tensor:
        """Cut-points of noisy differences at their judges' widths of ties; gaps beyond these are shared."""
        if judge is None or self.tie_width.numel() == 1:
            return cut
        change = self._of_judges("tie_width", cut, judge) - self._of_judges("tie_width", cut)
        return cut + cut.sign() * change

    def _check_strengths(self, num_strengths: int) -> None:
        if num_strengths > self.num_strengths:
            raise InputDataError(
                f"The answers have {num_strengths} strengths, the likelihood {self.num_strengths}; give "
                f"PreferenceLikelihood(num_strengths={num_strengths})."
            )

    def marginal(
        self,
        function_dist: MultivariateNormal | SkewGPPosterior,
        *args: Any,
        scale: OutcomeScale = UNIT,
        available: Tensor | None = None,
        none: bool = False,
        **kwargs: Any,
    ) -> Any:
        r"""The distribution of a new duel of two points, or of a choice among more; see `SkewGP.predictive`.

        Probabilities of choices among three or more are averages over a Sobol sequence, within .002 for up to six.
        Raises `InputDataError` if fewer than two answers are `available` somewhere, or that tensor does not fit.
        """
        if available is None and not none:
            return super().marginal(function_dist, *args, scale=scale, **kwargs)
        if not isinstance(function_dist, SkewGPPosterior):
            function_dist = SkewGPPosterior.from_gaussian(function_dist)
        shape = function_dist.mean.shape[:-1]
        if available is None:
            available = torch.ones(shape[-1:], dtype=torch.bool)
        available = as_tensor(available, "available").to(function_dist.device)
        fits = available.ndim > 0 and available.shape[-1] == shape[-1] and available.ndim <= len(shape)
        if available.dtype != torch.bool or not fits:
            raise InputDataError(
                f"available must be a boolean tensor of shape {tuple(shape)}; got {available.dtype} of shape "
                f"{tuple(available.shape)}."
            )
        level = self.none_utility(function_dist.mean, scale) if none else None
        if none:
            available = torch.nn.functional.pad(available, (0, 1), value=True)
        if bool((available.sum(-1) < 2).any()):
            raise InputDataError("available leaves fewer than two options somewhere; a choice needs two.")
        probabilities = best_of_probabilities(function_dist, self.noise.to(function_dist.mean), available, level)
        if (slips := self._slips(1, probabilities)) is not None:
            probabilities = (1 - slips) * probabilities + slips * available / available.sum(-1, keepdim=True)
        return Categorical(probs=probabilities)
