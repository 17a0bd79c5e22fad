r"""Comparisons of several points in one judgement: choices and rankings.

A ranking with ties is an ordered partition of its items into groups. The ordered partitions of `k` items are the faces
of the permutohedron ([Postnikov2009permutohedra]_), here the convex hull of all orders of the numbers
`0, w, ..., (k - 1) w`, with `w` the width of ties. Noisy utilities `u` give the ranking whose face has their nearest
point of that body in its interior: sort them, and pool neighbours whose means are too close, as in isotonic regression
([Blondel2020ranking]_). So each utility gives one ranking, and each ranking is a set of utilities that linear
inequalities describe:

- the mean of a group of `n` items exceeds the mean of the next one, of `n'` items, by more than `w (n + n') / 2`;
- within a group of `n` the means of any part and of the rest differ by no more than `w n / 2`.

For two items it is the model of duels: a difference beyond `w`, or a tie within it. Items that are all alone in their
group are more than `w` above the next. It differs from "tied with the next if that is within `w`" only where three or
more are about as close as that: those sets of utilities are not convex, and this model has their convex hull for items
that are all tied.

.. [Postnikov2009permutohedra] A. Postnikov. Permutohedra, associahedra, and beyond. 2009.
.. [Blondel2020ranking] Blondel, Teboul, Berthet, Djolonga. Fast differentiable sorting and ranking. ICML 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import ClassVar, NamedTuple, Self

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_flags, as_index, check_flags, check_length, positions
from botorch_skewgp.observations.observation import Countable, Outcomes

MAX_TIED = 6  # items in one tie, whose set of utilities has 31 pairs of walls


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
    def outcomes(self) -> Outcomes:
        """Any option may have been the best."""
        return Outcomes(self.options.new_zeros(len(self.options)), 1, (self.options >= 0).sum(-1).double())

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
    def outcomes(self) -> Outcomes:
        """None of the options, or any of them."""
        return Outcomes(self.none.long(), 2, torch.where(self.none, 1.0, (self.options >= 0).sum(-1)).double())

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


class Contrasts(NamedTuple):
    r"""The intervals that describe rankings: of weighted sums of the noisy utilities of a row's items.

    Args:
        place: A `p x c` integer tensor: places of items in their row.
        weight: A `p x c` tensor: their weights, 0 for places that fill up a row of this tensor.
        lower: A `p`-dim tensor: the lower ends of the intervals, in widths of ties.
        upper: A `p`-dim tensor: the upper ends.
        row: A `p`-dim integer tensor: the ranking that each interval is of.
    """

    place: Tensor
    weight: Tensor
    lower: Tensor
    upper: Tensor
    row: Tensor


@dataclass(frozen=True, eq=False)
class Ranking(Order):
    r"""Rankings: several items ordered in one judgement, in which each item's noise is drawn once.

    Items of equal rank are ties, judged equally good; the likelihood's width says how close that is, and items of
    different ranks are further apart. For items that were not compared with each other, as in "the best two of four" or
    "the best and the worst", give `ties_allowed=False`.

    Args:
        items: An `m x k` integer tensor of rows of `train_X`, two or more a row, best first; `-1` pads shorter rows.
        ranks: An `m x k` integer tensor of ranks, non-decreasing along each row. By default `0, ..., k - 1`.
        ties_allowed: Whether ties could be given in these rankings, by default if some were. If not, items of equal
            rank are not compared, and every item beats every item of the next rank by any difference.

    Raises:
        InputDataError: As in the base class, also if a row repeats an item, or has more than 6 items in a tie.

    Example:
        >>> Ranking([[2, 0, 1]])  # 2 before 0 before 1
        >>> Ranking([[2, 0, 1, 3]], ranks=[[0, 0, 1, 2]])  # 2 and 0 are about as good, then 1, then 3
        >>> Ranking([[2, 0, 1, 3]], ranks=[[0, 1, 1, 2]], ties_allowed=False)  # 2 was the best, and 3 the worst
    """

    items: Tensor
    ranks: Tensor = None  # type: ignore[assignment]  # set when built
    ties_allowed: bool = None  # type: ignore[assignment]  # set when built

    index_field: ClassVar[str] = "items"

    def _check(self) -> None:
        super()._check()
        ordered = self.items.sort(-1).values
        if twice := positions(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(-1)):
            raise InputDataError(f"items names a point twice in rows {twice}; name each point once a row.")
        self._set(ranks=self._checked_ranks())
        size = self._group_size
        if self.ties_allowed is None:
            self._set(ties_allowed=bool((size > 1).any()))
        check_flags(ties_allowed=self.ties_allowed)
        if self.ties_allowed and (many := positions((size > MAX_TIED).any(-1))):
            raise InputDataError(
                f"ranks ties more than {MAX_TIED} items in rows {many}. If items of equal rank were not compared, give "
                "ties_allowed=False; if items were sorted into a few classes, give these as Ordinal grades."
            )

    def _checked_ranks(self) -> Tensor:
        """The ranks, which must fit the items."""
        if self.ranks is None:
            return torch.arange(self.items.shape[-1], device=self.items.device).expand_as(self.items)
        ranks = as_index(self.ranks, "ranks", "m x k", ndim=2, padded=True, what="ranks")
        real = self.items >= 0
        if ranks.shape != real.shape:
            raise InputDataError(f"ranks must have the shape of items, {tuple(real.shape)}; got {tuple(ranks.shape)}.")
        if (real & (ranks < 0)).any():
            raise InputDataError("ranks must not be negative, except -1 for padding.")
        if ((ranks[:, 1:] < ranks[:, :-1]) & real[:, 1:]).any():
            raise InputDataError("ranks must not decrease along a row; list items best first.")
        return ranks

    @classmethod
    def unchecked(cls, items: Tensor, ranks: Tensor, judge: Tensor | None, ties_allowed: bool = False) -> Ranking:
        """A ranking in which items may be repeated, as in choices."""
        copy = object.__new__(cls)
        copy._set(items=items, ranks=ranks, ties_allowed=ties_allowed, judge=judge, count=None)
        return copy

    @property
    def _is_tied(self) -> Tensor:
        """Whether two items of a row have the same rank, `m x k x k`, also an item with itself."""
        real = self.items >= 0
        same = self.ranks.unsqueeze(-1) == self.ranks.unsqueeze(-2)
        return same & real.unsqueeze(-1) & real.unsqueeze(-2)

    @property
    def _group_size(self) -> Tensor:
        """The number of items of each item's rank, `m x k`; 0 for padding."""
        return self._is_tied.sum(-1)

    @property
    def duels(self) -> Tensor:
        """The comparisons between neighbouring ranks, of different items."""
        places, row = self.comparisons()
        return self._pairs(places, row)

    @property
    def ties(self) -> Tensor:
        """The pairs of equal rank, if these are ties."""
        if not self.ties_allowed:
            return super().ties
        row, *places = self._is_tied.triu(1).nonzero(as_tuple=True)
        return self._pairs(torch.stack(places, dim=-1), row)

    def _pairs(self, places: Tensor, row: Tensor) -> Tensor:
        """The different items at pairs of places, `p x 2`, of rows, `p`."""
        pairs = self.items[row.unsqueeze(-1), places]
        return pairs[pairs[:, 0] != pairs[:, 1]]

    @property
    def outcomes(self) -> Outcomes:
        """Any order may have been given."""
        return Outcomes(self.items.new_zeros(len(self.items)), 1, self.num_orders)

    @property
    def num_orders(self) -> Tensor:
        """The number of answers that could have been given for each row's items, `m`, floating point."""
        num_items = (self.items >= 0).sum(-1)
        if self.ties_allowed:
            numbers = num_ordered_partitions(self.items.shape[-1])
            return torch.tensor(numbers, dtype=torch.float64, device=self.items.device)[num_items]
        size = self._group_size.double()
        within = torch.where(size > 0, torch.lgamma(size + 1) / size.clamp(min=1), 0.0).sum(-1)
        return (torch.lgamma(num_items.double() + 1) - within).exp()

    def reversed(self) -> Ranking:
        """Every row from its last item to its first."""
        real = self.items >= 0
        position = torch.arange(self.items.shape[-1], device=self.items.device)
        back = torch.where(real, real.sum(-1, keepdim=True) - 1 - position, position)  # padding stays at the end
        ranks = torch.where(real, self.ranks, 0)
        ranks = ranks.amax(-1, keepdim=True) - ranks.gather(-1, back)
        return Ranking.unchecked(self.items.gather(-1, back), ranks, self.judge, self.ties_allowed)

    def comparisons(self) -> tuple[Tensor, Tensor]:
        r"""Comparisons of neighbouring ranks: places of items in a row, `p x 2`, winner first, and rows, `p`."""
        items = self.items
        ranks = self.ranks
        real = (items.unsqueeze(-1) >= 0) & (items.unsqueeze(-2) >= 0)
        # the next rank that occurs in the row, for every item
        beyond = torch.where(
            real & (ranks.unsqueeze(-2) > ranks.unsqueeze(-1)), ranks.unsqueeze(-2), torch.iinfo(ranks.dtype).max
        )
        following = beyond.amin(-1, keepdim=True)
        row, winner, loser = (real & (ranks.unsqueeze(-2) == following)).nonzero(as_tuple=True)
        return torch.stack([winner, loser], dim=-1), row

    def contrasts(self) -> Contrasts:
        """What the rankings say: comparisons of neighbouring ranks, or the faces of this module's first lines."""
        if not (self.ties_allowed and len(self.items)):
            places, row = self.comparisons()
            lower = torch.zeros(len(row), dtype=torch.float64, device=row.device)
            weight = torch.tensor([1.0, -1.0]).to(lower).expand(len(row), 2)
            return Contrasts(places, weight, lower, torch.full_like(lower, torch.inf), row)
        first_of_rank = torch.nn.functional.pad(self.ranks[:, 1:] > self.ranks[:, :-1], (1, 0))
        group = torch.where(self.items >= 0, first_of_rank.cumsum(-1), -1)
        patterns, which = group.unique(dim=0, return_inverse=True)
        parts = []
        for number, pattern in enumerate(patterns):
            intervals = _intervals_of_face(pattern)
            row = (which == number).nonzero().squeeze(-1)
            repeated = (values.repeat(len(row), *[1] * (values.ndim - 1)) for values in intervals)
            parts.append((*repeated, row.repeat_interleave(len(intervals[0]))))
        weight, lower, upper, row = (torch.cat(values) for values in zip(*parts, strict=True))
        # only the places that have a weight, filled up by the first of them
        has_weight = weight != 0
        place = has_weight.long().argsort(dim=-1, descending=True, stable=True)[:, : int(has_weight.sum(-1).max())]
        weight = weight.gather(-1, place)
        return Contrasts(torch.where(weight != 0, place, place[:, :1]), weight, lower, upper, row)


