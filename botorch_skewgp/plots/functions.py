"""Functions with their bands, densities at a point, quantities over one or two inputs, and thresholds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from torch import Tensor

from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity
from botorch_skewgp.checks import as_number, as_probability, as_tensor, check_class, check_parts
from botorch_skewgp.inputs.columns import as_column
from botorch_skewgp.plots.data import draw_data, mark_points
from botorch_skewgp.plots.marginals import (
    Marginals,
    as_limits,
    as_point,
    check_bounds,
    free_inputs,
    input_labels,
    known_data,
    like_inputs,
    linspace,
    points_between,
    value_label,
    values_of_category,
)
from botorch_skewgp.plots.style import (
    BLACK,
    BLUE,
    COLORS,
    COLUMNS,
    DIVERGING,
    SEQUENTIAL,
    SMALL,
    VERMILLION,
    array,
    finish,
    legend_above,
    new_axes,
    new_panels,
)
from botorch_skewgp.protocols import kind_of_duels, members_of
from botorch_skewgp.thresholds import threshold

PROBABILITIES = (0.5, 0.8, 0.95)
Quantity = Literal["mean", "skewness", "width", "win", "valid"]
OF_MARGINALS: dict[str, tuple[str, Callable[[Marginals], Tensor]]] = {
    "mean": ("Posterior mean", lambda marginals: marginals.mean),
    "skewness": ("Skewness of the posterior", lambda marginals: marginals.skewness),
    "width": ("Width of the 95 % interval", lambda marginals: marginals.quantile([0.025, 0.975]).diff(dim=0)),
}
ONE, TWO = 201, 48  # grid points along one input and along each of two
MAX_EXTENT = 3.0  # of a domain in the kernel's space, whose default priors are for the unit cube
NOT_SCALED = "constant except beside the data: inputs are not scaled\n(input_transform=Normalize(d, bounds=bounds))"


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
    r"""Plot the posterior of a function of one input: the mean, or the median if no mean exists, and quantile bands.

    Numbers and censoring bounds are marked at their values, labels and grades in a row below, and duels, choices and
    rankings as a stack of lines from winner to loser. An input that the kernel reads as a category has a point and bars
    at each of its values.

    Example:
        >>> ax = plot_posterior(SkewGP(train_X[:, :1], Preference(pairs)), bounds[:, :1], gaussian=True)

    Args:
        model: A model whose posterior has quantiles.
        bounds: A `2 x d` tensor, the range to draw; inputs other than one are fixed by equal bounds. Then data at other
            values of these are not marked.
        probabilities: The probabilities of the equal-tailed bands.
        gaussian: Whether to add the widest band of a Gaussian of the same mean and variance, dashed.
        data: Whether to mark the observations of a SkewGP, or the duels of a PairwiseGP.
        resolution: The number of points on the grid of a numeric input.
        color: The colour of mean and bands.
        inputs: The names of the model's inputs, for the axes.
        ax: The axes to draw on; new ones if `None`.

    Raises:
        InputDataError: If bounds do not fit the model, or a probability is outside (0, 1).
        UnsupportedError: If more than one input is free, the posterior has no quantiles or several outputs, or a
            Gaussian is wanted of a variance that does not exist.
    """
    bounds = check_bounds(bounds, model, (1,), "plot_posterior")
    (label,) = input_labels(bounds, inputs)
    line = _Slice(model, bounds, probabilities, resolution)
    widest = max(probabilities, default=0.95)
    dashed = _band_edges(line.marginals, [widest], gaussian=True) if gaussian else []
    ax = new_axes(ax, (6.4, 3.6))
    line.draw(ax, color)
    for edges in dashed:
        names = [f"{100 * widest:g} %, Gaussian", None]
        ax.plot(array(line.x), array(edges.mT), color=BLACK, linestyle="--", linewidth=1, label=names, zorder=2)
    if data:
        values = torch.cat([line.marginals.center.unsqueeze(0), *line.bands])
        draw_data(ax, model, bounds, float(values.min()), float(values.max()))
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
    r"""Plot the posterior along each input through one point: the mean (or median) and bands between quantiles.

    `point` is that of all slices, `d` elements, and `ax` are `d` axes; other arguments are as for `plot_posterior`.

    Example:
        >>> panels = plot_slices(model, bounds, train_X[0])

    Raises:
        InputDataError: If bounds, point or axes do not fit the model, or a probability is outside (0, 1).
        UnsupportedError: If the posterior has no quantiles.
    """
    bounds = check_bounds(bounds, model)
    d, names = bounds.shape[1], input_labels(bounds, inputs)
    point = as_point(point, "point", d).to(bounds)
    through = torch.where(torch.eye(d, device=bounds.device).bool().unsqueeze(1), bounds, point)  # d x 2 x d
    lines = [_Slice(model, fixed, probabilities, resolution) for fixed in through]
    panels = new_panels(ax, d, (3.0, 2.5), sharey=True)
    for i, (panel, line) in enumerate(zip(panels, lines, strict=True)):
        line.draw(panel, BLUE)
        panel.axvline(float(point[i]), color=VERMILLION, linewidth=1, label="the point")
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
        gaussian: Whether to add the Gaussian of the same mean and variance, if these exist, dashed.
        others: Further models, by their names in the legend.
        name: The name of the model in the legend.
        ax: The axes to draw on; new ones if `None`.

    Raises:
        InputDataError: If the point does not fit the model.
        UnsupportedError: If a posterior has no densities.
    """
    check_class(model, "model", Model)
    check_parts(others=(others, Mapping))
    if name in (others or {}):
        raise InputDataError(f"others must not use the model's own name {name!r}.")
    X = like_inputs(as_point(point, "point", getattr(model, "dim", None)).unsqueeze(0), model)
    distributions = {label: Marginals(entry, X) for label, entry in {name: model, **(others or {})}.items()}
    ends = torch.cat([distribution.quantile([1e-3, 1 - 1e-3]) for distribution in distributions.values()])
    values = linspace(torch.stack([ends.min(), ends.max()]).unsqueeze(-1), 0, 401)
    ax = new_axes(ax, (4.5, 3.0))
    for i, (label, distribution) in enumerate(distributions.items()):
        color = COLORS[i % (len(COLORS) - 1)]  # black is the Gaussian's
        density = array(distribution.density(values).squeeze(-1))
        ax.plot(array(values), density, color=color, linewidth=1.8, label=label, zorder=3)
        if i == 0:
            ax.fill_between(array(values), density, color=color, alpha=0.15, linewidth=0)
            if gaussian and not distribution.is_gaussian and distribution.has_variance:
                density = array(distribution.density(values, gaussian=True).squeeze(-1))
                label = "Gaussian, same mean and variance"
                ax.plot(array(values), density, color=BLACK, linewidth=1.2, linestyle="--", label=label)
    first, title = distributions[name], ""
    if first.has_skewness:
        title = f"skewness {float(first.skewness):.2f}".replace("-", "\N{MINUS SIGN}")
    ax.set_xlim(float(values[0]), float(values[-1]))
    ax.set_ylim(0, ax.dataLim.y1 * (1.05 + 0.09 * len(ax.get_legend_handles_labels()[0])))
    return finish(ax, value_label(model), "density", title)


