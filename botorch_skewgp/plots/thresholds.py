"""The threshold along one of two inputs as a curve over the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from matplotlib.axes import Axes
from torch import Tensor

from botorch_skewgp.plots.data import mark_points
from botorch_skewgp.plots.marginals import check_bounds, input_labels, linspace
from botorch_skewgp.plots.style import BLUE, array, finish, new_axes
from botorch_skewgp.thresholds import threshold


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
