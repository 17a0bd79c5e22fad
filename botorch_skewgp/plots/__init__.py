"""Plots of models and of optimisations. Needs matplotlib, the extra `plot`.

`functions` draws functions, densities, thresholds and quantities over inputs, `tables` the tastes of a panel and items
with their ranks; `marginals` computes what they draw, `data` marks observations, and `style` has colours and axes.

Every function draws on the axes given as `ax`, or on a new pyplot figure, to which `plt.show()`, `plt.savefig(...)` and
`plt.close()` then apply, and returns the axes (an array for several panels). `rcParams` do not change. Points are in
the units of `train_X`, functions in those of the model's posterior.
"""

from botorch_skewgp.plots.functions import plot_map, plot_marginal, plot_posterior, plot_slices, plot_threshold
from botorch_skewgp.plots.style import COLORS
from botorch_skewgp.plots.tables import plot_leaderboard, plot_summary, plot_tastes

__all__ = [
    "COLORS",
    "plot_leaderboard",
    "plot_map",
    "plot_marginal",
    "plot_posterior",
    "plot_slices",
    "plot_summary",
    "plot_tastes",
    "plot_threshold",
]
