"""The probabilities of grades along one input."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from matplotlib import colormaps
from matplotlib.axes import Axes
from torch import Tensor

from botorch_skewgp.plots.marginals import (
    check_bounds,
    free_inputs,
    input_labels,
    linspace,
    outcome_probabilities,
    points_between,
)
from botorch_skewgp.plots.style import SEQUENTIAL, SMALL, array, finish, new_axes
from botorch_skewgp.protocols import members_of


def plot_grades(
    model: Model,
    bounds: Tensor,
    *,
    resolution: int = 201,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the probability of each grade along one input, as a stack that adds up to one.

    Example:
        >>> graded = SkewGP(train_X[:, :1], Ordinal(torch.arange(len(train_X)) % 3, num_grades=3))
        >>> ax = plot_grades(graded, bounds[:, :1])

    Args:
        model: A model that takes grades, or an ensemble of such models.
        bounds: A `2 x d` tensor, the range to draw; inputs other than one are fixed by equal bounds.
        resolution: The number of points on the grid.
        inputs: The names of the model's inputs, for the axes.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds do not fit the model, or its data have no grades.
        UnsupportedError: If more than one input is free, or the model has several outputs.
    """
    bounds = check_bounds(bounds, model, (1,), "plot_grades")
    graded = [entry for entry in members_of(model, "plot_grades")[0].observations if hasattr(entry, "num_grades")]
    if not graded:
        raise InputDataError("plot_grades needs a model of grades (Ordinal observations).")
    x = linspace(bounds, free_inputs(bounds)[0], resolution)
    X = points_between(bounds, x)
    probabilities = outcome_probabilities(model, type(graded[0]), X, "plot_grades").reshape(resolution, -1)
    ax = new_axes(ax)
    num_grades = probabilities.shape[-1]
    shades = colormaps[SEQUENTIAL](torch.linspace(0.1, 0.95, num_grades).tolist())
    labels = [f"grade {j}" for j in range(num_grades)]
    ax.stackplot(array(x), array(probabilities.mT), colors=shades, labels=labels, edgecolor="white", linewidth=0.5)
    ax.set(xlim=(float(x[0]), float(x[-1])), ylim=(0, 1))
    finish(ax, input_labels(bounds, inputs)[0], "probability", legend="none")
    handles, names = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], names[::-1], loc="center left", frameon=False, bbox_to_anchor=(1.0, 0.5), fontsize=SMALL)
    return ax
