r"""Comparisons of two points."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from torch import Tensor

from botorch_skewgp.checks import MAX_CATEGORIES, as_codes, as_count, as_values, check_length, check_pairs
from botorch_skewgp.observations.observation import Countable, Outcomes

FEW_ANSWERS = 3  # below, all may have a strength above 0 by chance
BUTTONS = ("first", "second", "tie", "both bad", "both good")
FIRST, SECOND, TIE, BOTH_BAD, BOTH_GOOD = range(5)
REVERSED = [SECOND, FIRST, TIE, BOTH_GOOD, BOTH_BAD]  # the buttons of the same meanings under minimisation


@dataclass(frozen=True, eq=False)
class Duel(Countable):
    """Base class of comparisons of two points: `pairs` is an `m x 2` integer tensor of rows of `train_X`."""

    pairs: Tensor

    index_field: ClassVar[str] = "pairs"
    points_per_observation: ClassVar[int] = 2

    def _check(self) -> None:
        self._set(pairs=check_pairs(self.pairs, "pairs"))

    def reversed(self) -> Self:
        """The lower point of each pair is the winner; ties stay ties."""
        return self._with({"pairs": self.pairs.flip(-1)})


@dataclass(frozen=True, eq=False)
class Preference(Duel):
    r"""Duels: one point was preferred to another. A pair may occur repeatedly, also in both orders.

    `strength` grades the difference in ordered steps such as "a little" and "much": the noisy difference fell between
    two neighbouring cut-points, which the likelihood learns. Duels with and without a strength are two objects.

    Args:
        pairs: An `m x 2` integer tensor of rows of `train_X`, winner first.
        strength: An `m`-dim tensor of integers `0, ..., num_strengths - 1`, the smallest difference first; `None` for
            answers without a strength.
        num_strengths: The number of steps, from 2 to 10,000; by default the largest strength plus one. Without it,
            answers that are all above strength 0 cause an `InputDataWarning`, as they may have been counted from 1.

    Raises:
        InputDataError: As in the base class, also if a point is compared with itself.

    Example:
        >>> Preference(torch.tensor([[0, 1], [2, 1]]))  # 0 beat 1, and 2 beat 1
        >>> Preference([[0, 1], [2, 1]], strength=[0, 1])  # 0 is a little better than 1, and 2 is much better
    """

    strength: Tensor | None = None
    num_strengths: int | None = None

    def _check(self) -> None:
        super()._check()
        if self.strength is None:
            if self.num_strengths is not None:
                raise InputDataError("num_strengths counts the steps of strength, which is missing; give both.")
            return
        strength = as_values(self.strength, "strength")
        check_length(strength, len(self.pairs), "strength", "pairs")
        if self.num_strengths is None:
            steps = int(strength.clamp(1, MAX_CATEGORIES - 1).max()) + 1 if len(strength) else 2
        else:
            steps = as_count(self.num_strengths, "num_strengths", most=MAX_CATEGORIES)
        strength = as_codes(strength, "strength", steps, ", the steps by which the winner is better")
        if self.num_strengths is None and len(strength) >= FEW_ANSWERS and bool((strength > 0).all()):
            warnings.warn(
                f"strength counts from 0, the smallest difference, and every answer is {int(strength.min())} or more: "
                "subtract 1 if they count from 1. If no difference was small, give num_strengths.",
                InputDataWarning,
                stacklevel=5,
            )
        self._set(strength=strength, num_strengths=steps)

    @property
    def outcomes(self) -> Outcomes:
        """The strengths of duels that either item may have won."""
        label = self.pairs.new_zeros(len(self.pairs)) if self.strength is None else self.strength
        return Outcomes(label, self.num_strengths or 1, 2.0)

    @property
    def duels(self) -> Tensor:
        """The pairs."""
        return self.pairs


@dataclass(frozen=True, eq=False)
class GradedPreference(Preference):
    r"""Duels that always have a strength: the kind of such questions for acquisition functions.

    As data the same as a `Preference` with a strength, of which it takes the arguments; the strength is required.

    Example:
        >>> GradedPreference([[0, 1]], strength=[1], num_strengths=2)  # 0 is much better than 1
    """

    def _check(self) -> None:
        if self.strength is None:
            raise InputDataError("GradedPreference needs a strength for each pair; without one give a Preference.")
        super()._check()


@dataclass(frozen=True, eq=False)
class Tie(Duel):
    r"""Duels that ended in a tie: the noisy difference was within the likelihood's width of ties.

    Args:
        pairs: An `m x 2` integer tensor of rows of `train_X`, in any order.

    Example:
        >>> Tie([[0, 3]])
    """

    @property
    def outcomes(self) -> Outcomes:
        """A class of its own, beside wins."""
        return Outcomes(self.pairs.new_full(self.pairs.shape[:1], -1), 2)

    @property
    def ties(self) -> Tensor:
        """The pairs."""
        return self.pairs


@dataclass(frozen=True, eq=False)
class Vote(Duel):
    r"""A vote on a page with two items and some buttons: one is better, or neither.

    A vote for an item is a noisy difference beyond the width of ties. Within that width neither is better, and
    if the page has these buttons the vote tells the level: both are bad where the noisy average of the two is below
    a threshold, both are good where it is above another. The probabilities of all answers add up to one.

    Args:
        pairs: An `m x 2` integer tensor of rows of `train_X`: the items shown, first and second.
        answers: For each pair one of `"first"`, `"second"`, `"tie"`, `"both bad"` and `"both good"`, or its number in
            this order.
        buttons: The answers that the page offers; by default `"first"`, `"second"`, `"tie"` and those given. Pages with
            one of `"both bad"` and `"both good"` must have the other or `"tie"`.

    Example:
        >>> Vote([[0, 1], [2, 1], [0, 3]], ["first", "both bad", "tie"])
    """

    answers: Tensor | Sequence[str]
    buttons: tuple[str, ...] = None  # type: ignore[assignment]  # set when built

    tells_level: ClassVar[bool] = True

    def _check(self) -> None:
        super()._check()
        codes = _as_answers(self.answers)
        check_length(codes, len(self.pairs), "answers", "pairs")
        given = {BUTTONS[code] for code in codes.unique().tolist()}
        buttons = check_buttons({*BUTTONS[:3], *given} if self.buttons is None else self.buttons)
        if not given.issubset(buttons):
            raise InputDataError(f"answers must be among the buttons {buttons}; got {sorted(given - set(buttons))}.")
        self._set(answers=codes, buttons=buttons)

    @property
    def outcomes(self) -> Outcomes:
        """A win of either item, or another button."""
        wins = self._codes < TIE
        return Outcomes(torch.where(wins, 0, self._codes), len(self.buttons) - 1, 1.0 + wins.double())

    @property
    def duels(self) -> Tensor:
        """The pairs of votes for one of the two items, `p x 2` integers with the winner first; pairs of other votes are
        `ties`, also those of two bad or two good items.
        """
        winner_first = torch.where((self._codes == SECOND).unsqueeze(-1), self.pairs.flip(-1), self.pairs)
        return winner_first[self._codes < TIE]

    @property
    def ties(self) -> Tensor:
        """Pairs without a winner."""
        return self.pairs[self._codes >= TIE]

    @property
    def _codes(self) -> Tensor:
        assert isinstance(self.answers, Tensor)
        return self.answers

    def reversed(self) -> Self:
        """The other item wins, and bad becomes good."""
        answers = torch.tensor(REVERSED, device=self._codes.device)[self._codes]
        buttons = check_buttons([BUTTONS[REVERSED[BUTTONS.index(button)]] for button in self.buttons])
        return self._with({"answers": answers, "buttons": buttons})


def check_buttons(buttons: Any) -> tuple[str, ...]:
    """The buttons of a page in the order of `BUTTONS`. Raises `InputDataError`."""
    named = list(buttons) if isinstance(buttons, Iterable) and not isinstance(buttons, str) else [buttons]
    unknown = [button for button in named if button not in BUTTONS]
    if unknown:
        raise InputDataError(f"buttons must be some of {', '.join(map(repr, BUTTONS))}; got {unknown}.")
    given = set(named)
    if not given.issuperset(BUTTONS[:2]):
        raise InputDataError("buttons must hold 'first' and 'second', the votes for one of the two items.")
    if len(given.intersection(BUTTONS[3:])) == 1 and "tie" not in given:
        raise InputDataError(
            "buttons leave no answer where neither item is better and both are on the other side of the threshold; add "
            "'tie', or both of 'both bad' and 'both good'."
        )
    return tuple(button for button in BUTTONS if button in given)


def _as_answers(answers: Any) -> Tensor:
    """The numbers of answers; raises `InputDataError` for anything else."""
    names = ", ".join(map(repr, BUTTONS))
    if isinstance(answers, str) or not isinstance(answers, Iterable):
        raise InputDataError(f"answers must be a list of {names}, also for a single pair; got {answers!r}.")
    if not isinstance(answers, Tensor):
        answers = list(answers)
        if any(isinstance(answer, str) for answer in answers):
            unknown = [answer for answer in answers if answer not in BUTTONS]
            if unknown:
                raise InputDataError(f"answers must be a list of {names}; got {unknown[:5]}.")
            answers = [BUTTONS.index(answer) for answer in answers]
    return as_codes(answers, "answers", len(BUTTONS), f", the numbers of {names}")
