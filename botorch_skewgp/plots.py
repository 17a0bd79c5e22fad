"""Pictures of a fitted model. Needs matplotlib: `pip install botorch_skewgp[plot]`.

Every function returns a `matplotlib.figure.Figure` of its own and leaves matplotlib's global state alone. Points are
in the units of `train_X`, utilities in those of the model.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.model import Model
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.dpi": 120,
    "font.size": 9,
    "legend.frameon": False,
}
MEAN_COLOR = "#1f4e79"
BAND_COLOR = "#9dc3e6"
BEST_COLOR = "#c00000"


def _posterior(model: Model, X: Tensor) -> Any:
    """The posterior, as one of which not every one of BoTorch's has the quantiles and the skewness."""
    return model.posterior(X)


def _quantiles(posterior: Any, levels: list[float]) -> Tensor:
    """Quantiles of a posterior over `n x 1` outcomes, `len(levels) x n`."""
    return posterior.quantile(posterior.mean.new_tensor(levels)).squeeze(-1)


def _linspace(bounds: Tensor, i: int, num: int) -> Tensor:
    """Values of input `i` at even steps from its lower to its upper bound."""
    lower, upper = bounds[:, i]
    return lower + (upper - lower) * torch.linspace(0, 1, num, dtype=bounds.dtype, device=bounds.device)


def plot_duels(
    model: Model,
    bounds: Tensor,
    points: Tensor,
    pairs: Tensor,
    best: Tensor | None = None,
    probability: float = 0.95,
    resolution: int = 32,
) -> Figure:
    r"""The posterior of a utility over two inputs, with the duels that it was learned from.

    The left panel shows level sets of the posterior mean and an arrow from the winner of each duel to its loser. The
    right panel shows the width of the equal-tailed credible interval and, as labelled lines, the skewness.

    Args:
        model: A fitted model with one output whose posterior has quantiles and a skewness.
        bounds: A `2 x 2` tensor of lower and upper bounds.
        points: An `n x 2` tensor of the points that were compared.
        pairs: An `m x 2` integer tensor of rows of `points`, winner first.
        best: The point to be marked, a tensor of 2 elements.
        probability: The probability of the credible interval.
        resolution: The number of grid points along each input.

    Raises:
        ValueError: If `bounds` is not `2 x 2`.
    """
    if bounds.shape != (2, 2):
        raise ValueError(f"plot_duels draws two inputs: bounds must be 2 x 2; got {tuple(bounds.shape)}.")
    x, y = torch.meshgrid(_linspace(bounds, 0, resolution), _linspace(bounds, 1, resolution), indexing="xy")
    with torch.no_grad():
        posterior = _posterior(model, torch.stack([x.flatten(), y.flatten()], dim=-1))
        lower, upper = _quantiles(posterior, [0.5 - probability / 2, 0.5 + probability / 2])
        mean, width, skewness = (
            value.reshape(resolution, resolution).cpu() for value in (posterior.mean, upper - lower, posterior.skewness)
        )
    x, y = x.cpu(), y.cpu()

    with rc_context(STYLE):
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        filled = left.contourf(x, y, mean, levels=20, cmap="Blues")
        figure.colorbar(filled, ax=left, label="utility")
        left.set_title("Posterior mean and duels (winner to loser)")
        winners, losers = points[pairs].cpu().permute(1, 2, 0)
        left.quiver(*winners, *(losers - winners), angles="xy", scale_units="xy", scale=1, width=0.003, alpha=0.5)
        left.plot(*points.cpu().T, linestyle="", marker=".", color="black")

        filled = right.contourf(x, y, width, levels=20, cmap="Oranges")
        figure.colorbar(filled, ax=right, label="utility")
        right.set_title(f"Width of the {probability:.0%} interval; lines: skewness")
        right.clabel(right.contour(x, y, skewness, levels=6, colors="black", linewidths=0.7), fontsize=7)
        if best is not None:
            for axes in (left, right):
                axes.plot(
                    *best.flatten().tolist(), linestyle="", marker="o", markersize=9, markerfacecolor="none",
                    markeredgecolor=BEST_COLOR, markeredgewidth=2, label="recommended",
                )  # fmt: skip
            left.legend(loc="upper left")
        for axes in (left, right):
            axes.set_xlabel("$x_1$")
        left.set_ylabel("$x_2$")
    return figure


def plot_slices(model: Model, point: Tensor, bounds: Tensor, probability: float = 0.95, resolution: int = 65) -> Figure:
    r"""The posterior of a utility along each input through one point: mean, median and credible interval.

    Args:
        model: A fitted model with one output whose posterior has quantiles.
        point: A tensor of `d` elements, the point that the slices run through.
        bounds: A `2 x d` tensor of lower and upper bounds.
        probability: The probability of the equal-tailed credible interval.
        resolution: The number of points along each slice.
    """
    point = point.flatten()
    d = len(point)
    columns = min(3, d)
    rows = -(-d // columns)
    with rc_context(STYLE):
        figure = Figure(figsize=(3.2 * columns, 2.4 * rows + 0.4), layout="constrained")
        panels: list[Axes] = list(figure.subplots(rows, columns, sharey=True, squeeze=False).flat)
        for axes in panels[d:]:
            axes.remove()
        for i, axes in enumerate(panels[:d]):
            x = _linspace(bounds, i, resolution)
            X = point.repeat(resolution, 1)
            X[:, i] = x
            with torch.no_grad():
                posterior = _posterior(model, X)
                levels = [0.5 - probability / 2, 0.5, 0.5 + probability / 2]
                lower, median, upper = _quantiles(posterior, levels).cpu()
                mean = posterior.mean.squeeze(-1).cpu()
            x = x.cpu()
            axes.fill_between(x, lower, upper, color=BAND_COLOR, alpha=0.5, label=f"{probability:.0%} interval")
            axes.plot(x, mean, color=MEAN_COLOR, label="mean")
            axes.plot(x, median, color=MEAN_COLOR, linestyle=":", label="median")
            axes.axvline(float(point[i]), color=BEST_COLOR, linewidth=1, label="the point")
            axes.set_xlabel(f"$x_{{{i + 1}}}$")
            if i % columns == 0:
                axes.set_ylabel("utility")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure
