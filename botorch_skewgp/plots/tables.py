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

NEEDED = ("utility", "utility_low", "utility_high", "rank_low", "rank_high", "p_best", "tier")
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

    Of more rows than 40 the first are drawn: choose rows by `table.loc`. An end that is infinite leaves the picture.

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
    table = table.head(MAX_NAMES)
    ax = new_axes(ax, (5.0, 0.9 + ROW * len(table)))
    y = list(range(len(table)))
    at = table[middle].to_numpy()
    every = table[[middle, "lower", "upper"]].to_numpy(dtype=float).ravel()
    every = every[abs(every) < float("inf")]
    low, high = (every.min(), every.max()) if len(every) else (-1.0, 1.0)
    margin = 0.08 * (high - low or 1.0)
    ends = table[["lower", "upper"]].clip(low - 2 * margin, high + 2 * margin)
    ax.hlines(y, ends.lower, ends.upper, colors=BLUE, linewidth=1.6)
    ax.scatter(at, y, c=BLUE, s=16, zorder=3)
    ax.set_xlim(low - margin, high + margin)
    names = [name if isinstance(name, tuple) else (name,) for name in table.index]
    ax.set_yticks(y, [" ".join(str(part) for part in name if part != "") for name in names])
    ax.set_ylim(len(table) - 0.4, -0.6)
    level = table.attrs.get("level")
    return finish(ax, middle if level is None else f"{middle}, {level:.0%} interval", "", legend="none")


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
    ax.hlines(y, table.utility_low, table.utility_high, colors=colors, linewidth=1.6)
    ax.scatter(table.utility, y, c=colors, s=16, zorder=3)
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
    level = table.attrs.get("probability")
    intervals = "intervals" if level is None else f"{level:.0%} intervals"
    return finish(ax, f"utility beside the mean of all items, {intervals}; colours are tiers", "", legend="none")