def _intervals_of_face(group: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sums that have bounds in a ranking of groups, by the number of each item's group, `k`, from 0, or -1: weights
    `c x k`, and lower and upper bounds in widths of ties, `c`.
    """
    members = [(group == number).nonzero().squeeze(-1).tolist() for number in range(int(group.max()) + 1)]
    weights = []
    bounds = []

    def add(part: list[int], rest: list[int], lower: float, upper: float) -> None:
        """The mean of a part less that of the rest."""
        weight = torch.zeros(len(group), dtype=torch.float64)
        weight[part] = 1 / len(part)
        weight[rest] = -1 / len(rest)
        weights.append(weight)
        bounds.append((lower, upper))

    for first, *others in members:
        half = 0.5 * (1 + len(others))
        for size in range(len(others)):  # of the other items in the part of the first
            for chosen in combinations(others, size):
                add([first, *chosen], [item for item in others if item not in chosen], -half, half)
    for better, worse in pairwise(members):
        add(better, worse, 0.5 * (len(better) + len(worse)), torch.inf)
    lower, upper = torch.tensor(bounds, dtype=torch.float64, device=group.device).unbind(-1)
    return torch.stack(weights).to(lower.device), lower, upper


def num_ordered_partitions(most: int) -> list[int]:
    """The numbers of rankings with ties of 0, 1, ... items (Fubini's numbers), by the size of the first group."""
    numbers = [1]
    for k in range(1, most + 1):
        numbers.append(sum(math.comb(k, size) * numbers[k - size] for size in range(1, k + 1)))
    return numbers
