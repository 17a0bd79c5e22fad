"""Tastes of judges, from `checking.judge_summary`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes

from botorch_skewgp.checking import JudgeSummary
from botorch_skewgp.observations.checks import as_names
from botorch_skewgp.plots.style import BLUE, SKY, SMALL, VERMILLION, array, finish, new_axes, new_panels

NUM_TERMS = 3  # of the label of an axis: the inputs of largest weight


def plot_tastes(
    summary: JudgeSummary,
    names: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | Iterable[Axes] | None = None,
) -> Iterable[Axes]:
    r"""Plot the tastes of all judges with their intervals, a panel for each input; line and band are shared tastes.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs, judge=[0, 1, 0, 1]))
        >>> axes = plot_tastes(judge_summary(model), names=["ann", "bob"], inputs=["sweet", "strong"])

    Args:
        summary: The table that `judge_summary(model)` returns.
        names: The judges' names; their numbers by default.
        inputs: The inputs' names.
        ax: The axes to draw on, one for each input; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If `summary` is not a table of judges, or names or axes are too few or too many.
    """
    names, inputs = _names(summary, names), _inputs(summary, inputs)
    d = len(inputs)
    panels = new_panels(ax, d, (2.6, 0.8 + 0.22 * len(names)), sharey=True)
    place = torch.arange(len(names))
    for i, panel in enumerate(panels):
        mean, low, high = (array(values[:, i + 1]) for values in (summary.mean, summary.lower, summary.upper))
        band = f"{summary.level:.0%} band" if i == 0 else None
        panel.axvspan(float(low[0]), float(high[0]), color=VERMILLION, alpha=0.15, linewidth=0, label=band)
        panel.axvline(float(mean[0]), color=VERMILLION, linewidth=1, label="shared" if i == 0 else None)
        bars = [mean[1:] - low[1:], high[1:] - mean[1:]]
        label = f"a judge, {summary.level:.0%} interval" if i == 0 else None
        panel.errorbar(mean[1:], place, xerr=bars, fmt="o", color=BLUE, ms=4, label=label)
        panel.set_yticks(place.tolist(), labels=names)
        panel.set_ylim(len(names) - 0.5, -0.5)
        finish(panel, f"taste for {inputs[i]}", "", legend="none")
    if ax is None:
        panels[0].figure.legend(loc="outside upper center", frameon=False, fontsize=SMALL, ncols=3)
    else:
        panels[0].legend(frameon=False, fontsize=SMALL)
    return panels


def plot_segments(
    summary: JudgeSummary,
    names: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot judges' scores in the two directions in which tastes differ most, with intervals; segments are clusters.

    Labels of axes have the weights of the inputs and the share of the variance between judges. The mean of judges is at
    the origin. If tastes differ in one direction alone, judges are in their order along it.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs, judge=[0, 1, 0, 1]))
        >>> ax = plot_segments(judge_summary(model), names=["ann", "bob"], inputs=["sweet", "strong"])

    Args:
        summary: The table that `judge_summary(model)` returns.
        names: The judges' names; their numbers by default.
        inputs: The inputs' names.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If `summary` is not a table of judges, names are too few or too many, or tastes do not differ.
    """
    names, inputs = _names(summary, names), _inputs(summary, inputs)
    told = summary.directions
    if not len(told.share):
        raise InputDataError("Tastes of summary do not differ; a single judge, or equal ones, have no segments.")
    first, *others = (
        f"{_formula(weights, inputs)} ({share:.0%} of variance)"
        for weights, share in zip(told.weights[:2].tolist(), told.share[:2].tolist(), strict=True)
    )
    mean, lower, upper = (array(end[:, :2].mT) for end in (told.mean, told.lower, told.upper))
    x, y = mean[0], mean[1] if others else mean[0].argsort().argsort()  # judges in their order along one direction
    ax = new_axes(ax, (4.6, 4.2))
    width, *height = ([at - low, high - at] for at, low, high in zip(mean, lower, upper, strict=True))
    ax.errorbar(
        x, y, xerr=width, yerr=height[0] if others else None, fmt="o", color=BLUE, ms=4, elinewidth=0.6, ecolor=SKY,
        label=f"a judge, {summary.level:.0%} interval",
    )  # fmt: skip
    for i, name in enumerate(names):
        ax.annotate(name, (x[i], y[i]), xytext=(3, 3), textcoords="offset points", fontsize=SMALL)
    ax.axvline(0.0, color=VERMILLION, linewidth=1, zorder=0, label="mean of judges")
    if others:
        ax.axhline(0.0, color=VERMILLION, linewidth=1, zorder=0)
    else:
        ax.set_yticks([])
    return finish(ax, first, others[0] if others else "judges")


def _formula(weights: Sequence[float], inputs: Sequence[str]) -> str:
    """The inputs of largest weight, as a sum."""
    largest = sorted(zip(weights, inputs, strict=True), key=lambda term: -abs(term[0]))[:NUM_TERMS]
    named = [(weight, name) for weight, name in largest if abs(weight) >= 0.05]  # not 0.0 in one digit
    terms = "".join(f" {'-' if weight < 0 else '+'} {abs(weight):.1f} {name}" for weight, name in named)
    return terms.removeprefix(" + ")


def _inputs(summary: JudgeSummary, inputs: Sequence[str] | None) -> list[str]:
    d = summary.mean.shape[-1] - 1
    return [f"$x_{{{i + 1}}}$" for i in range(d)] if inputs is None else as_names(inputs, "inputs", d)


def _names(summary: JudgeSummary, names: Sequence[str] | None) -> list[str]:
    if not isinstance(summary, JudgeSummary):
        raise InputDataError(f"summary must be what judge_summary(model) returns; got {type(summary).__name__}.")
    judges = [str(judge) for judge in summary.judges]
    return judges if names is None else as_names(names, "names", len(judges))
