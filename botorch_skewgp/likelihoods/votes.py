r"""The likelihood of votes on pages with two items: duels, and ties on several levels.

.. [Chiang2024arena] Chiang et al. Chatbot Arena: an open platform for evaluating LLMs by human preference. ICML 2024.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.likelihoods.defaults import GAP_PRIOR, LEVEL_GAP
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.parameters import PositiveParameter
from botorch_skewgp.likelihoods.preference import PreferenceLikelihood
from botorch_skewgp.observations import Choice, ChoiceOrNone, Observation, Preference, Ranking, Tie, Vote
from botorch_skewgp.observations.duels import BUTTONS, check_buttons
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.rows import Reading, Rows

# Cells of the difference between -width and width, and of the average between the two thresholds, for each of BUTTONS.
CELLS = [[[2, 3], [0, 3]], [[0, 1], [0, 3]], [[1, 2], [1, 2]], [[1, 2], [0, 1]], [[1, 2], [2, 3]]]


class VoteLikelihood(PreferenceLikelihood):
    r"""`PreferenceLikelihood` with votes, whose ties may be on three levels: both bad, tie, both good.

    The noisy difference `u_a - u_b` and the noisy average `(u_a + u_b) / 2` of two items have independent noise, of
    variances `2 noise` and `noise / 2`. A vote for an item is a difference beyond the width of ties; within it the vote
    is "both bad" for an average up to the threshold, "both good" beyond it plus `level_gap`, and "tie" between
    (leaderboards count "both bad" as a tie, [Chiang2024arena]_). Without the button "tie" there is one threshold.

    Args:
        buttons: The answers that the page offers, see `Vote`.
        threshold: The average up to which both items are bad, in units of the outcome; else `shift`, as in
            `PreferenceLikelihood`.
        level_gap: The distance between the two thresholds, in units of the latent function; fitted, with the prior
            LogNormal(0, 1), if the page has the buttons "tie", "both bad" and "both good".
        kwargs: Arguments of `PreferenceLikelihood` other than `ties_allowed`. The width of ties is fitted by default.

    Example:
        >>> model = SkewGP(train_X, Vote([[0, 1], [2, 1], [0, 3]], ["first", "both bad", "tie"]))
    """

    observation_types: ClassVar[tuple[Kind, ...]] = (Vote, Preference, Tie, Choice, ChoiceOrNone, Ranking)
    level_gap = PositiveParameter()

    def __init__(
        self,
        buttons: Iterable[str] = BUTTONS,
        threshold: float | None = None,
        level_gap: float | Tensor = LEVEL_GAP,
        **kwargs: Any,
    ) -> None:
        page = check_buttons(buttons)
        ties_allowed = len(page) > 2
        super().__init__(**{"learn_tie_width": ties_allowed} | kwargs, ties_allowed=ties_allowed, threshold=threshold)
        self.buttons = page
        learn = {"tie", "both bad", "both good"}.issubset(self.buttons)
        self._register_positive("level_gap", level_gap, learn, LogNormalPrior(*GAP_PRIOR) if learn else None)

    @property
    def kinds_of_outcomes(self) -> tuple[Kind, ...]:
        """The kinds of comparisons, and votes."""
        return (*super().kinds_of_outcomes, Vote)

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """The noisy difference and average of two items, or for two buttons the choice of one; outcomes are buttons."""
        if not issubclass(kind, Vote) or (num_points or 2) > 2:
            return super().reading(kind, like, scale, num_points)
        if len(self.buttons) == 2:
            return Reading.choice(2, self.noise, like, self._slips(2, like))
        return self._difference_and_average(like, scale)

    def _difference_and_average(self, like: Tensor, scale: OutcomeScale) -> Reading:
        width = self._of_judges("tie_width", like) * self.ties_allowed
        low = self._level(like, scale)
        high = low + self.level_gap.to(like) if "tie" in self.buttons else low
        far = torch.full_like(low, torch.inf)
        low = low if "both bad" in self.buttons else -far
        high = high if "both good" in self.buttons else far
        which = [BUTTONS.index(button) for button in self.buttons]
        return Reading(
            like.new_tensor([[1.0, -1.0], [0.5, 0.5]]),
            torch.stack([torch.cat([-width, width]), torch.cat([low, high])]),
            self.noise.to(like),
            torch.tensor(CELLS, device=like.device)[which],
            self._slips(len(which), like),
        )

    def _bounds(self, votes: Vote, like: Tensor, scale: OutcomeScale = UNIT) -> tuple[Reading, Tensor, Tensor]:
        """The difference and the average of a vote, and the bounds of both, `m x 2`, infinite where there is none."""
        outcomes = torch.tensor(CELLS, device=like.device)
        reading = replace(self._difference_and_average(like, scale), outcomes=outcomes, slips=None)
        lower, upper = (
            torch.stack([self._at_judges_width(bound[:, 0], votes.judge), bound[:, 1]], dim=-1)
            for bound in reading.bounds(torch.as_tensor(votes.answers, device=like.device))
        )
        return reading, lower, upper

    def answer_of_rows(self, observation: Observation, rows: Rows) -> Tensor:
        """A vote has a row for each of its bounds."""
        if not isinstance(observation, Vote):
            return super().answer_of_rows(observation, rows)
        _, lower, upper = self._bounds(observation, rows.noise)
        return _asked(lower, upper)[0]

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """The difference of each vote, and the average where the vote bounds it. Raises `InputDataError` for buttons
        that the page lacks, `UnsupportedError` for weights of votes with slips.
        """
        if not isinstance(observation, Vote):
            return super().rows(observation, like, scale)
        given = {BUTTONS[code] for code in torch.as_tensor(observation.answers).unique().tolist()}
        if not given.issubset(self.buttons):
            raise InputDataError(
                f"Answers {sorted(given - set(self.buttons))} are not among the likelihood's buttons {self.buttons}; "
                "give VoteLikelihood all buttons of the page."
            )
        reading, lower, upper = self._bounds(observation, like, scale)
        answer, which = _asked(lower, upper)
        zeros = like.new_zeros(len(answer))
        count = observation.answer_weights
        if count is not None and self._slips(1, like) is not None:
            raise UnsupportedError(
                "Votes that may be slips take whole numbers in count=; round each weight up with the probability of "
                "its fraction, or leave slips out."
            )
        rows = Rows(
            index=observation.pairs.to(like.device)[answer],
            coefficient=reading.weight[which],
            bias=zeros,
            lower=lower[answer, which],
            upper=upper[answer, which],
            noise=reading.variance[which],
        )
        judge, count = (None if x is None else x.to(answer.device)[answer] for x in (observation.judge, count))
        rows = rows.of_parameters(judge if self.tie_width.numel() > 1 else None)
        return self._with_slips(rows, judge, len(self.buttons), answer).weighted(count)


def _asked(lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """The votes and the places of those bounds, `m x 2`, that say something."""
    answer, which = ((lower > -torch.inf) | (upper < torch.inf)).nonzero(as_tuple=True)
    return answer, which
