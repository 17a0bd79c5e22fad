"""What an experiment is, and how its trials are run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import torch

from benchmarks._reporting import Table, environment, publish, say
from benchmarks._runs import Row, Runs


@dataclass(frozen=True)
class Experiment:
    """An experiment of a paper.

    Args:
        name: What it is called on the command line.
        figure: Where it stands.
        claim: What the paper says.
        deviations: Where this differs from the paper: budget, number of sets, incumbent, samples, baseline.
        trials: The number of trials in the paper.
        cases: What a trial consists of, such as every method on every function; each is run, and kept, on its own.
        columns: What a row of a case holds, beside the trial's number and what names the case.
        trial: The rows of a case from the trial's number, the case and whether it is to be as small as runs at all.
        tables: Tables of all rows.
        plot: Draws all rows on a figure of matplotlib.
    """

    name: str
    figure: str
    claim: str
    deviations: str
    trials: int
    cases: tuple[Row, ...]
    columns: tuple[str, ...]
    trial: Callable[[int, Row, bool], list[Row]]
    tables: Callable[[Sequence[Row]], list[Table]]
    plot: Callable[[Any, Sequence[Row]], None]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that name a trial and a case."""
        return ("trial", *self.cases[0])

    @property
    def smallest(self) -> list[Row]:
        """The cases of a smoke test: every method, of what there is besides the first."""
        first = self.cases[0]
        others = [key for key in first if key != "method"]
        return [case for case in self.cases if all(case[key] == first[key] for key in others)]

    def selected(self, only: Sequence[str]) -> list[Row]:
        """The cases that have one of the given names in every column to which one of them belongs."""
        wanted = {key: {case[key] for case in self.cases} & {*only} for key in self.cases[0]}
        return [case for case in self.cases if all(not names or case[key] in names for key, names in wanted.items())]


def run_experiment(
    experiment: Experiment,
    trials: int | None,
    smoke: bool,
    processes: int,
    folder: Path | None,
    only: Sequence[str] = (),
) -> None:
    """Run the cases of an experiment that are not there yet, and make its tables and its picture of all of them.

    Nothing is kept without a folder; `only` are the names of functions, sets or methods: see `Experiment.selected`.
    """
    wanted = trials if trials is not None else 1 if smoke else experiment.trials
    runs = Runs(f"{experiment.name}_runs", experiment.keys, experiment.columns, folder)
    known = {tuple(row[key] for key in experiment.keys) for row in runs.rows}
    cases = experiment.smallest if smoke else experiment.selected(only)
    missing = [
        (number, case) for number in range(wanted) for case in cases if (str(number), *case.values()) not in known
    ]
    say(f"{experiment.name}: {len(missing)} cases, {len(known)} known")
    jobs = (joblib.delayed(_trial)(experiment, number, case, smoke) for number, case in missing)
    for found in joblib.Parallel(n_jobs=processes, return_as="generator_unordered")(jobs):
        runs.add(*found)
        say(f"{experiment.name}, {found[-1]}")
    order = {tuple(case.values()): i for i, case in enumerate(experiment.cases)}
    rows = [row for row in runs.rows if int(row["trial"]) < wanted]
    rows.sort(
        key=lambda row: (int(row["trial"]), order.get(tuple(row[key] for key in experiment.keys[1:]), len(order)))
    )
    if not rows:
        return
    tables = experiment.tables(rows)
    for table in tables:
        table.notes += [f"{experiment.figure}; {_counted(rows, experiment)}", environment()]
    publish(tables, folder)
    if folder is not None:
        _picture(experiment, rows, folder / f"{experiment.name}.png")


def _counted(rows: Sequence[Row], experiment: Experiment) -> str:
    """How many trials there are, and how many the paper has."""
    trials: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        trials.setdefault(tuple(row[key] for key in experiment.keys[1:]), set()).add(row["trial"])
    least, most = min(map(len, trials.values())), max(map(len, trials.values()))
    return f"{least if least == most else f'{least} to {most}'} trials, {experiment.trials} in the paper"


def _picture(experiment: Experiment, rows: Sequence[Row], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    experiment.plot(figure, rows)
    figure.savefig(path, dpi=100)


def _trial(experiment: Experiment, number: int, case: Row, smoke: bool) -> list[Row]:
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = experiment.trial(number, case, smoke)
    return [{"trial": str(number), **case, **row} for row in found]


def paired(differences: Sequence[float]) -> tuple[float, float]:
    """The mean of paired differences and its standard error, NaN for a single one."""
    values = torch.tensor(differences, dtype=torch.float64)
    error = float(values.std()) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return float(values.mean()), error