def plot_map(
    model: Model | None,
    bounds: Tensor,
    of: Quantity | Callable[[Tensor], Tensor] = "mean",
    *,
    reference: Tensor | None = None,
    best: Tensor | None = None,
    level: float | None = None,
    data: bool = True,
    label: str | None = None,
    title: str | None = None,
    limits: tuple[float, float] | None = None,
    resolution: int | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot a quantity of a model over one or two inputs: a line, or a map with level sets, and the data's points.

    On maps arrows lead from the winner to the loser of each duel; yes/no answers have symbols of their own.

    Example:
        >>> ax = plot_map(model, bounds, best=train_X[0])
        >>> ax = plot_map(model, bounds, of="win", reference=train_X[0])
        >>> ax = plot_map(model, bounds, of=lambda X: acq(X.unsqueeze(-2)), label="log expected improvement")

    Args:
        model: A model; `None` for a function that is no model's.
        bounds: A `2 x d` tensor of lower and upper bounds; inputs other than one or two are fixed by equal bounds, and
            data at other values of these are not marked.
        of: The posterior `"mean"`, the `"skewness"`, the `"width"` of the 95 % interval; the probability of being
            preferred to the reference, `"win"`, or of working or of label 1, `"valid"`; or a function from an `n x d`
            tensor of points to `n` values, such as an acquisition function.
        reference: The point of `d` elements that others are compared with, for `"win"`.
        best: The recommended point, to mark.
        level: A value to mark, on a map by its level set; one half for `"win"` if `None`.
        data: Whether to mark the model's data.
        label: The name of the values.
        title: The title.
        limits: The values at the ends of the scale; by default minimum and maximum, 0 and 1 for probabilities.
        resolution: The number of grid points along each input; 201 for one input and 48 for each of two if `None`.
        inputs: The names of the model's inputs, for the axes.
        ax: The axes to draw on; new ones if `None`.

    Raises:
        InputDataError: If bounds, points or names do not fit the model, `of` is not known, or a function does not
            return a finite value for each point.
        UnsupportedError: If more than two inputs are free, or the model does not have the quantity.
    """
    bounds = check_bounds(bounds, model, (1, 2), "plot_map")
    free, names = free_inputs(bounds), input_labels(bounds, inputs)
    given = {"reference": reference, "best": best}
    places = {name: as_point(X, name, bounds.shape[1]).to(bounds) for name, X in given.items() if X is not None}
    drawn = _drawn(model, of, places.get("reference"))
    settings: dict[str, Any] = {"label": label, "title": title, "level": level, "limits": limits}
    changes: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    drawn = drawn._replace(**changes)
    num = (ONE if len(free) == 1 else TWO) if resolution is None else resolution
    grids = [linspace(bounds, i, num) for i in free]
    X = points_between(bounds, *(grid.flatten() for grid in torch.meshgrid(*grids, indexing="xy")))
    with torch.no_grad():
        values = as_tensor(drawn.function(X), "What of returns").cpu()
    if values.numel() != len(X) or not values.isfinite().all():
        raise InputDataError(
            f"of must return a finite value for each of the {len(X)} points; got shape {tuple(values.shape)}."
        )
    if drawn.level is not None:
        as_number(drawn.level, "level")
    if drawn.limits is not None:
        drawn = drawn._replace(limits=as_limits(drawn.limits))
    z = array(values.reshape([num] * len(free)))
    ax = new_axes(ax, (5.0, 3.2) if len(free) == 1 else (4.6, 3.8))
    (_line if len(free) == 1 else _surface)(ax, [array(grid) for grid in grids], z, drawn)
    if model is not None and _is_unscaled(model, bounds, values):
        box, where = {"color": "white"}, ax.transAxes
        ax.text(0.5, 0.5, NOT_SCALED, transform=where, ha="center", fontsize=SMALL, bbox=box, zorder=6)
    if data and model is not None:
        mark_points(ax, model, bounds, free, of == "valid")
    for name, place in places.items():
        at = place[free].tolist()
        if len(free) == 1:
            at.append(float(as_tensor(drawn.function(place.unsqueeze(0)), "of").detach()))
        shown = "recommended" if name == "best" else name
        star: dict[str, Any] = {"linestyle": "", "marker": "*", "markersize": 14, "markeredgecolor": "white"}
        ax.plot(*at, label=shown, zorder=5, color=VERMILLION, **star)
    finish(ax, names[0], names[1] if len(free) == 2 else drawn.label, drawn.title, legend="none")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=SMALL, framealpha=0.85)  # legible on a map
    return ax


def plot_threshold(
    model: Model,
    bounds: Tensor,
    level: float,
    *,
    dim: int | str = 1,
    probability: float = 0.95,
    resolution: int = 65,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot where the probability of a yes crosses a level: posterior median and credible band over the other input.

    The threshold is the first crossing along the input `dim`, the vertical axis, from its lower bound up; the band ends
    at the bounds, and `resolution` is along the other input. `probability` and `level` are as for `threshold`, other
    arguments as for `plot_posterior`. For three inputs draw a map of `threshold` with `plot_map`.

    Example:
        >>> ax = plot_threshold(SkewGP(train_X, Binary(labels)), bounds, level=0.75)

    Raises:
        InputDataError: If bounds do not fit the model, `dim` names no input, or as in `threshold`.
        UnsupportedError: If there are more or fewer than two inputs, or the model takes no yes/no answers.
    """
    bounds = check_bounds(bounds, model, (2,), "plot_threshold")
    if bounds.shape[1] > 2:
        raise UnsupportedError("plot_threshold draws models of two inputs; draw a map of thresholds with plot_map.")
    names = input_labels(bounds, inputs)
    dim = as_column(dim, 2, "dim", () if inputs is None else inputs)
    other = 1 - dim
    x = linspace(bounds, other, resolution)
    X = torch.zeros(len(x), 2).to(x)
    X[:, other] = x
    low, high = bounds[:, dim].tolist()
    crossing = threshold(model, X, level, dim, (low, high), probability)
    ax = new_axes(ax, (5.4, 3.6))
    lower, upper = (array(end.clamp(low, high)) for end in (crossing.lower, crossing.upper))
    ax.fill_between(array(x), lower, upper, color=BLUE, alpha=0.2, linewidth=0, label=f"{probability:.0%} band")
    median = torch.where(crossing.median.isfinite(), crossing.median, torch.nan)
    ax.plot(array(x), array(median), color=BLUE, linewidth=1.8, label="median", zorder=3)
    mark_points(ax, model, bounds, (other, dim))
    ax.set_xlim(float(x[0]), float(x[-1]))
    ax.set_ylim(low, high)
    return finish(ax, names[other], names[dim], f"P(yes) = {level:g}", legend="beside")


class _Slice:
    """The marginals of a model along the one free input of its bounds, and the edges of bands, `2 x n` each."""

    def __init__(self, model: Model, bounds: Tensor, probabilities: Sequence[float], resolution: int) -> None:
        (free,) = free_inputs(bounds)
        categories = values_of_category(model, bounds, free)
        self.is_category = categories is not None
        self.x = linspace(bounds, free, resolution) if categories is None else categories
        self.marginals = Marginals(model, points_between(bounds, self.x))
        self.bands = _band_edges(self.marginals, probabilities)
        self.probabilities = probabilities

    def draw(self, ax: Axes, color: str) -> None:
        """Mean or median, and over it bands from narrow and dark to wide and light, in this order in the legend."""
        x, center, name = array(self.x), array(self.marginals.center), self.marginals.center_name
        line: dict[str, Any] = {"linestyle": "", "marker": "o"} if self.is_category else {"linewidth": 1.8}
        ax.plot(x, center, color=color, label=name, zorder=3, **line)
        ordered = sorted(zip(self.probabilities, self.bands, strict=True), key=lambda pair: pair[0])
        for rank, (probability, (lower, upper)) in enumerate(ordered):
            share = (rank + 1) / (len(ordered) + 1)  # of white
            tint = tuple(share + (1 - share) * c for c in to_rgb(color))
            band, zorder = f"{100 * probability:g} %", 1 - 0.01 * rank
            look: dict[str, Any] = {"color": tint, "label": band, "zorder": zorder}
            if self.is_category:
                ax.vlines(x, array(lower), array(upper), linewidth=6, **look)
            else:
                ax.fill_between(x, array(lower), array(upper), linewidth=0, **look)
        if self.is_category:
            ax.set_xticks(x)
            ax.margins(x=0.1)
        else:
            ax.set_xlim(x[0], x[-1])


def _band_edges(marginals: Marginals, probabilities: Sequence[float], gaussian: bool = False) -> list[Tensor]:
    """Lower and upper edge of every band, `2 x n` each."""
    if isinstance(probabilities, str) or not isinstance(probabilities, Iterable):
        raise InputDataError(f"probabilities must be a list, such as [0.5, 0.95]; got {probabilities!r}.")
    levels = [0.5 + sign * as_probability(p, "probabilities") / 2 for p in probabilities for sign in (-1, 1)]
    return list(marginals.quantile(levels, gaussian).unflatten(0, (-1, 2))) if levels else []


def _is_unscaled(model: Model, bounds: Tensor, values: Tensor) -> bool:
    """Whether a domain is long in the kernel's space, and most values are close to the median."""
    near = (values - values.median()).abs() <= 0.02 * (values.max() - values.min())
    transform = deepcopy(getattr(model, "input_transform", None))  # one that learns its bounds learns none of these
    extent = (bounds if transform is None else transform.eval()(bounds)).diff(dim=0).max()
    return bool(near.double().mean() > 0.8 and extent > MAX_EXTENT)


class _Drawn(NamedTuple):
    """A function of points, and how its values are shown."""

    function: Callable[[Tensor], Tensor]
    label: str = ""
    title: str = ""
    limits: Any = None
    level: float | None = None
    diverging: bool = False


def _drawn(model: Model | None, of: Any, reference: Tensor | None) -> _Drawn:
    if callable(of):
        return _Drawn(of)
    if of not in get_args(Quantity):
        raise InputDataError(f"of must be one of {', '.join(get_args(Quantity))}, or a function of points; got {of!r}.")
    check_class(model, "model", Model)
    assert model is not None
    if (of == "win") != (reference is not None):
        raise InputDataError('reference is the point that others are compared with for of="win", which needs it.')
    if reference is not None:
        return _win(model, like_inputs(reference, model))
    if of in OF_MARGINALS:
        title, function = OF_MARGINALS[of]
        label = of if of == "skewness" else value_label(model, of)  # a skewness has no unit
        return _Drawn(lambda X: function(Marginals(model, X)), label, title, diverging=of == "skewness")
    log_probability = LogProbabilityOfValidity(model)
    _, observations = known_data(model)
    labels = {mark.label for observation in observations for mark in observation.marks() if mark.symbol == "yes"}
    event = labels.pop() if len(labels) == 1 and labels != {"valid"} else "validity"
    label = f"probability of {event}"
    return _Drawn(lambda X: log_probability(X.unsqueeze(-2)).exp(), label, label.capitalize(), (0.0, 1.0))


def _win(model: Model, reference: Tensor) -> _Drawn:
    kind = kind_of_duels(model, "plot_map")

    def win_probability(X: Tensor) -> Tensor:
        duels, each = torch.stack([X, reference.expand_as(X)], dim=-2), []
        for member in members_of(model, "plot_map"):
            part = member.answering_likelihood.for_kind(kind)
            each.append(part(member.latent_posterior(duels), scale=member.outcome_scale).probs)
        probabilities: Tensor = torch.stack(each).mean(0)
        return probabilities if probabilities.ndim == 1 else probabilities[..., 0]  # with ties three outcomes

    return _Drawn(win_probability, "probability of being preferred", "Against the reference", (0.0, 1.0), 0.5)


def _line(ax: Axes, axes: Sequence[Any], z: Any, drawn: _Drawn) -> None:
    ax.plot(*axes, z, color=BLUE, linewidth=1.8)
    if drawn.diverging:
        ax.axhline(0, color=BLACK, linewidth=0.8, linestyle=":")
    if drawn.level is not None:
        ax.axhline(drawn.level, color=VERMILLION, linewidth=1, linestyle="--", label=f"level {drawn.level:g}")
    if drawn.limits is not None:
        low, high = drawn.limits
        margin = 0.04 * (high - low)
        ax.set_ylim(low - margin, high + margin)
    ax.set_xlim(axes[0][0], axes[0][-1])


def _surface(ax: Axes, axes: Sequence[Any], z: Any, drawn: _Drawn) -> None:
    largest = float(abs(z).max()) or 1.0
    low, high = drawn.limits or ((-largest, largest) if drawn.diverging else (float(z.min()), float(z.max())))
    colors = DIVERGING if drawn.diverging else SEQUENTIAL
    mesh = ax.pcolormesh(*axes, z, shading="gouraud", cmap=colors, vmin=low, vmax=high, rasterized=True)
    # no level set at zero: the sign of a skewness near zero is Monte Carlo error
    levels = [low + (high - low) * k / 8 for k in range(1, 8) if not (drawn.diverging and k == 4)]
    levels = [entry for entry in levels if z.min() < entry < z.max()]
    if levels:
        color, style = (BLACK, None) if drawn.diverging else ("white", "solid")
        ax.contour(*axes, z, levels=levels, colors=color, linestyles=style, linewidths=0.5, alpha=0.6)
    level = drawn.level
    if level is not None and z.min() < level < z.max():
        ax.contour(*axes, z, levels=[level], colors=VERMILLION, linewidths=1.6, linestyles="dashed")
        ax.plot([], [], color=VERMILLION, linewidth=1.6, linestyle="--", label=f"level {level:g}")
    ax.figure.colorbar(mesh, ax=ax, label=drawn.label)
