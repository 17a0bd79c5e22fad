"""Marks for observations: beside or below a function of one input, and on maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.models.model import Model
from matplotlib.axes import Axes
from torch import Tensor

from botorch_skewgp.plots.marginals import are_between, free_inputs, known_data, known_duels
from botorch_skewgp.plots.style import BLACK, VERMILLION, array

MARKERS = {"value": "o", "at most": "v", "at least": "^", "yes": "D", "no": "x"}
STEP, MAX_STRIP = 0.045, 0.4  # heights of a duel and of all duels, relative to that of the function


def draw_data(ax: Axes, model: Model, bounds: Tensor, low: float, high: float) -> None:
    """Mark observations: numbers and bounds at their values, labels in a row and duels in a stack below `low`."""
    known, observations = known_data(model)
    if known is None:
        return
    x, shown = known[:, free_inputs(bounds)[0]].cpu(), are_between(known, bounds)
    step = STEP * (high - low)
    bottom = low - 2 * step
    for entry in observations:
        marks = entry.marks()
        for points, label, symbol, values in marks:
            seen = shown[points.cpu()]
            where = x[points.cpu()][seen]
            height = torch.full_like(where, bottom) if values is None else values[seen.to(values.device)]
            marker = MARKERS.get(symbol, f"${symbol}$")
            size, edge = (6.0, 0.2) if marker.startswith("$") else (3.5 if marker == "D" else 4.5, 1.0)
            colors = {"color": BLACK, "markeredgecolor": BLACK, "markeredgewidth": edge}
            _draw(ax, where, height, marker=marker, markersize=size, label=label, zorder=5, **colors)
        if any(mark.values is None for mark in marks):
            bottom -= 2 * step
    ties = torch.cat([torch.empty(0, 2, dtype=torch.long), *(entry.ties.cpu() for entry in observations)])
    duels = known_duels(model).cpu()
    duels, ties = (pairs[shown[pairs].all(-1)] for pairs in (duels, ties))
    _stack_pairs(ax, x, duels, ties, bottom, high)


def _stack_pairs(ax: Axes, x: Tensor, duels: Tensor, ties: Tensor, bottom: float, high: float) -> None:
    """A line for each pair, with a full mark at the winner and none at the loser; hollow ones at both for a tie."""
    pairs = torch.cat([duels, ties])
    if not len(pairs):
        return
    step = min(STEP, MAX_STRIP / len(pairs)) * (high - bottom)
    y = bottom - step * torch.arange(len(pairs), dtype=x.dtype)
    size = 4.0 if len(pairs) <= 20 else 2.0
    ends = x[pairs]
    ax.hlines(array(y), array(ends.amin(-1)), array(ends.amax(-1)), color=BLACK, linewidth=0.6, zorder=4)
    marks = {"linestyle": "", "marker": "o", "markersize": size, "zorder": 5}
    m = len(duels)
    if m:
        ax.plot(array(ends[:m, 0]), array(y[:m]), color=VERMILLION, label="winner", **marks)  # type: ignore[arg-type]
        loser = {**marks, "markerfacecolor": "white", "markeredgewidth": 0.8}
        ax.plot(array(ends[:m, 1]), array(y[:m]), color=BLACK, label="loser", **loser)  # type: ignore[arg-type]
    if len(ties):
        both = {**marks, "marker": "s", "markerfacecolor": "white"}
        ax.plot(array(ends[m:].mT.ravel()), array(y[m:].repeat(2)), color=BLACK, label="tie", **both)  # type: ignore[arg-type]


def mark_points(ax: Axes, model: Model, bounds: Tensor, columns: Sequence[int], is_probability: bool = False) -> None:
    """Mark yes/no answers, duels as arrows, and points of neither; over one input at 0 and 1, and on the lower edge."""
    points, observations = known_data(model)
    if points is None:
        return
    at, left, flat = points.cpu()[:, columns], are_between(points, bounds), len(columns) == 1
    shown = left.clone()
    marks = [mark for entry in observations for mark in entry.marks() if mark.symbol in ("yes", "no")]
    for mark in marks if is_probability or not flat else ():
        which = mark.points.cpu()[shown[mark.points.cpu()]]
        left[which] = False
        is_yes = mark.symbol == "yes"
        y = torch.full_like(at[which, 0], is_yes) if flat else at[which, 1]
        _draw(
            ax, at[which, 0], y, marker="o" if is_yes else "X", markersize=5.5, label=mark.label,
            color=BLACK if is_yes else VERMILLION, markeredgewidth=0.6,
        )  # fmt: skip
    if flat:
        options = {"transform": ax.get_xaxis_transform(), "marker": "|", "markersize": 10, "markeredgecolor": BLACK}
        _draw(ax, at[left, 0], torch.zeros_like(at[left, 0]), label="points", **options)
        return
    _draw(ax, *at[left].mT, marker="o", markersize=3.5, color=BLACK, markeredgewidth=0.5, label="points")
    duels = known_duels(model).cpu()
    winners, losers = at[duels[shown[duels].all(-1)]].unbind(-2)
    if len(winners):
        ends = [array(value) for value in (*winners.mT, *(losers - winners).mT)]
        ax.quiver(
            *ends, angles="xy", scale_units="xy", scale=1, width=0.005, headwidth=6, headlength=7, headaxislength=6,
            facecolor=BLACK, edgecolor="white", linewidth=0.4, zorder=4.5,
        )  # fmt: skip
        ax.plot([], [], linestyle="", marker=r"$\rightarrow$", markersize=10, color=BLACK, label="winner to loser")


def _draw(ax: Axes, x: Tensor, y: Tensor, **options: Any) -> None:
    if len(x):
        ax.plot(array(x), array(y), **{"linestyle": "", "markeredgecolor": "white", "zorder": 4, **options})
