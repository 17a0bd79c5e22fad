"""The progress of optimisations, and the Markov chains of a posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations.checks import as_count, as_number, as_probability, as_tensor, check_class
from botorch_skewgp.plots.style import BLACK, BLUE, COLORS, VERMILLION, array, finish, new_axes, new_panels
from botorch_skewgp.truncated.diagnostics import diagnose
from botorch_skewgp.truncated.draws import R_HAT_LIMIT, Draws

MAX_LAG = 40  # of autocorrelations


def plot_optimization_trace(
    values: Tensor | Mapping[str, Tensor],
    *,
    optimum: float | None = None,
    maximize: bool = True,
    best_so_far: bool = True,
    first: int = 1,
    probability: float = 0.5,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the best value or the regret by the number of observations: the median over runs and a band.

    Example:
        >>> ax = plot_optimization_trace({"one run": values}, optimum=2.0)

    Args:
        values: An `n`-dim tensor of one run or a `runs x n` tensor of several, in the order of observation; or such
            tensors by the names of methods.
        optimum: The best possible value, to draw the regret, the distance to it, on a logarithmic axis.
        maximize: Whether larger values are better.
        best_so_far: Whether to draw the best value up to each observation (for measured values), or the values
            themselves (for recommended points).
        first: The number of observations at the first entry.
        probability: The probability of the band between quantiles over runs; the quartiles by default.
        ax: The axes to draw on; new ones if `None`.

    Returns:
        The axes.

    Raises:
        InputDataError: If values are not finite or of another shape, a value is beyond the optimum, or the probability
            is outside (0, 1).
    """
    probability, first = as_probability(probability, "probability"), as_count(first, "first", least=0)
    optimum = None if optimum is None else as_number(optimum, "optimum")
    methods = values if isinstance(values, Mapping) else {"": values}
    curves = {name: _curves(name, entry, optimum, maximize, best_so_far) for name, entry in methods.items()}
    ax = new_axes(ax)
    several = any(len(runs) > 1 for runs in curves.values())
    for i, (name, runs) in enumerate(curves.items()):
        color = COLORS[i % len(COLORS)]
        x = np.arange(first, first + runs.shape[-1])
        levels = runs.new_tensor([0.5 - probability / 2, 0.5, 0.5 + probability / 2])
        lower, median, upper = (array(edge) for edge in runs.quantile(levels, dim=0))
        ax.plot(x, median, color=color, linewidth=1.8, label=name or ("median" if several else None), zorder=3)
        if len(runs) > 1:
            label = None if name else f"{100 * probability:g} % of runs"
            ax.fill_between(x, lower, upper, color=color, alpha=0.2, linewidth=0, label=label)
    if optimum is not None and all(bool((runs > 0).any()) for runs in curves.values()):
        ax.set_yscale("log", nonpositive="clip")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    what = "value" if optimum is None else "regret"
    return finish(
        ax,
        "number of observations",
        ("regret of the best" if optimum is not None else "best value") + " so far" if best_so_far else what,
    )


def _curves(name: str, values: Tensor, optimum: float | None, maximize: bool, best_so_far: bool) -> Tensor:
    """The curves of the runs of one method, `runs x n`, in float64."""
    of = f" of {name!r}" if name else ""
    runs = as_tensor(values, f"values{of}").double().cpu()
    runs = runs.unsqueeze(0) if runs.ndim == 1 else runs
    if runs.ndim != 2 or runs.numel() == 0 or not runs.isfinite().all():
        raise InputDataError(f"values{of} must be finite and n or runs x n; got shape {tuple(runs.shape)}.")
    sign = 1.0 if maximize else -1.0
    better = sign * runs
    if best_so_far:
        better = better.cummax(-1).values
    if optimum is None:
        return sign * better
    regret = sign * optimum - better
    if (regret < 0).any():
        raise InputDataError(
            f"values{of} are beyond the optimum {optimum} by up to {float(-regret.min()):.3g}; check the optimum, and "
            f"maximize={maximize}."
        )
    return regret


