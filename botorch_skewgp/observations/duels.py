r"""Comparisons of two points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from botorch_skewgp.observations.checks import check_pairs
from botorch_skewgp.observations.observation import Countable


@dataclass(frozen=True, eq=False)
class Preference(Countable):
    r"""Duels: one point was preferred to another. The same pair may occur often, also in both orders.

    Args:
        pairs: An `m x 2` integer tensor of rows of `train_X`, winner first.

    Raises:
        InputDataError: If `pairs` is not `m x 2` integers, holds a negative index, or compares a point with itself.

    Example:
        >>> Preference(torch.tensor([[0, 1], [2, 1]]))  # 0 beat 1, and 2 beat 1
    """

    pairs: Tensor

    index_field: ClassVar[str] = "pairs"
    points_per_observation: ClassVar[int] = 2
    turns_round: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", check_pairs(self.pairs, "pairs"))
        super().__post_init__()

    @property
    def duels(self) -> Tensor:
        """The pairs."""
        return self.pairs

    def reversed(self) -> Preference:
        """The lower point of each pair is the winner."""
        return self._with({"pairs": self.pairs.flip(-1)})


@dataclass(frozen=True, eq=False)
class Tie(Countable):
    r"""Duels that ended in a tie: the noisy difference was within a width that the likelihood holds.

    Args:
        pairs: An `m x 2` integer tensor of rows of `train_X`, in any order.

    Raises:
        InputDataError: As `Preference`.

    Example:
        >>> Tie([[0, 3]])
    """

    pairs: Tensor

    index_field: ClassVar[str] = "pairs"
    points_per_observation: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", check_pairs(self.pairs, "pairs"))
        super().__post_init__()

    @property
    def ties(self) -> Tensor:
        """The pairs."""
        return self.pairs

    def reversed(self) -> Tie:
        """The same ties; the difference of each pair has the other sign."""
        return self._with({"pairs": self.pairs.flip(-1)})
