"""Quantities over one or two inputs: lines, and maps with level sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from matplotlib.axes import Axes
from torch import Tensor

from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity
from botorch_skewgp.observations.checks import as_number, as_probability, as_tensor, check_pairs
from botorch_skewgp.plots.marginals import (
    Marginals,
    are_between,
    as_point,
    check_bounds,
    free_inputs,
    input_labels,
    known_duels,
    known_points,
    linspace,
    points_between,
    value_label,
)
from botorch_skewgp.plots.style import BLACK, BLUE, DIVERGING, SEQUENTIAL, SMALL, VERMILLION, array, finish, new_axes
from botorch_skewgp.protocols import members_of

ONE, TWO = 201, 48  # grid points along one input and along each of two


def plot_map(
    function: Callable[[Tensor], Tensor],
    bounds: Tensor,
    *,
    label: str = "",
    title: str = "",
    limits: tuple[float, float] | None = None,
    diverging: bool = False,
    level: float | None = None,
    resolution: int | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot a function of one or two inputs: a line, or a map with level sets.

    Example:
        >>> ax = plot_map(lambda X: acq(X.unsqueeze(-2)), bounds, label="log expected improvement")

    Args:
        function: From an `n x d` tensor of points to `n` values.
        bounds: A `2 x d` tensor of lower and upper bounds; inputs other than one or two are fixed by equal bounds.
        label: The name of the values.
        title: The title.
        limits: The values at the ends of the scale; by default the minimum and maximum.
        diverging: Whether to use a colour map that diverges from zero.
        level: A value to mark, on a map by its level set.
        resolution: The number of grid points along each input; 201 for one input and 48 for each of two if `None`.
        inputs: The names of the inputs, for the axes.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds are invalid, an argument is of another class, or the function does not return a finite
            value for each point.
        UnsupportedError: If more than two inputs are free.
    """
    bounds = check_bounds(bounds, None, (1, 2), "plot_map")
    free, labels = free_inputs(bounds), input_labels(bounds, inputs)
    d = len(free)
    num = (ONE if d == 1 else TWO) if resolution is None else resolution
    if limits is not None:
        low, high = (as_number(end, "limits") for end in limits)
    level = None if level is None else as_number(level, "level")
    if not callable(function):
        raise InputDataError(f"function must be callable, from points to values; got {function!r}.")
    axes_of_grid = [linspace(bounds, i, num) for i in free]
    X = points_between(bounds, *(grid.flatten() for grid in torch.meshgrid(*axes_of_grid, indexing="xy")))
    with torch.no_grad():
        values = as_tensor(function(X), "What function returns").cpu()
    if values.numel() != len(X) or not values.isfinite().all():
        raise InputDataError(
            f"function must return a finite value for each of the {len(X)} points; got shape {tuple(values.shape)}."
        )
    if d == 1:
        ax = new_axes(ax)
        ax.plot(array(axes_of_grid[0]), array(values.flatten()), color=BLUE, linewidth=1.8)
        if diverging:
            ax.axhline(0, color=BLACK, linewidth=0.8, linestyle=":")
        if level is not None:
            ax.axhline(level, color=VERMILLION, linewidth=1, linestyle="--", label=f"{level:g}")
        if limits is not None:
            margin = 0.04 * (limits[1] - limits[0])
            ax.set_ylim(limits[0] - margin, limits[1] + margin)
        ax.set_xlim(*bounds[:, free[0]].tolist())
        return finish(ax, labels[0], label, title)
    ax = new_axes(ax, (4.6, 3.8))
    largest = float(values.abs().max()) or 1.0
    low, high = limits or ((-largest, largest) if diverging else (float(values.min()), float(values.max())))
    x, y, z = (array(v) for v in (*axes_of_grid, values.reshape(num, num)))
    mesh = ax.pcolormesh(
        x, y, z, shading="gouraud", cmap=DIVERGING if diverging else SEQUENTIAL, vmin=low, vmax=high, rasterized=True
    )
    if values.min() < values.max():
        # none at zero: the sign of a skewness near zero is Monte Carlo error
        levels = [low + (high - low) * k / 8 for k in range(1, 8) if not (diverging and k == 4)]
        levels = [entry for entry in levels if z.min() < entry < z.max()]
        color, style = (BLACK, None) if diverging else ("white", "solid")
        ax.contour(x, y, z, levels=levels, colors=color, linestyles=style, linewidths=0.5, alpha=0.6)
    if level is not None and z.min() < level < z.max():
        ax.contour(x, y, z, levels=[level], colors=VERMILLION, linewidths=1.6, linestyles="dashed")
        ax.plot([], [], color=VERMILLION, linewidth=1.6, linestyle="--", label=f"{level:g}")
    ax.figure.colorbar(mesh, ax=ax, label=label)
    finish(ax, labels[0], labels[1], title, legend="none")
    return _framed_legend(ax)


