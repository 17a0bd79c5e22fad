r"""The style of all plots: colours, new axes, labels.

.. [Okabe2008color] Okabe, Ito. Color universal design. 2008.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast

import matplotlib.pyplot as plt
import numpy as np
from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes
from torch import Tensor

from botorch_skewgp.checks import check_parts

# The colour-blind safe palette of [Okabe2008color]_, without yellow, which is faint on white.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000",
)  # fmt: skip
SEQUENTIAL, DIVERGING = "viridis", "PuOr"
DPI = 120
COLUMNS = 3  # of panels on a new figure
SMALL = "small"


def new_axes(ax: Axes | None, size: tuple[float, float] = (5.0, 3.2)) -> Axes:
    """The axes given, or new ones on a pyplot figure of a size in inches; raises `InputDataError` for anything else."""
    check_parts(ax=(ax, Axes))
    return plt.figure(figsize=size, dpi=DPI, layout="constrained").subplots() if ax is None else ax


def new_panels(ax: Axes | Iterable[Axes] | None, num: int, size: tuple[float, float], **options: Any) -> np.ndarray:
    """The panels given, or new ones in at most three columns, each of a size in inches."""
    if ax is None:
        columns = min(num, COLUMNS)
        rows = -(-num // columns)
        figure = plt.figure(figsize=(columns * size[0], rows * size[1]), dpi=DPI, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, **options).ravel()
        for panel in panels[num:]:
            panel.remove()
        return cast(np.ndarray, panels[:num])
    given = [ax] if isinstance(ax, Axes) else list(np.asarray(ax, dtype=object).ravel())
    if len(given) != num or not all(isinstance(panel, Axes) for panel in given):
        raise InputDataError(f"ax must hold {num} axes, one for each panel; got {len(given)} entries.")
    panels = np.empty(num, dtype=object)
    panels[:] = given
    return panels


def finish(
    ax: Axes, xlabel: str, ylabel: str, title: str = "", legend: Literal["none", "best", "beside"] = "best"
) -> Axes:
    """Label axes and remove the spines at the top and on the right."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if title:
        ax.set_title(title, fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    if legend != "none" and ax.get_legend_handles_labels()[0]:
        place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if legend == "beside" else {}
        ax.legend(frameon=False, fontsize=SMALL, **place)
    return ax


def legend_above(panels: np.ndarray, are_given: bool) -> None:
    """A legend of the first panel's labels: above all panels, or on the first if they are the user's."""
    handles, labels = panels[0].get_legend_handles_labels()
    if are_given:
        panels[0].legend(frameon=False, fontsize=SMALL)
        return
    columns = min(len(handles), 2 * min(COLUMNS, len(panels)))
    where: dict[str, Any] = {"loc": "outside upper center", "ncols": columns}
    panels[0].figure.legend(handles, labels, frameon=False, fontsize=SMALL, **where)


def array(x: Tensor) -> np.ndarray:
    """A tensor as a numpy array."""
    return x.detach().cpu().numpy()
