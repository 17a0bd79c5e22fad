"""Tables drawn: the tastes of judges, and leaderboards of items with intervals of their ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes

from botorch_skewgp.checking import JudgeSummary
from botorch_skewgp.checks import as_count, as_names
from botorch_skewgp.plots.marginals import input_names
from botorch_skewgp.plots.style import (
    BLACK,
    BLUE,
    COLORS,
    SMALL,
    VERMILLION,
    array,
    finish,
    legend_above,
    new_axes,
    new_panels,
)

if TYPE_CHECKING:
    from pandas import DataFrame

NEEDED = ("mean", "lower", "upper", "rank_low", "rank_high", "p_best", "tier")
ROW = 0.24  # height of an item, in inches
MAX_ITEMS = 60
MAX_NAMES = 40  # of judges, beyond which a picture does not grow


def plot_tastes(
    summary: JudgeSummary,
    names: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | Iterable[Axes] | None = None,
) -> Iterable[Axes]:
    r"""Plot the tastes of all judges with their intervals, a panel for each effect; line and band are shared tastes.

    More than 40 judges stand in the order of their tastes, without names, on a picture of one size.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs, judge=[0, 1, 0, 1]))
        >>> axes = plot_tastes(judge_summary(model), names=["ann", "bob"], inputs=["sweet", "strong"])

    Args:
        summary: The table that `judge_summary(model)` returns.
        names: The judges' names; their numbers by default.
        inputs: The inputs' names.
        ax: The axes to draw on, one for each of `summary.effects`; new ones if `None`.

    Raises:
        InputDataError: If `summary` is not a table of judges, or names or axes are too few or too many.
    """
    if not isinstance(summary, JudgeSummary):
        raise InputDataError(f"summary must be what judge_summary(model) returns; got {type(summary).__name__}.")
    judges = [str(judge) for judge in summary.judges]
    names = judges if names is None else as_names(names, "names", len(judges))
    inputs = input_names(summary.num_inputs, inputs)
    height = 0.8 + 0.22 * min(len(names), MAX_NAMES)
    panels = new_panels(ax, len(summary.effects), (2.6, height), sharey=len(names) <= MAX_NAMES)
    place = torch.arange(len(names))
    for i, panel in enumerate(panels):
        mean, low, high = (array(values[:, i + 1]) for values in (summary.mean, summary.lower, summary.upper))
        band, interval = f"{summary.level:.0%} band", f"a judge, {summary.level:.0%} interval"
        panel.axvspan(float(low[0]), float(high[0]), color=VERMILLION, alpha=0.15, linewidth=0, label=band)
        panel.axvline(float(mean[0]), color=VERMILLION, linewidth=1, label="shared")
        # many judges stand in the order of their tastes, without names
        order = mean[1:].argsort() if len(names) > MAX_NAMES else array(place)
        bars = [(mean[1:] - low[1:])[order], (high[1:] - mean[1:])[order]]
        size = 4 if len(names) <= MAX_NAMES else 1
        panel.errorbar(
            mean[1:][order], place, xerr=bars, fmt="o", color=BLUE, ms=size, elinewidth=0.3 * size, label=interval
        )
        panel.set_yticks(place.tolist() if size > 1 else [], labels=names if size > 1 else [])
        panel.set_ylim(len(names) - 0.5, -0.5)
        effect = summary.effects[i]
        finish(panel, f"taste for {effect.label(inputs[effect.input])}", "", legend="none")
    legend_above(panels, ax is not None)
    return panels


def plot_summary(table: DataFrame, ax: Axes | None = None) -> Axes:
    r"""Draw a table of `botorch_skewgp.summaries`: a line for each row, its mean or median with its interval.

    Curves of events are curves with bands. Of more rows than 40, those of people stand in the order of their means for
    each attribute and value, without people's names, on a picture of one size; of others the first 40 are drawn. An end
    that is infinite leaves the picture.

    Example::

        ax = plot_summary(willingness_to_pay(model, answers))

    Args:
        table: A table with columns `lower`, `upper` and `mean` or `median`.
        ax: The axes; those of a new figure if `None`.

    Raises:
        InputDataError: If the table has other columns, or no rows.
    """
    columns = getattr(table, "columns", ())
    middle = next((name for name in ("mean", "median") if name in columns), None)
    if middle is None or not {"lower", "upper"} <= set(columns) or not len(table):
        raise InputDataError("table must have rows and columns 'lower', 'upper' and 'mean' or 'median'.")
    level = table.attrs.get("level")
    label = middle if level is None else f"{middle}, {level:.0%} interval"
    if list(table.index.names) == ["curve", "time"]:
        return _curves(table, middle, label, new_axes(ax))
    names = [name if isinstance(name, tuple) else (name,) for name in table.index]
    ticks = {place: " ".join(str(part) for part in name if part != "") for place, name in enumerate(names)}
    if len(table) > MAX_NAMES and "person" in table.index.names:
        table, ticks = _without_people(table, middle)
    elif len(table) > MAX_NAMES:
        table, ticks = table.head(MAX_NAMES), {place: ticks[place] for place in range(MAX_NAMES)}
    ax = new_axes(ax, (5.0, 0.9 + ROW * min(len(table), MAX_NAMES)))
    every = table[[middle, "lower", "upper"]].to_numpy(dtype=float).ravel()
    every = every[abs(every) < float("inf")]
    low, high = (every.min(), every.max()) if len(every) else (-1.0, 1.0)
    margin = 0.08 * (high - low or 1.0)
    ends = table[["lower", "upper"]].clip(low - 2 * margin, high + 2 * margin)
    y, size = range(len(table)), 1 if len(table) > MAX_NAMES else 4
    ax.hlines(y, ends.lower, ends.upper, colors=BLUE, linewidth=0.4 * size, alpha=1.0 if size > 1 else 0.4)
    ax.scatter(table[middle], y, c=BLUE, s=size**2, zorder=3)
    ax.set_xlim(low - margin, high + margin)
    ax.set_yticks([*ticks], [*ticks.values()])
    ax.set_ylim(len(table) - 0.4, -0.6)
    return finish(ax, label, "", legend="none")


def _curves(table: DataFrame, middle: str, label: str, ax: Axes) -> Axes:
    """The curves of `event_curve`, with bands."""
    for number, (name, curve) in enumerate(table.groupby(level="curve", sort=False)):
        times, color = curve.index.get_level_values("time"), COLORS[number % len(COLORS)]
        ax.plot(times, curve[middle], color=color, label=str(name))
        ax.fill_between(times, curve.lower, curve.upper, color=color, alpha=0.15, linewidth=0)
    ax.set_ylim(0.0, 1.0)
    return finish(ax, "time", f"probability of the event by then, {label}")


def _without_people(table: DataFrame, middle: str) -> tuple[DataFrame, dict[int, str]]:
    """The rows of many people in the order of their means, and the middle place of each attribute and value."""
    others = [name for name in table.index.names if name != "person"]
    groups = table.groupby(level=others, sort=False) if others else [("", table)]
    rows, ticks, place = [], {}, 0
    for name, group in groups:
        label = " ".join(str(part) for part in (name if isinstance(name, tuple) else (name,)) if part != "")
        ticks[place + len(group) // 2] = label
        rows += table.index.get_indexer(group[middle].sort_values().index).tolist()
        place += len(group)
    return table.iloc[rows], ticks


def plot_leaderboard(table: DataFrame, ax: Axes | None = None, num_items: int | None = None) -> Axes:
    r"""Draw a forest plot of a leaderboard: utilities with intervals, ranks, and probabilities of being the best.

    Items of one tier share a colour.

    Example:
        >>> ax = plot_leaderboard(leaderboard(model))

    Args:
        table: The table of `botorch_skewgp.items.leaderboard`, of one judge or of the shared utility.
        ax: The axes; those of a new figure if `None`.
        num_items: The number of items to draw, the best ones; at most 60 if `None`.

    Raises:
        InputDataError: If the table is not a leaderboard of one judge with items, or `num_items` is not a positive
            integer.
    """
    if not hasattr(table, "columns"):
        raise InputDataError(f"table must be that of leaderboard(model); got {type(table).__name__}.")
    missing = [name for name in NEEDED if name not in table.columns]
    if missing or table.index.nlevels > 1 or not len(table):
        raise InputDataError(
            "table must be that of a leaderboard of one judge, with items in it: with judge='each' choose one by "
            f"table.loc[judge].{f' Missing columns: {missing}.' if missing else ''}"
        )
    table = table.head(MAX_ITEMS if num_items is None else as_count(num_items, "num_items", least=1))
    ax = new_axes(ax, (5.6, 0.9 + ROW * len(table)))
    y = list(range(len(table)))
    colors = [COLORS[(int(tier) - 1) % (len(COLORS) - 1)] for tier in table.tier]
    ax.hlines(y, table.lower, table.upper, colors=colors, linewidth=1.6)
    ax.scatter(table["mean"], y, c=colors, s=16, zorder=3)
    ax.axvline(0.0, color=BLACK, linewidth=0.6, linestyle=":")
    columns = table[["rank_low", "rank_high", "p_best"]].itertuples(index=False)
    for place, (low, high, best) in zip(y, columns, strict=True):
        rank = f"{low}" if low == high else f"{low}\N{EN DASH}{high}"
        ax.annotate(rank, (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=SMALL)
        ax.annotate(f"{best:.2f}", (1.2, place), xycoords=("axes fraction", "data"), va="center", fontsize=SMALL)
    for text, x in (("rank", 1.02), ("P(best)", 1.2)):
        ax.annotate(text, (x, -1.0), xycoords=("axes fraction", "data"), va="center", fontsize=SMALL, color=BLUE)
    ax.set_yticks(y, [str(name) for name in table.index])
    ax.set_ylim(len(table) - 0.4, -0.6)
    level = table.attrs.get("level")
    intervals = "intervals" if level is None else f"{level:.0%} intervals"
    return finish(ax, f"utility beside the mean of all items, {intervals}; colours are tiers", "", legend="none")
