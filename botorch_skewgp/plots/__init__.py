"""Plots of models and of optimisations. Needs matplotlib, the extra `plot`.

`functions` draws functions and densities with their bands, `maps` quantities over one or two inputs, `outcomes` the
probabilities of outcomes and their reliability, `judges` the tastes and agreement of a panel, `slips` doubtful answers,
`thresholds` where a probability crosses a level, `leaderboards` items with intervals of their ranks, `traces` the
progress of optimisations and of Markov chains; `marginals` computes what they draw, `data` marks observations, and
`style` has colours and axes.

Every function draws on the axes given as `ax`, or on a new pyplot figure, and returns the axes (an array for several
panels); `plt.show()`, `plt.savefig(...)` and `plt.close()` then apply to that figure. `rcParams` do not change. Points
are in the units of `train_X`, functions in those of the model's posterior.
"""

from botorch_skewgp.plots.functions import plot_marginal, plot_posterior, plot_slices
from botorch_skewgp.plots.judges import plot_agreement, plot_segments, plot_tastes
from botorch_skewgp.plots.leaderboards import plot_leaderboard
from botorch_skewgp.plots.maps import plot_duels, plot_interval_width, plot_map, plot_skewness, plot_validity
from botorch_skewgp.plots.outcomes import plot_grades, plot_reliability, plot_win_probability
from botorch_skewgp.plots.slips import plot_slips
from botorch_skewgp.plots.style import COLORS
from botorch_skewgp.plots.thresholds import plot_threshold
from botorch_skewgp.plots.traces import plot_draws, plot_optimization_trace

__all__ = [
    "COLORS",
    "plot_agreement",
    "plot_draws",
    "plot_duels",
    "plot_grades",
    "plot_interval_width",
    "plot_leaderboard",
    "plot_map",
    "plot_marginal",
    "plot_optimization_trace",
    "plot_posterior",
    "plot_reliability",
    "plot_segments",
    "plot_skewness",
    "plot_slices",
    "plot_slips",
    "plot_tastes",
    "plot_threshold",
    "plot_validity",
    "plot_win_probability",
]
