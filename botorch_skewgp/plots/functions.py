"""Functions of one input with their bands, densities at a point, and thresholds over one of two inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from torch import Tensor

from botorch_skewgp.observations.checks import as_probability, as_tensor, check_class, check_parts
from botorch_skewgp.plots.data import draw_data, mark_points
from botorch_skewgp.plots.marginals import (
    Marginals,
    as_point,
    check_bounds,
    free_inputs,
    input_labels,
    like_inputs,
    linspace,
    points_between,
    value_label,
)
from botorch_skewgp.plots.style import (
    BLACK,
    BLUE,
    COLORS,
    COLUMNS,
    VERMILLION,
    array,
    finish,
    legend_above,
    new_axes,
    new_panels,
)
from botorch_skewgp.thresholds import threshold

PROBABILITIES = (0.5, 0.8, 0.95)


def plot_posterior(
    model: Model,
    bounds: Tensor,
    *,
    probabilities: Sequence[float] = PROBABILITIES,
    gaussian: bool = False,
    data: bool = True,
    resolution: int = 201,
    color: str = BLUE,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the posterior of a function of one input: the mean and bands between quantiles.

    Numbers and censoring bounds are marked at their values, labels and grades in a row below, and duels, choices and
    rankings as a stack of lines from winner to loser.

    Example:
        >>> ax = plot_posterior(SkewGP(train_X[:, :1], Preference(pairs)), bounds[:, :1], gaussian=True)

    Args:
        model: A model whose posterior has quantiles.
        bounds: A `2 x d` tensor, the range to draw; inputs other than one are fixed by equal bounds. Then data at other
            values of these are not marked.
        probabilities: The probabilities of the equal-tailed bands.
        gaussian: Whether to add the widest band of a Gaussian of the same mean and variance, dashed.
        data: Whether to mark the observations of a SkewGP, or the duels of a PairwiseGP.
        resolution: The number of points on the grid.
        color: The colour of mean and bands.
        inputs: The names of the model's inputs, for the axes.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds do not fit the model, or a probability is outside (0, 1).
        UnsupportedError: If more than one input is free, or the posterior has no quantiles or several outputs.
    """
    bounds = check_bounds(bounds, model, (1,), "plot_posterior")
    (label,) = input_labels(bounds, inputs)
    x = linspace(bounds, free_inputs(bounds)[0], resolution)
    distribution = Marginals(model, points_between(bounds, x))
    bands = _band_edges(distribution, probabilities)
    ax = new_axes(ax, (6.4, 3.6))
    _draw_bands(ax, x, distribution, bands, probabilities, color)
    if gaussian:
        _draw_gaussian(ax, x, distribution, probabilities)
    if data:
        values = torch.cat([distribution.mean.unsqueeze(0), *bands])
        draw_data(ax, model, bounds, float(values.min()), float(values.max()))
    ax.set_xlim(float(x[0]), float(x[-1]))
    return finish(ax, label, value_label(model), legend="beside")


def plot_slices(
    model: Model,
    bounds: Tensor,
    point: Tensor,
    *,
    probabilities: Sequence[float] = PROBABILITIES,
    resolution: int = 101,
    inputs: Sequence[str] | None = None,
    ax: Axes | Iterable[Axes] | None = None,
) -> np.ndarray:
    r"""Plot the posterior along each input through one point: the mean and bands between quantiles.

    Example:
        >>> panels = plot_slices(model, bounds, train_X[0])

    Args:
        model: A model whose posterior has quantiles.
        bounds: A `2 x d` tensor of lower and upper bounds.
        point: A tensor of `d` elements, the point of all slices.
        probabilities: The probabilities of the equal-tailed bands.
        resolution: The number of points along each slice.
        inputs: The names of the model's inputs, for the axes.
        ax: The `d` axes to draw on; new ones if `None`.

    Returns:
        The `d` axes.

    Raises:
        InputDataError: If bounds, point or axes do not fit the model, or a probability is outside (0, 1).
        UnsupportedError: If the posterior has no quantiles.
    """
    bounds = check_bounds(bounds, model)
    d, names = bounds.shape[1], input_labels(bounds, inputs)
    point = as_point(point, "point", d).to(bounds)
    grids = torch.stack([linspace(bounds, i, resolution) for i in range(d)])
    X = point.repeat(d, resolution, 1)
    X[torch.arange(d), :, torch.arange(d)] = grids
    distributions = [Marginals(model, slice_) for slice_ in X]
    edges = [_band_edges(distribution, probabilities) for distribution in distributions]
    panels = new_panels(ax, d, (3.0, 2.5), sharey=True)
    for i, (panel, x, distribution, bands) in enumerate(zip(panels, grids, distributions, edges, strict=True)):
        _draw_bands(panel, x, distribution, bands, probabilities, BLUE)
        panel.axvline(float(point[i]), color=VERMILLION, linewidth=1, label="the point")
        panel.set_xlim(float(x[0]), float(x[-1]))
        finish(panel, names[i], value_label(model) if ax is not None or i % COLUMNS == 0 else "", legend="none")
    legend_above(panels, ax is not None)
    return panels


def plot_marginal(
    model: Model,
    point: Tensor,
    *,
    gaussian: bool = True,
    others: Mapping[str, Model] | None = None,
    name: str = "posterior",
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the density of the function's value at one point, with its normal approximation and other models.

    Example:
        >>> ax = plot_marginal(model, train_X[0])

    Args:
        model: A model whose posterior has densities and quantiles.
        point: A tensor of `d` elements.
        gaussian: Whether to add the Gaussian of the same mean and variance, dashed.
        others: Further models, by their names in the legend.
        name: The name of the model in the legend.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If the point does not fit the model.
        UnsupportedError: If a posterior has no densities.
    """
    check_class(model, "model", Model)
    point = as_tensor(point, "point")
    point = as_point(point, "point", getattr(model, "dim", point.numel()))
    check_parts(others=(others, Mapping))
    X = like_inputs(point.reshape(1, -1), model)
    distributions = {name: Marginals(model, X)}
    distributions.update({other: Marginals(entry, X) for other, entry in (others or {}).items()})
    if len(distributions) != 1 + len(others or {}):
        raise InputDataError(f"others must not use the model's own name {name!r}.")
    ends = torch.cat([distribution.quantile([1e-3, 1 - 1e-3]) for distribution in distributions.values()])
    values = linspace(torch.stack([ends.min(), ends.max()]).unsqueeze(-1), 0, 401)
    ax = new_axes(ax, (4.5, 3.0))
    for i, (label, distribution) in enumerate(distributions.items()):
        color = COLORS[i % (len(COLORS) - 1)]  # black is the Gaussian's
        density = array(distribution.density(values).squeeze(-1))
        ax.plot(array(values), density, color=color, linewidth=1.8, label=label, zorder=3)
        if i == 0:
            ax.fill_between(array(values), density, color=color, alpha=0.15, linewidth=0)
            if gaussian and not distribution.is_gaussian:
                density = array(distribution.matched().density(values).squeeze(-1))
                label = "Gaussian, same mean and variance"
                ax.plot(array(values), density, color=BLACK, linewidth=1.2, linestyle="--", label=label)
    first = distributions[name]
    title = ""
    if hasattr(first.posterior, "skewness"):
        title = f"skewness {float(first.skewness):.2f}".replace("-", "\N{MINUS SIGN}")
    ax.set_xlim(float(values[0]), float(values[-1]))
    ax.set_ylim(0, ax.dataLim.y1 * (1.05 + 0.09 * len(ax.get_legend_handles_labels()[0])))
    return finish(ax, value_label(model), "density", title)


def plot_threshold(
    model: Model,
    bounds: Tensor,
    level: float,
    *,
    dim: int = 1,
    probability: float = 0.95,
    resolution: int = 65,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot where the probability of a yes crosses a level: posterior median and credible band over the other input.

    The band ends at the bounds. For three inputs draw a map of `botorch_skewgp.thresholds.threshold` with `plot_map`.

    Example:
        >>> ax = plot_threshold(SkewGP(train_X, Binary(labels)), bounds, level=0.75)

    Args:
        model: A model of yes/no answers with two inputs.
        bounds: A `2 x 2` tensor of lower and upper bounds; the threshold is the first crossing from the lower one up.
        level: The probability of a yes at the threshold.
        dim: The input along which the threshold lies; it is the vertical axis.
        probability: The probability of the credible band.
        resolution: The number of points along the other input.
        inputs: The names of the model's inputs, for the axes.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds do not fit the model, `dim` is neither 0 nor 1, or as in `threshold`.
        UnsupportedError: If there are more or fewer than two inputs, or the model takes no yes/no answers.
    """
    bounds = check_bounds(bounds, model, (2,), "plot_threshold")
    if bounds.shape[1] > 2:
        raise UnsupportedError("plot_threshold draws models of two inputs; draw a map of thresholds with plot_map.")
    names = input_labels(bounds, inputs)
    if dim not in (0, 1):
        raise InputDataError(f"dim must be 0 or 1; got {dim!r}.")
    other = 1 - dim
    x = linspace(bounds, other, resolution)
    X = torch.zeros(len(x), 2).to(x)
    X[:, other] = x
    low, high = bounds[:, dim].tolist()
    found = threshold(model, X, level, dim, (low, high), probability)
    ax = new_axes(ax, (5.4, 3.6))
    lower, upper = (array(part.clamp(low, high)) for part in (found.lower, found.upper))
    ax.fill_between(array(x), lower, upper, color=BLUE, alpha=0.2, linewidth=0, label=f"{probability:.0%} band")
    median = torch.where(found.median.isfinite(), found.median, torch.nan)
    ax.plot(array(x), array(median), color=BLUE, linewidth=1.8, label="median", zorder=3)
    mark_points(ax, model, bounds, (other, dim))
    ax.set_xlim(float(x[0]), float(x[-1]))
    ax.set_ylim(low, high)
    return finish(ax, names[other], names[dim], f"P(yes) = {level:g}", legend="beside")


def _band_edges(distribution: Marginals, probabilities: Sequence[float]) -> list[Tensor]:
    """Lower and upper edge of every band, `2 x n` each."""
    if isinstance(probabilities, str) or not isinstance(probabilities, Iterable):
        raise InputDataError(f"probabilities must be a list, such as [0.5, 0.95]; got {probabilities!r}.")
    probabilities = [as_probability(p, "probabilities") for p in probabilities]
    if not probabilities:
        return []
    levels = [0.5 + sign * p / 2 for p in probabilities for sign in (-1, 1)]
    return list(distribution.quantile(levels).unflatten(0, (-1, 2)))


def _draw_bands(
    ax: Axes, x: Tensor, distribution: Marginals, bands: Sequence[Tensor], probabilities: Sequence[float], color: str
) -> None:
    """The mean, and over it bands from narrow and dark to wide and light, in this order in the legend."""
    ax.plot(array(x), array(distribution.mean), color=color, linewidth=1.8, label="mean", zorder=3)
    ordered = sorted(zip(probabilities, bands, strict=True), key=lambda pair: pair[0])
    for rank, (probability, (lower, upper)) in enumerate(ordered):
        share = (rank + 1) / (len(ordered) + 1)  # of white
        tint = tuple(share + (1 - share) * c for c in to_rgb(color))
        ax.fill_between(
            array(x), array(lower), array(upper), color=tint, linewidth=0, label=f"{100 * probability:g} %",
            zorder=1 - 0.01 * rank,
        )  # fmt: skip


def _draw_gaussian(ax: Axes, x: Tensor, distribution: Marginals, probabilities: Sequence[float]) -> None:
    """The edges of the widest band of the Gaussian of the same mean and variance."""
    widest = max(probabilities, default=0.95)
    for i, edge in enumerate(_band_edges(distribution.matched(), [widest])[0]):
        label = f"{100 * widest:g} %, Gaussian" if i == 0 else None
        ax.plot(array(x), array(edge), color=BLACK, linestyle="--", linewidth=1, label=label, zorder=2)
