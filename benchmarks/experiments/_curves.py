"""Tables and pictures of regret against questions, for methods on functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks._reporting import Table
from benchmarks.experiments._experiment import Row, paired

FLOOR = 1e-6  # of regrets whose logarithm is taken


def trace_of(row: Row) -> list[float]:
    """The regrets of a row."""
    return [float(value) for value in row["regret"].split()]


def with_function(rows: Sequence[Row]) -> list[Row]:
    """Rows with a name of their function, if there is one only."""
    return [{"function": "regret", **row} for row in rows]


def regret_table(name: str, rows: Sequence[Row], reference: str, notes: Sequence[str] = ()) -> Table:
    """Regret half way and at the end, and the logarithm of the latter beside that of a reference method, paired.

    Rows have `trial`, `method`, `regret`, `seconds_per_step` and, if there are several, `function`.
    """
    rows = with_function(rows)
    table = Table(
        name,
        (
            "function",
            "method",
            "trials",
            "half_way",
            "regret",
            "error",
            "median",
            "log10_less",
            "its_error",
            "seconds_per_step",
        ),
        notes=[
            *notes,
            "half_way, regret: means, and the standard error of the latter, whose median follows",
            f"log10_less: log10 of the regret of {reference} less that of the method, paired (negative: {reference} is "
            f"better), floored at {FLOOR:g}; of all functions, errors are over runs",
        ],
    )
    methods = list(dict.fromkeys(row["method"] for row in rows))
    pooled: dict[str, list[float]] = {method: [] for method in methods}
    for function in dict.fromkeys(row["function"] for row in rows):
        last = {
            (row["method"], row["trial"]): math.log10(max(trace_of(row)[-1], FLOOR))
            for row in rows
            if row["function"] == function
        }
        for method in methods:
            own = [row for row in rows if (row["function"], row["method"]) == (function, method)]
            if not own:
                continue
            traces = [trace_of(row) for row in own]
            mean, error = paired([trace[-1] for trace in traces])
            trials = [row["trial"] for row in own if (reference, row["trial"]) in last]
            differences = [last[reference, trial] - last[method, trial] for trial in trials]
            pooled[method] += differences
            less, its_error = paired(differences) if differences else (None, None)
            table.add(
                function=function, method=method, trials=len(own), regret=mean, error=error,
                median=statistics.median(trace[-1] for trace in traces),
                half_way=paired([trace[len(trace) // 2] for trace in traces])[0],
                log10_less=less, its_error=its_error,
                seconds_per_step=paired([float(row["seconds_per_step"]) for row in own])[0],
            )  # fmt: skip
    if len({row["function"] for row in rows}) > 1:
        for method in methods:
            if pooled[method]:
                less, its_error = paired(pooled[method])
                table.add(
                    function="all", method=method, trials=len(pooled[method]), log10_less=less, its_error=its_error
                )
    return table


def plot_regret(figure: Any, rows: Sequence[Row], xlabel: str) -> None:
    """Mean regret and its standard error against questions, a panel for every function."""
    rows = with_function(rows)
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
                mean, error = mean_and_error(torch.tensor(traces, dtype=torch.float64))
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


def mean_and_error(traces: Tensor) -> tuple[Any, Any]:
    """Means over traces, and their standard errors (none of a single one)."""
    mean = traces.mean(0)
    error = traces.std(0) / len(traces) ** 0.5 if len(traces) > 1 else torch.zeros_like(mean)
    return mean.numpy(), error.numpy()
