"""Rankings, and duels with ties, in a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.frames.answers import (
    Answers,
    cells_in,
    check_attributes,
    read_points,
    rows_beside,
    rows_of_situations,
)
from botorch_skewgp.frames.columns import (
    columns_of_one_length,
    distinct_names,
    numbered,
    numbered_if_any,
    numbers,
    sorted_names,
)
from botorch_skewgp.observations import Observation, Preference, Ranking, Tie

if TYPE_CHECKING:
    from pandas import DataFrame


class _Ranks(NamedTuple):
    """The ranks in a frame.

    Args:
        rank: Numbers, 1 for the best.
        item: What is ranked: names, or rows of a frame whose attributes are the points.
        rows: The row of each rank.
        event: The entries of each ranking, by person and ranking.
    """

    rank: list[float]
    item: list[Any]
    rows: list[int]
    event: Mapping[tuple[Any, Any], list[int]]


def read_rankings(
    frame: DataFrame | Mapping[str, Sequence[Any]],
    rank: str | None = None,
    item: str | None = None,
    ranking: str | None = None,
    person: str | None = None,
    attributes: Sequence[str] = (),
    items: Sequence[str] | None = None,
) -> Answers:
    r"""Read rankings, or duels with ties: a row for each ranked item, or, with `items`, a row for each ranking.

    Rank 1 is the best, and equal ranks in one ranking are ties. Items without a rank were not in a ranking, so that
    blocks may be incomplete. Where every ranking is of two items they are read as duels, some of them ties.

    Example:
        >>> wide = {"taster": ["ann", "bob"], "merlot": [1, 2], "syrah": [2, None], "pinot": [2, 1]}
        >>> answers = read_rankings(wide, items=["merlot", "syrah", "pinot"], person="taster")
        >>> model = item_model(len(answers.items), answers.observations)
        >>> long = {"taste": [1, 1, 2, 2], "sweet": [0.1, 0.5, 0.5, 0.9], "place": [1, 2, 1, 1]}
        >>> duels = read_rankings(long, "place", ranking="taste", attributes=["sweet"])  # the second is a tie
        >>> model = fit_panel(duels.train_X, duels.observations)

    Args:
        frame: A data frame, or a dictionary of columns.
        rank: The name of the column of ranks; not used for wide tables.
        item: The name of the column of items; `None` if these are what their attributes are.
        ranking: The name of the column of rankings, whose numbers may repeat between people; `None` if everybody made
            one. Not used for wide tables, whose rows are rankings.
        person: The name of the column of people; `None` if it is not known who ranked.
        attributes: The names of columns that become inputs, see `read_choices`; the item itself if there are none.
        items: The columns of a wide table that hold the ranks of items, whose names they are.

    Returns:
        Answers, whose `items` are the rows of `train_X` if there are no attributes.

    Raises:
        InputDataError: If a column is missing, a cell is of a wrong type, a ranking names an item twice or has more
            than six in a tie, or there is neither a column of ranks nor a list of items.
    """
    if items is not None:
        ranks, names = _of_wide(frame, items, person)
    elif rank is None or (ranking is None and person is None):
        raise InputDataError("Name the columns of ranks, and of rankings or people; or give items for a wide table.")
    else:
        ranks, names = _of_long(frame, rank, item, ranking, person), None
    levels: dict[str, tuple[Any, ...]] = {}
    if items is None and attributes:
        check_attributes(attributes)
        X, index, levels = read_points(
            frame, attributes, cells_in(frame, attributes, ranks.rows, rank or ""), ranks.rows
        )
    elif items is None and item is None:
        raise InputDataError("Name the column of items, or attributes of what was ranked.")
    else:
        attributes = ["item" if item is None else item]
        index, found = numbered(ranks.item, attributes[0])
        names = found if names is None else names
        index = torch.tensor([names.index(value) for value in ranks.item], dtype=torch.long)
        X = torch.arange(len(names), dtype=torch.float64).unsqueeze(-1)
        levels[attributes[0]] = names
    events = {key: entries for key, entries in ranks.event.items() if len(entries) > 1}
    judge, people = numbered_if_any([by for by, _ in events], person)
    observations = _observations(ranks, index, list(events.values()), judge)
    told = (ranks.rows[i] for entries in events.values() for i in entries)
    num_rows = len(columns_of_one_length(frame, [rank or items[0]], [rank or items[0]])[0])  # type: ignore[index]
    unused = rows_beside(num_rows, told)
    return Answers(X, observations, tuple(attributes), levels, people, items=names, unused=unused)


def _of_long(frame: Any, rank: str, item: str | None, ranking: str | None, person: str | None) -> _Ranks:
    """A frame with a row for each ranked item."""
    places, situations, people, items = columns_of_one_length(frame, [rank, ranking, person, item], [rank])
    rows = [i for i, value in enumerate(places) if value is not None]
    event = rows_of_situations([people[i] for i in rows], [situations[i] for i in rows])
    ranked = rows if item is None else [items[i] for i in rows]
    for entries in event.values():
        twice = [i for i in entries if [ranked[j] for j in entries].count(ranked[i]) > 1]
        if twice:
            raise InputDataError(
                f"A ranking names {ranked[twice[0]]!r} twice, in rows {[rows[i] for i in twice]}; give its column in "
                "ranking= if people made several."
            )
    return _Ranks(numbers([places[i] for i in rows], rank, rows), ranked, rows, event)


def _of_wide(frame: Any, items: Sequence[str], person: str | None) -> tuple[_Ranks, tuple[Any, ...]]:
    """A frame with a row for each ranking, and the names of items."""
    names = tuple(distinct_names(items, "items"))
    *columns, people = columns_of_one_length(frame, [*names, person], names)
    ranks = _Ranks([], [], [], {})
    for row, by in enumerate(people):
        entries = []
        for name, cells in zip(names, columns, strict=True):
            if cells[row] is not None:
                entries.append(len(ranks.rows))
                ranks.rank.extend(numbers([cells[row]], name, [row]))
                ranks.item.append(name)
                ranks.rows.append(row)
        ranks.event[by, row] = entries  # type: ignore[index]
    return ranks, names


def _observations(
    ranks: _Ranks, index: Tensor, events: Sequence[Sequence[int]], judge: Tensor | None
) -> tuple[Observation, ...]:
    """Rankings as observations; duels where all are of two items."""
    ordered = [sorted(entries, key=lambda i: ranks.rank[i]) for entries in events]
    size = max(map(len, ordered), default=2)
    options = torch.full((len(ordered), size), -1)
    places = torch.full((len(ordered), size), -1)
    for row, entries in enumerate(ordered):
        options[row, : len(entries)] = index[entries]
        distinct = sorted_names({ranks.rank[i] for i in entries})
        places[row, : len(entries)] = torch.tensor([distinct.index(ranks.rank[i]) for i in entries])
    if size > 2:
        return (Ranking(options, places, judge=judge),)
    tied = places[:, 0] == places[:, 1]
    of_won, of_tied = (None if judge is None else judge[which] for which in (~tied, tied))
    won = Preference(options[~tied], judge=of_won)
    return (won, Tie(options[tied], judge=of_tied)) if bool(tied.any()) else (won,)
