"""What an experiment is, and how its trials are run."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import torch

from benchmarks._reporting import Table, environment, publish, say

Row = dict[str, str]


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Args:
        name: What it is called on the command line.
        figure: Where it stands.
        claim: What the paper says.
        trials: The number of trials in the paper.
        columns: What a row of a trial holds, beside the trial's number.
        trial: The rows of a trial from its number and whether it is to be as small as runs at all.
        tables: Tables of all rows.
        plot: Draws all rows on axes of matplotlib.
    """

    name: str
    figure: str
    claim: str
    trials: int
    columns: tuple[str, ...]
    trial: Callable[[int, bool], list[Row]]
    tables: Callable[[Sequence[Row]], list[Table]]
    plot: Callable[[Any, Sequence[Row]], None]


def run_experiment(
    experiment: Experiment, trials: int | None, smoke: bool, processes: int, folder: Path | None
) -> None:
    """Run the trials of an experiment that are not there yet, and make its tables and its picture of all of them.

    Args:
        experiment: The experiment.
        trials: The number of trials; the paper's if `None`, one in a smoke test.
        smoke: Whether trials are to be as small as run at all.
        processes: The number of trials at a time.
        folder: Where rows, tables and the picture are kept; nowhere if `None`.
    """
    wanted = trials if trials is not None else 1 if smoke else experiment.trials
    path = None if folder is None else folder / f"{experiment.name}_runs.csv"
    rows = _read(path) if path is not None and path.exists() else []
    known = {int(row["trial"]) for row in rows}
    missing = [number for number in range(wanted) if number not in known]
    say(f"{experiment.name}: {len(missing)} trials, {len(known)} known")
    jobs = (joblib.delayed(_trial)(experiment, number, smoke) for number in missing)
    for found in joblib.Parallel(n_jobs=processes, return_as="generator_unordered")(jobs):
        rows += found
        if path is not None:
            _append(path, ("trial", *experiment.columns), found)
        say(f"{experiment.name}, trial {found[0]['trial']}: {found[-1]}")
    rows = [row for row in rows if int(row["trial"]) < wanted]
    tables = experiment.tables(rows)
    for table in tables:
        table.notes += [f"{experiment.figure}; {wanted} trials, {experiment.trials} in the paper", environment()]
    publish(tables, folder)
    if folder is not None:
        _picture(experiment, rows, folder / f"{experiment.name}.png")


def _picture(experiment: Experiment, rows: Sequence[Row], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 3.8))
    experiment.plot(ax, rows)
    ax.legend(frameon=False)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)


def _trial(experiment: Experiment, number: int, smoke: bool) -> list[Row]:
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = experiment.trial(number, smoke)
    return [{"trial": str(number), **row} for row in found]


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _append(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """All rows of a trial at once, so that one that was cut off leaves none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def paired(differences: Sequence[float]) -> tuple[float, float]:
    """The mean of paired differences and its standard error, NaN for a single one."""
    values = torch.tensor(differences, dtype=torch.float64)
    error = float(values.std()) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return float(values.mean()), error