def plot_skewness(
    model: Model,
    bounds: Tensor,
    *,
    data: bool = True,
    output: int | None = None,
    resolution: int | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the skewness of the posterior over one or two inputs.

    Example:
        >>> ax = plot_skewness(model, bounds)

    Args:
        model: A model whose posterior has a skewness.
        bounds: A `2 x d` tensor of lower and upper bounds, as in `plot_map`.
        data: Whether to mark the model's points.
        output: The output to draw, for a model with several.
        resolution: As in `plot_map`.
        inputs: As in `plot_map`.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds do not fit the model.
        UnsupportedError: If more than two inputs are free, or the posterior has no skewness.
    """
    bounds = check_bounds(bounds, model, (1, 2), "plot_skewness")
    ax = plot_map(
        lambda X: Marginals(model, X, output).skewness,
        bounds, label="skewness", title="Skewness of the posterior", diverging=True, resolution=resolution,
        inputs=inputs, ax=ax,
    )  # fmt: skip
    if data:
        _mark_points(ax, model, bounds)
    return ax


def plot_interval_width(
    model: Model,
    bounds: Tensor,
    *,
    probability: float = 0.95,
    data: bool = True,
    output: int | None = None,
    resolution: int | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the width of the equal-tailed credible interval over one or two inputs.

    Args:
        model: A model whose posterior has quantiles.
        bounds: A `2 x d` tensor of lower and upper bounds, as in `plot_map`.
        probability: The probability of the interval.
        data: Whether to mark the model's points.
        output: The output to draw, for a model with several.
        resolution: As in `plot_map`.
        inputs: As in `plot_map`.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds do not fit the model, or the probability is outside (0, 1).
        UnsupportedError: If more than two inputs are free, or the posterior has no quantiles.
    """
    bounds = check_bounds(bounds, model, (1, 2), "plot_interval_width")
    probability = as_probability(probability, "probability")
    levels = [0.5 - probability / 2, 0.5 + probability / 2]
    title = f"Width of the {100 * probability:g} % interval"
    ax = plot_map(
        lambda X: Marginals(model, X, output).quantile(levels).diff(dim=0).squeeze(0),
        bounds, label=value_label(model, "width"), title=title, resolution=resolution, inputs=inputs, ax=ax,
    )  # fmt: skip
    if data:
        _mark_points(ax, model, bounds)
    return ax


def plot_duels(
    model: Model,
    bounds: Tensor,
    *,
    best: Tensor | None = None,
    points: Tensor | None = None,
    pairs: Tensor | None = None,
    resolution: int | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the posterior mean of a utility over two inputs, with an arrow from winner to loser of each duel.

    Example:
        >>> ax = plot_duels(model, bounds, best=train_X[0])

    Args:
        model: A model with one output.
        bounds: A `2 x d` tensor of lower and upper bounds, of which two are free.
        best: The recommended point, to mark; a tensor of `d` elements.
        points: An `n x d` tensor of the compared points; those of the model if `None`.
        pairs: An `m x 2` integer tensor of rows of `points`, winner first; those of the model if `None`.
        resolution: As in `plot_map`.
        inputs: As in `plot_map`.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds or `best` do not fit the model, pairs do not fit the points, or the model has no
            points and none are given.
        UnsupportedError: If not two inputs are free, or the model has several outputs.
    """
    bounds = check_bounds(bounds, model, (2,), "plot_duels")
    d, free = bounds.shape[1], free_inputs(bounds)
    best = None if best is None else as_point(best, "best", d)[free]
    points = known_points(model) if points is None else as_tensor(points, "points")
    if points is None or points.ndim != 2 or points.shape[-1] != d:
        raise InputDataError(
            f"points must be an n x {d} tensor of the compared points, which this model does not store."
        )
    pairs = known_duels(model) if pairs is None else check_pairs(pairs, "pairs", what="rows of points")
    if pairs.numel() and int(pairs.max()) >= len(points):
        raise InputDataError(f"pairs names row {int(pairs.max())} of points, which has {len(points)} rows.")
    ax = plot_map(
        lambda X: Marginals(model, X, None).mean,
        bounds, label=value_label(model, "utility"), title="Posterior mean and duels (winner to loser)",
        resolution=resolution, inputs=inputs, ax=ax,
    )  # fmt: skip
    shown = are_between(points, bounds)
    pairs = pairs.cpu()[shown[pairs.cpu()].all(-1)]
    winners, losers = points.cpu()[:, free][pairs].unbind(-2)
    x, y, u, v = (array(value) for value in (*winners.mT, *(losers - winners).mT))
    ax.quiver(
        x, y, u, v, angles="xy", scale_units="xy", scale=1, width=0.005, headwidth=6, headlength=7,
        headaxislength=6, facecolor=BLACK, edgecolor="white", linewidth=0.4, zorder=4.5,
    )  # fmt: skip
    _mark_xy(ax, points[shown][:, free])
    if best is not None:
        ax.plot(
            *best.flatten().tolist(), linestyle="", marker="*", markersize=15, color=VERMILLION,
            markeredgecolor="white", label="recommended", zorder=5,
        )  # fmt: skip
    return _framed_legend(ax)


def plot_validity(
    model: Model,
    bounds: Tensor,
    *,
    level: float | None = None,
    data: bool = True,
    resolution: int | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the probability of validity (or of label 1) over one or two inputs, with the outcomes.

    Example:
        >>> ax = plot_validity(SkewGP(train_X, Validity(worked)), bounds, level=0.9)

    Args:
        model: A SkewGP whose likelihood takes `Validity` or `Binary` observations, or an ensemble of these.
        bounds: A `2 x d` tensor of lower and upper bounds, as in `plot_map`.
        level: A probability to mark, on a map by its level set.
        data: Whether to mark the model's outcomes.
        resolution: As in `plot_map`.
        inputs: As in `plot_map`.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds do not fit the model, or the level is outside (0, 1).
        UnsupportedError: If more than two inputs are free, or the likelihood takes neither kind of observations.
    """
    bounds = check_bounds(bounds, model, (1, 2), "plot_validity")
    level = None if level is None else as_probability(level, "level")
    log_probability = LogProbabilityOfValidity(model)
    first = members_of(model, "plot_validity")[0]
    marks = [mark for entry in first.observations for mark in entry.marks() if mark.symbol in ("yes", "no")]
    yes_names = {mark.label for mark in marks if mark.symbol == "yes"}
    what = yes_names.pop() if len(yes_names) == 1 and yes_names != {"valid"} else "validity"
    ax = plot_map(
        lambda X: log_probability(X.unsqueeze(-2)).exp(),
        bounds, label=f"probability of {what}", title=f"Probability of {what}", limits=(0.0, 1.0),
        level=level, resolution=resolution, inputs=inputs, ax=ax,
    )  # fmt: skip
    free = free_inputs(bounds)
    flat = len(free) == 1
    for mark in marks if data else ():
        where, is_yes = first.datapoints[mark.points].cpu(), mark.symbol == "yes"
        where = where[are_between(where, bounds)][:, free]
        if not len(where):
            continue
        y = torch.full_like(where[:, 0], is_yes) if flat else where[:, 1]
        ax.plot(
            array(where[:, 0]), array(y), linestyle="", marker="o" if is_yes else "X", markersize=5.5, label=mark.label,
            color=BLACK if is_yes else VERMILLION, markeredgecolor="white", markeredgewidth=0.6, zorder=4,
        )  # fmt: skip
    return _framed_legend(ax)


def _framed_legend(ax: Axes) -> Axes:
    """A legend with a frame, legible on a map."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=SMALL, framealpha=0.85)
    return ax


def _mark_points(ax: Axes, model: Model, bounds: Tensor) -> None:
    """Mark the model's points: dots on a map, ticks along the lower edge of a line's axes."""
    points, free = known_points(model), free_inputs(bounds)
    if points is None:
        return
    points = points.cpu()[are_between(points, bounds)][:, free]
    if len(free) == 1:
        x = array(points[:, 0])
        ax.plot(
            x, 0 * x, linestyle="", marker="|", markersize=10, color=BLACK, transform=ax.get_xaxis_transform(),
            label="points",
        )  # fmt: skip
    else:
        _mark_xy(ax, points)
    _framed_legend(ax)


def _mark_xy(ax: Axes, points: Tensor) -> None:
    ax.plot(
        *(array(x) for x in points.mT), linestyle="", marker="o", markersize=3.5, color=BLACK, markeredgecolor="white",
        markeredgewidth=0.5, zorder=4, label="points",
    )  # fmt: skip
