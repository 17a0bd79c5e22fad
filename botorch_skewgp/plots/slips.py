"""The probabilities that answers are slips."""

from __future__ import annotations

from botorch.exceptions.errors import InputDataError
from matplotlib.axes import Axes

from botorch_skewgp.models import SkewGP
from botorch_skewgp.plots.style import BLUE, VERMILLION, array, finish, new_axes


def plot_slips(model: SkewGP, ax: Axes | None = None) -> Axes:
    r"""Plot the posterior probability that each answer is a slip, with the numbers of those above one half.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs), likelihood=PreferenceLikelihood(slip=0.05))
        >>> ax = plot_slips(model)

    Args:
        model: A model whose likelihood has slips.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If the model is neither a SkewGP nor an ensemble.
    """
    if not hasattr(model, "slips"):
        raise InputDataError(f"plot_slips needs a SkewGP or an ensemble; got {type(model).__name__}.")
    slips = array(model.slips())
    ax = new_axes(ax)
    doubtful = (slips > 0.5).nonzero()[0]
    ax.vlines(range(len(slips)), 0, slips, color=BLUE, linewidth=1, label="answer")
    ax.plot(doubtful, slips[doubtful], "o", color=VERMILLION, markersize=4, label="a slip rather than not")
    for i in doubtful:
        ax.annotate(str(i), (i, slips[i]), textcoords="offset points", xytext=(0, 3), ha="center", fontsize=7)
    ax.set_ylim(0, 1.08)
    return finish(ax, "answer", "probability of a slip", legend="beside")