def plot_draws(
    model: SkewGP | Draws,
    *,
    row: int | None = None,
    ax: Axes | Iterable[Axes] | None = None,
) -> np.ndarray:
    r"""Plot diagnostics of the latent draws of a posterior: trace, autocorrelation, R-hat and effective sizes.

    The first two panels show one row: the value of one observation's linear functional, with its noise. Good chains are
    alike, without drift, and their autocorrelation is within the grey band of independent draws. The third panel has
    R-hat and the effective sample size of all functionals monitored while drawing.

    Example:
        >>> panels = plot_draws(model)

    Args:
        model: A SkewGP, or the draws themselves.
        row: The row of the first two panels; that of minimum effective sample size if `None`.
        ax: The 3 axes to draw on; new ones if `None`.

    Returns:
        The 3 axes.

    Raises:
        InputDataError: If `model` is something else, the row does not exist, or `ax` does not hold 3 axes.
        UnsupportedError: If there are no draws, or the draws are a batch.
    """
    if not isinstance(model, Draws):
        check_class(model, "model", SkewGP)
    draws: Any = model if isinstance(model, Draws) else model.draws  # mypy loses properties of modules
    if draws.rows.ndim != 2:
        raise UnsupportedError(
            f"plot_draws takes a single set of draws; got a batch of shape {tuple(draws.rows.shape)}."
        )
    if draws.rows.shape[-1] == 0:
        raise UnsupportedError("There are no draws: with numbers alone the posterior is Gaussian, in closed form.")
    row = None if row is None else as_count(row, "row", least=0, most=draws.rows.shape[-1] - 1)
    chains = draws.rows.double().cpu().unflatten(0, (draws.num_chains, -1)).transpose(0, 1)  # steps x chains x rows
    if row is None:
        row = int(diagnose(chains).bulk_effective_size.argmin())
    chosen = chains[..., row].mT
    num_chains, num_steps = chosen.shape
    trace, correlation, sizes = panels = new_panels(ax, 3, (3.5, 2.9))

    for i, chain in enumerate(chosen):
        trace.plot(array(chain), color=COLORS[i % len(COLORS)], linewidth=0.5, alpha=0.8)
    finish(trace, "step of the chain", f"row {row}", f"Trace of {num_chains} chains")

    lags = min(MAX_LAG, num_steps - 1)
    for i, values in enumerate(_autocorrelation(chosen, lags)):
        correlation.plot(array(values), color=COLORS[i % len(COLORS)], linewidth=1, marker=".", markersize=3)
    noise = 1.96 / num_steps**0.5
    correlation.axhspan(-noise, noise, color="0.88", linewidth=0, zorder=0)
    correlation.axhline(0, color=BLACK, linewidth=0.6)
    finish(correlation, "lag in steps", "autocorrelation", f"Autocorrelation of row {row}")

    r_hat, size = draws.r_hat.cpu(), draws.effective_size.cpu()
    sizes.plot(
        array(size), array(r_hat), linestyle="", marker="o", markersize=4, alpha=0.7, color=BLUE, markeredgewidth=0
    )
    sizes.axhline(R_HAT_LIMIT, color=VERMILLION, linestyle="--", linewidth=1, label=f"R-hat {R_HAT_LIMIT}")
    sizes.axvline(draws.num_draws, color=BLACK, linestyle=":", linewidth=1, label="number of draws")
    sizes.set_xlim(left=0)
    finish(sizes, "effective sample size", "R-hat", f"Minimum effective size: {float(size.min()):.0f}")
    return panels


def _autocorrelation(chains: Tensor, lags: int) -> Tensor:
    """Autocorrelations at lags `0, ..., lags` of `c x n` chains about their common mean, `c x (lags + 1)`."""
    n = chains.shape[-1]
    spectrum = torch.fft.rfft(chains - chains.mean(), n=2 * n)
    covariance = torch.fft.irfft(spectrum.abs().square(), n=2 * n)[..., : lags + 1]
    return covariance / covariance[..., :1]
