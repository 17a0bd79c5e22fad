"""Tables and pictures of regret against questions, for methods on functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks._race import Group, mean_and_error
from benchmarks._reporting import Cell
from benchmarks._runs import Row

FLOOR = 1e-6  # of regrets whose logarithm is taken
NOTES = (
    "half_way, regret: means, and the standard error of the latter, whose median follows",
    f"log10_less: log10 of the regret of the first method less that of the method, paired (negative: the first is "
    f"better), floored at {FLOOR:g}; of all functions, errors are over runs",
)


def trace_of(row: Row) -> list[float]:
    """The regrets of a row."""
    return [float(value) for value in row["regret"].split()]


def regrets(row: Row) -> dict[str, Cell]:
    """What the table needs of a row's regrets."""
    trace = trace_of(row)
    return {"half_way": trace[len(trace) // 2], "final": trace[-1], "log10": math.log10(max(trace[-1], FLOOR))}


def regret_columns(reference: str, runs: Group) -> dict[str, Cell]:
    """Regret half way and at the end, and the logarithm of the latter beside that of a reference method, paired."""
    mine, theirs = runs.beside("log10", method=reference)
    less, its_error = mean_and_error(theirs - mine)
    return {
        "trials": len(runs), "half_way": runs.mean("half_way"), "regret": runs.mean("final"),
        "error": runs.error("final"), "median": runs.median("final"), "log10_less": less, "its_error": its_error,
        "seconds_per_step": runs.mean("seconds_per_step"),
    }  # fmt: skip


def plot_regret(figure: Any, rows: Sequence[Row], xlabel: str) -> None:
    """Mean regret and its standard error against questions, a panel for every function."""
    rows = [{"function": "regret", **row} for row in rows]
    functions = list(dict.fromkeys(row["function"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    across = min(len(functions), 3)
    down = math.ceil(len(functions) / across)
    figure.set_size_inches(4 * across if across > 1 else 6, 3 * down + (0.6 if across > 1 else 1.0))
    panels = figure.subplots(down, across, squeeze=False).flat
    handles = {}
    for function, panel in zip(functions, panels, strict=False):  # functions first: what is left of panels is hidden
        for i, method in enumerate(methods):
            traces = [trace_of(row) for row in rows if (row["function"], row["method"]) == (function, method)]
            if traces:
                values = torch.tensor(traces, dtype=torch.float64)
                mean, error = values.mean(0).numpy(), (values.std(0, correction=0) / len(values) ** 0.5).numpy()
                steps = torch.arange(len(mean)).numpy()
                (handles[method],) = panel.semilogy(
                    steps, mean.clip(FLOOR), color=f"C{i % 10}", ls="-" if i < 10 else "--"
                )
                panel.fill_between(steps, (mean - error).clip(FLOOR), mean + error, color=f"C{i % 10}", alpha=0.15)
        panel.set(title=function, xlabel=xlabel, ylabel="regret")
    for panel in panels:
        panel.set_axis_off()
    place = {"loc": "outside lower center", "ncols": 4 if across > 1 else 2}
    figure.legend(handles.values(), handles.keys(), **place, frameon=False, fontsize=8)
