"""Pictures of models and of optimisations. Needs matplotlib: `pip install botorch_skewgp[plot]`.

`functions` draws functions and densities with their bands, `maps` what varies over one or two inputs, `judges` what a
panel has in common and what not, `traces` the progress of optimisations and of Markov chains. Every function draws on
the axes that it is given, or on a new figure of its own, and returns the axes (an array of them for several panels);
nothing global is touched, neither `rcParams` nor pyplot's current figure. In a notebook, give it an axes of
`matplotlib.pyplot.subplots()`, or end the cell with `ax.figure`. Points are in the units of `train_X`, and functions in
those of the model's posterior.
"""

from botorch_skewgp.plots.functions import plot_marginal, plot_posterior, plot_slices
from botorch_skewgp.plots.judges import plot_agreement, plot_tastes
from botorch_skewgp.plots.maps import plot_duels, plot_interval_width, plot_map, plot_skewness, plot_validity
from botorch_skewgp.plots.style import COLORS
from botorch_skewgp.plots.traces import plot_draws, plot_optimization_trace

__all__ = [
    "COLORS",
    "plot_agreement",
    "plot_draws",
    "plot_duels",
    "plot_interval_width",
    "plot_map",
    "plot_marginal",
    "plot_optimization_trace",
    "plot_posterior",
    "plot_skewness",
    "plot_slices",
    "plot_tastes",
    "plot_validity",
]
