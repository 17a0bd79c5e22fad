r"""Probabilities of outcomes: wins, grades, and the reliability of predicted probabilities.

.. [Murphy1977] A. H. Murphy, R. L. Winkler. Reliability of subjective probability forecasts of precipitation and
   temperature. Journal of the Royal Statistical Society C 26, 1977.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.model import Model
from matplotlib import colormaps
from matplotlib.axes import Axes
from torch import Tensor

from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import as_tensor
from botorch_skewgp.plots.maps import plot_map
from botorch_skewgp.plots.marginals import (
    as_point,
    check_bounds,
    free_inputs,
    input_labels,
    like_inputs,
    linspace,
    points_between,
)
from botorch_skewgp.plots.style import BLACK, BLUE, SEQUENTIAL, VERMILLION, array, finish, new_axes
from botorch_skewgp.protocols import kind_of_duels, members_of

MAX_BINS = 10  # of a reliability diagram


def plot_win_probability(
    model: Model,
    bounds: Tensor,
    reference: Tensor,
    *,
    resolution: int | None = None,
    inputs: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the probability that a point wins a duel against a reference point, over one or two inputs.

    Example:
        >>> ax = plot_win_probability(model, bounds, reference=train_X[0])

    Args:
        model: A model that takes comparisons, or an ensemble of such models.
        bounds: A `2 x d` tensor of lower and upper bounds, as in `plot_map`.
        reference: The reference point, a tensor of `d` elements.
        resolution: As in `plot_map`.
        inputs: As in `plot_map`.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If bounds or reference do not fit the model, or its likelihood takes no comparisons.
        UnsupportedError: If more than two inputs are free, or the model has several outputs.
    """
    bounds = check_bounds(bounds, model, (1, 2), "plot_win_probability")
    d = bounds.shape[1]
    reference = like_inputs(as_point(reference, "reference", d).unsqueeze(0), model)
    kind = kind_of_duels(model, "plot_win_probability")

    def win_probability(X: Tensor) -> Tensor:
        duels = torch.stack([X, reference.expand_as(X)], dim=-2)
        probabilities = _probabilities(model, kind, duels, "plot_win_probability")
        return probabilities if probabilities.ndim == 1 else probabilities[..., 0]  # with ties three outcomes

    ax = plot_map(
        win_probability, bounds, label="probability of being preferred", title="Against the reference",
        limits=(0.0, 1.0), level=0.5, resolution=resolution, inputs=inputs, ax=ax,
    )  # fmt: skip
    at = reference[0, free_inputs(bounds)].tolist()
    x, y = (*at, 0.5) if len(at) == 1 else at
    ax.plot(
        x, y, linestyle="", marker="*", markersize=13, color=VERMILLION, markeredgecolor="white", label="reference",
        zorder=5,
    )  # fmt: skip
    ax.legend(fontsize="small", framealpha=0.85)
    return ax


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
    members = members_of(model, "plot_grades")
    graded = [entry for entry in members[0].observations if hasattr(entry, "num_grades")]
    if not graded:
        raise InputDataError("plot_grades needs a model of grades (Ordinal observations).")
    x = linspace(bounds, free_inputs(bounds)[0], resolution)
    X = points_between(bounds, x)
    probabilities = _probabilities(model, type(graded[0]), X, "plot_grades").reshape(resolution, -1)
    ax = new_axes(ax)
    num_grades = probabilities.shape[-1]
    shades = colormaps[SEQUENTIAL](torch.linspace(0.1, 0.95, num_grades).tolist())
    labels = [f"grade {j}" for j in range(num_grades)]
    ax.stackplot(array(x), array(probabilities.mT), colors=shades, labels=labels, edgecolor="white", linewidth=0.5)
    ax.set(xlim=(float(x[0]), float(x[-1])), ylim=(0, 1))
    finish(ax, input_labels(bounds, inputs)[0], "probability", legend="beside")
    ax.legend(*(reversed(part) for part in ax.get_legend_handles_labels()), loc="center left", frameon=False,
              bbox_to_anchor=(1.0, 0.5), fontsize="small")  # fmt: skip
    return ax


def plot_reliability(probabilities: Tensor, outcomes: Tensor, *, ax: Axes | None = None) -> Axes:
    r"""Plot a reliability diagram ([Murphy1977]_): the frequency of an event against its predicted probability.

    Up to ten bins have equal numbers of predictions, at least five each. Bars are two standard errors of a bin's
    frequency if its predictions are right; a reliable model's bars cross the diagonal.

    Example:
        >>> ax = plot_reliability(torch.rand(200), torch.rand(200) < 0.5)

    Args:
        probabilities: An `n`-dim tensor of predicted probabilities of test data.
        outcomes: An `n`-dim tensor of 0 and 1, or of booleans: whether the event occurred.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If shapes differ, there are no predictions, a probability is outside [0, 1], or an outcome is
            neither 0 nor 1.
    """
    predicted = as_tensor(probabilities, "probabilities").double().cpu().flatten()
    occurred = as_tensor(outcomes, "outcomes").double().cpu().flatten()
    if predicted.shape != occurred.shape or not len(predicted):
        raise InputDataError(
            f"probabilities and outcomes must have one entry for each prediction; got {len(predicted)} and "
            f"{len(occurred)}."
        )
    if not ((predicted >= 0) & (predicted <= 1)).all() or not ((occurred == 0) | (occurred == 1)).all():
        raise InputDataError("probabilities must be between 0 and 1, and outcomes 0 or 1.")
    order = predicted.argsort()
    bins = order.tensor_split(max(1, min(MAX_BINS, len(order) // 5)))
    said = torch.stack([predicted[entry].mean() for entry in bins])
    seen = torch.stack([occurred[entry].mean() for entry in bins])
    error = torch.stack([(predicted[entry] * (1 - predicted[entry])).sum().sqrt() / len(entry) for entry in bins])
    ax = new_axes(ax, (3.8, 3.6))
    ax.plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle=":", label="reliable")
    ax.errorbar(
        array(said), array(seen), yerr=array(2 * error), color=BLUE, marker="o", markersize=4, linewidth=1,
        elinewidth=1, capsize=2, label="observed",
    )  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    return finish(ax, "predicted probability", "observed frequency")


def _probabilities(model: Model, kind: type[Observation], X: Tensor, user: str) -> Tensor:
    """The probabilities of the outcomes of one kind, averaged over an ensemble."""
    with torch.no_grad():
        each = [
            member.answering_likelihood.for_kind(kind)(member.latent_posterior(X), scale=member.outcome_scale).probs
            for member in members_of(model, user)
        ]
    average: Tensor = torch.stack(each).mean(0)
    return average
