"""Quantities over one or two inputs: lines, and maps with level sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from matplotlib.axes import Axes
from torch import Tensor

from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity
from botorch_skewgp.observations.checks import as_number, as_tensor, check_class
from botorch_skewgp.plots.data import mark_points
from botorch_skewgp.plots.marginals import (
    Marginals,
    as_point,
    check_bounds,
    free_inputs,
    input_labels,
    known_data,
    like_inputs,
    linspace,
    points_between,
    value_label,
)
from botorch_skewgp.plots.style import BLACK, BLUE, DIVERGING, SEQUENTIAL, SMALL, VERMILLION, array, finish, new_axes
from botorch_skewgp.protocols import kind_of_duels, members_of

Quantity = Literal["mean", "skewness", "width", "win", "valid"]
ONE, TWO = 201, 48  # grid points along one input and along each of two
MAX_EXTENT = 3.0  # of a domain in the kernel's space, whose default priors are for the unit cube
NOT_SCALED = "constant except beside the data: inputs are not scaled\n(input_transform=Normalize(d, bounds=bounds))"


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

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds, points or names do not fit the model, `of` is not known, or a function does not
            return a finite value for each point.
        UnsupportedError: If more than two inputs are free, or the model does not have the quantity.
    """
    bounds = check_bounds(bounds, model, (1, 2), "plot_map")
    free, names = free_inputs(bounds), input_labels(bounds, inputs)
    named = {"reference": reference, "recommended": best}
    places = {
        name: as_point(place, "best" if name == "recommended" else name, bounds.shape[1]).to(bounds)
        for name, place in named.items()
        if place is not None
    }
    drawn = _drawn(model, of, places.get("reference"))
    given: dict[str, Any] = {"label": label, "title": title, "level": level, "limits": limits}
    drawn = drawn._replace(**{name: value for name, value in given.items() if value is not None})
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
    ends = None if drawn.limits is None else tuple(as_number(end, "limits") for end in drawn.limits)
    if len(free) == 1:
        ax = _line(new_axes(ax), array(grids[0]), array(values.flatten()), drawn, ends)
    else:
        z = array(values.reshape(num, num))
        ax = _surface(new_axes(ax, (4.6, 3.8)), [array(grid) for grid in grids], z, drawn, ends)
    if (
        model is not None
        and _is_nearly_constant(values)
        and model.transform_inputs(bounds).diff(dim=0).max() > MAX_EXTENT
    ):
        ax.text(
            0.5, 0.5, NOT_SCALED, transform=ax.transAxes, ha="center", fontsize=SMALL, bbox={"color": "white"}, zorder=6
        )
    if data and model is not None:
        mark_points(ax, model, bounds, free, of == "valid")
    for name, place in places.items():
        at = place[free].tolist()
        height = [float(as_tensor(drawn.function(place.unsqueeze(0)), "of").detach())] if len(free) == 1 else []
        ax.plot(
            *at, *height, linestyle="", marker="*", markersize=14, color=VERMILLION, markeredgecolor="white",
            label=name, zorder=5,
        )  # fmt: skip
    finish(ax, names[0], names[1] if len(free) == 2 else drawn.label, drawn.title, legend="none")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=SMALL, framealpha=0.85)  # legible on a map
    return ax


def _is_nearly_constant(values: Tensor) -> bool:
    """Whether four fifths of the values lie within a fiftieth of their range from the median."""
    near = (values - values.median()).abs() <= 0.02 * (values.max() - values.min())
    return bool(near.double().mean() > 0.8)


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
    if of == "mean":
        return _Drawn(lambda X: Marginals(model, X).mean, value_label(model, "mean"), "Posterior mean")
    if of == "skewness":
        title = "Skewness of the posterior"
        return _Drawn(lambda X: Marginals(model, X).skewness, "skewness", title, diverging=True)
    if of == "width":
        title = "Width of the 95 % interval"
        return _Drawn(lambda X: _width(Marginals(model, X)), value_label(model, "width"), title)
    if of == "win":
        assert reference is not None
        return _win(model, like_inputs(reference, model))
    log_probability = LogProbabilityOfValidity(model)
    marks = [mark for entry in known_data(model)[1] for mark in entry.marks() if mark.symbol == "yes"]
    told = {mark.label for mark in marks}
    what = f"probability of {told.pop() if len(told) == 1 and told != {'valid'} else 'validity'}"
    return _Drawn(lambda X: log_probability(X.unsqueeze(-2)).exp(), what, what.capitalize(), (0.0, 1.0))


def _width(distribution: Marginals) -> Tensor:
    low, high = distribution.quantile([0.025, 0.975])
    return high - low


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


def _line(ax: Axes, x: Any, z: Any, drawn: _Drawn, limits: Any) -> Axes:
    ax.plot(x, z, color=BLUE, linewidth=1.8)
    if drawn.diverging:
        ax.axhline(0, color=BLACK, linewidth=0.8, linestyle=":")
    if drawn.level is not None:
        ax.axhline(drawn.level, color=VERMILLION, linewidth=1, linestyle="--", label=f"level {drawn.level:g}")
    if limits is not None:
        margin = 0.04 * (limits[1] - limits[0])
        ax.set_ylim(limits[0] - margin, limits[1] + margin)
    ax.set_xlim(x[0], x[-1])
    return ax


def _surface(ax: Axes, axes: Sequence[Any], z: Any, drawn: _Drawn, limits: Any) -> Axes:
    largest = float(abs(z).max()) or 1.0
    low, high = limits or ((-largest, largest) if drawn.diverging else (float(z.min()), float(z.max())))
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
    return ax
