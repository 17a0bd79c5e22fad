r"""Comparisons of several points in one judgement: choices and rankings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_flags, as_index, check_length, positions
from botorch_skewgp.observations.observation import Countable


@dataclass(frozen=True, eq=False)
class Order(Countable):
    """Base class of comparisons of two or more points in one judgement."""

    index_field: ClassVar[str] = "options"
    fewest: ClassVar[int] = 2  # points in a row
    points_per_observation: ClassVar[int] = 2
    takes_more_points: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False

    def _check(self) -> None:
        name = self.index_field
        index = as_index(getattr(self, name), name, "m x k", ndim=2, padded=True)
        real = index >= 0
        if short := positions(real.sum(-1) < self.fewest):
            points = "two points" if self.fewest == 2 else "one point"
            raise InputDataError(f"{name} must name at least {points} in every row; see rows {short}.")
        if early := positions((real[:, 1:] & ~real[:, :-1]).any(-1)):
            raise InputDataError(
                f"{name} must be padded with -1 at the end of a row only; see rows {early}. List the chosen item "
                "first, then the other options."
            )
        self._set(**{name: index})


@dataclass(frozen=True, eq=False)
class Choice(Order):
    r"""Best of several: the first item of each row was chosen among all items of the row.

    Args:
        options: An `m x k` integer tensor of rows of `train_X`, two or more a row, the chosen one first; `-1` pads
            shorter rows of a tensor. Repeated options of a question, as some designs have, have independent noise.

    Example:
        >>> Choice([[2, 0, 1], [3, 4, -1]])  # 2 was the best of three, 3 of two
    """

    options: Tensor

    @property
    def duels(self) -> Tensor:
        """The chosen item against every other of its row."""
        return self.as_ranking().duels

    def as_ranking(self) -> Ranking:
        """The same data as a ranking whose losers are not compared with each other."""
        ranks = torch.ones_like(self.options)
        ranks[:, :1] = 0
        return Ranking.unchecked(self.options, ranks, self.judge)

    def reversed(self) -> Ranking:
        """The first item is below all others, which are not compared with each other."""
        return self.as_ranking().reversed()


@dataclass(frozen=True, eq=False)
class ChoiceOrNone(Order):
    r"""Best of several, or none of them: questions with the answer "all of these are bad".

    That answer competes like an option of its own, whose utility is the likelihood's threshold and whose noise is that
    of an option. So the answers tell the level of the utility, not only differences.

    Args:
        options: An `m x k` integer tensor of rows of `train_X`, the chosen one first unless none was; `-1` pads shorter
            rows of a tensor. Rows of one option are accepted or refused.
        none: An `m`-dim tensor of booleans (or 0 and 1): whether none of the options was good enough.

    Example:
        >>> ChoiceOrNone([[2, 0, 1], [3, 4, 5]], none=[False, True])  # 2 was the best; 3, 4 and 5 were all refused
    """

    options: Tensor
    none: Tensor
    turned: bool = field(default=False, init=False, repr=False)  # whether low values are good

    fewest: ClassVar[int] = 1
    tells_level: ClassVar[bool] = True

    def _check(self) -> None:
        super()._check()
        none = as_flags(self.none, "none")
        check_length(none, len(self.options), "none", "rows")
        self._set(none=none)

    @property
    def duels(self) -> Tensor:
        """The chosen item against every other of its row."""
        chosen = self.options[~self.none]
        duels = torch.stack([chosen[:, :1].expand_as(chosen), chosen], dim=-1)[:, 1:].flatten(0, 1)
        duels = duels[(duels[:, 1] >= 0) & (duels[:, 0] != duels[:, 1])]
        return duels.flip(-1) if self.turned else duels

    def as_ranking(self) -> Ranking:
        """The same data as a ranking, with "none" as a last item of each row, of the first option's index."""
        items = torch.cat([self.options, self.options[:, :1]], dim=-1)
        first = torch.where(self.none, items.shape[-1] - 1, 0).unsqueeze(-1)
        return Ranking.unchecked(items, torch.ones_like(items).scatter(-1, first, 0), self.judge)

    def reversed(self) -> Self:
        """Low values are good."""
        return self._with({"turned": not self.turned})


@dataclass(frozen=True, eq=False)
class Ranking(Order):
    r"""Rankings: several items ordered in one judgement, in which each item's noise is drawn once.

    Args:
        items: An `m x k` integer tensor of rows of `train_X`, two or more a row, best first; `-1` pads shorter rows.
        ranks: An `m x k` integer tensor of ranks, non-decreasing along each row, for partial orders: items of equal
            rank are not compared; every item beats every item of the next rank. By default `0, ..., k - 1`.

    Raises:
        InputDataError: As in the base class, also if a row repeats an item.

    Example:
        >>> Ranking([[2, 0, 1]])  # 2 before 0 before 1
        >>> Ranking([[2, 0, 1, 3]], ranks=[[0, 0, 1, 1]])  # 2 and 0 each before 1 and 3
    """

    items: Tensor
    ranks: Tensor = None  # type: ignore[assignment]  # set when built

    index_field: ClassVar[str] = "items"

    def _check(self) -> None:
        super()._check()
        ordered = self.items.sort(-1).values
        if twice := positions(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(-1)):
            raise InputDataError(f"items names a point twice in rows {twice}; name each point once a row.")
        if self.ranks is None:
            self._set(ranks=torch.arange(self.items.shape[-1], device=self.items.device).expand_as(self.items))
            return
        ranks, real = as_index(self.ranks, "ranks", "m x k", ndim=2, padded=True, what="ranks"), self.items >= 0
        if ranks.shape != real.shape:
            raise InputDataError(f"ranks must have the shape of items, {tuple(real.shape)}; got {tuple(ranks.shape)}.")
        if (real & (ranks < 0)).any():
            raise InputDataError("ranks must not be negative, except -1 for padding.")
        if ((ranks[:, 1:] < ranks[:, :-1]) & real[:, 1:]).any():
            raise InputDataError("ranks must not decrease along a row; list items best first.")
        self._set(ranks=ranks)

    @classmethod
    def unchecked(cls, items: Tensor, ranks: Tensor, judge: Tensor | None) -> Ranking:
        """A ranking in which items may be repeated, as in choices."""
        copy = object.__new__(cls)
        copy._set(items=items, ranks=ranks, judge=judge, count=None)
        return copy

    @property
    def duels(self) -> Tensor:
        """The comparisons between neighbouring ranks, of different items."""
        places, row = self.comparisons()
        pairs = self.items[row.unsqueeze(-1), places]
        return pairs[pairs[:, 0] != pairs[:, 1]]

    @property
    def num_orders(self) -> Tensor:
        """The number of orders that each row's items could have been given, `m`, floating point."""
        real = self.items >= 0
        same = (self.ranks.unsqueeze(-1) == self.ranks.unsqueeze(-2)) & real.unsqueeze(-1) & real.unsqueeze(-2)
        size = same.sum(-1).double()
        within = torch.where(real, torch.lgamma(size + 1) / size.clamp(min=1), torch.zeros_like(size)).sum(-1)
        return (torch.lgamma(real.sum(-1).double() + 1) - within).exp()

    def reversed(self) -> Ranking:
        """Every row from its last item to its first."""
        real = self.items >= 0
        position = torch.arange(self.items.shape[-1], device=self.items.device)
        back = torch.where(real, real.sum(-1, keepdim=True) - 1 - position, position)  # padding stays at the end
        ranks = torch.where(real, self.ranks, 0)
        ranks = ranks.amax(-1, keepdim=True) - ranks.gather(-1, back)
        return Ranking.unchecked(self.items.gather(-1, back), ranks, self.judge)

    def comparisons(self) -> tuple[Tensor, Tensor]:
        r"""Comparisons of neighbouring ranks: places of items in a row, `p x 2`, winner first, and rows, `p`."""
        items, ranks = self.items, self.ranks
        real = (items.unsqueeze(-1) >= 0) & (items.unsqueeze(-2) >= 0)
        # the next rank that occurs in the row, for every item
        beyond = torch.where(
            real & (ranks.unsqueeze(-2) > ranks.unsqueeze(-1)), ranks.unsqueeze(-2), torch.iinfo(ranks.dtype).max
        )
        following = beyond.amin(-1, keepdim=True)
        row, winner, loser = (real & (ranks.unsqueeze(-2) == following)).nonzero(as_tuple=True)
        return torch.stack([winner, loser], dim=-1), row
