"""A race: methods on the same cases and seeds, every run a stored row, and a table of what comes of them."""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import torch
from torch import Tensor

from benchmarks._inputs import has_history, reason_of_staleness
from benchmarks._reporting import RESULTS, Table, commit, environment, load_average, read, say, shown, write
from benchmarks._reporting import Cell as Cell

Row = dict[str, str]  # of a run, as it is stored
Names = Mapping[str, Cell]  # what a case or a method is called, by column
Key = tuple[str, ...]
Found = Mapping[str, Cell] | Sequence[Mapping[str, Cell]]
Run = Callable[..., Found]


def grid(**values: Iterable[Cell]) -> list[dict[str, Cell]]:
    """All combinations of named values, the last name varying fastest."""
    return [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]


def mean_and_error(values: Tensor) -> tuple[float, float]:
    """The mean and its standard error, NaN for a single value."""
    if not len(values):
        return float("nan"), float("nan")
    return float(values.mean()), float(values.std() / len(values) ** 0.5) if len(values) > 1 else float("nan")


def verdict(difference: float, error: float) -> str:
    """In words, if less is better: level within two standard errors."""
    if not abs(difference) > 2 * error:
        return "level"
    return "ahead" if difference < 0 else "behind"


class Group:
    """The rows of one case by one method, in pairs with those of the case by others."""

    def __init__(self, names: Names, by_names: Mapping[Key, Mapping[str, Row]]) -> None:
        self.names, self._all = names, by_names
        self._rows = self._of(names)

    def _of(self, names: Names) -> Mapping[str, Row]:
        return self._all.get(tuple(shown(name) for name in names.values()), {})

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[Row]:
        return [*self._rows.values()]

    def values(self, measure: str) -> Tensor:
        """A measure of every run."""
        return torch.tensor([float(row[measure] or "nan") for row in self.rows], dtype=torch.float64)

    def mean(self, measure: str) -> float:
        return float(self.values(measure).mean())

    def error(self, measure: str) -> float:
        return mean_and_error(self.values(measure))[1]

    def median(self, measure: str) -> float:
        """The median of a measure, between the middle two of an even number."""
        return float(self.values(measure).quantile(0.5))

    def cell(self, measure: str) -> Cell:
        """The mean of a measure, or the first of its texts; nothing if it was not measured."""
        try:
            return self.mean(measure) if any(row[measure] for row in self.rows) else None
        except ValueError:
            return self.rows[0][measure]

    def total(self, measure: str) -> Cell:
        """The sum of a measure, if every run has it."""
        total = float(self.values(measure).sum())
        return total if total == total else None

    def ratio(self, measure: str, number: str) -> tuple[float, float]:
        """A sum over the sum of numbers, whose runs are independent, and the standard error."""
        sums, numbers = self.values(measure), self.values(number)
        value = sums.sum() / numbers.sum()
        return float(value), float(len(self) * mean_and_error(sums - value * numbers)[1] / numbers.sum())

    def less(self, measure: str, floor: float | None = None, **rival: Cell) -> tuple[float, float]:
        """A measure, or the decimal logarithm with this floor, less the rival's, in pairs, and the standard error."""
        mine, theirs = self.beside(measure, **rival)
        if floor is not None:
            mine, theirs = (values.clamp(min=floor).log10() for values in (mine, theirs))
        return mean_and_error(mine - theirs)

    def pairs(self, **rival: Cell) -> list[tuple[Row, Row]]:
        """The rows of this group and of the one with other names, of the seeds that both have; none beside itself."""
        names = {**self.names, **rival}
        others = {} if names == self.names else self._of(names)
        return [(row, others[seed]) for seed, row in self._rows.items() if seed in others]

    def beside(self, measure: str, **rival: Cell) -> tuple[Tensor, Tensor]:
        values = [[float(pair[i][measure] or "nan") for pair in self.pairs(**rival)] for i in range(2)]
        mine, theirs = torch.tensor(values, dtype=torch.float64)
        return mine, theirs


Columns = Callable[[Group], Found]


@dataclass(frozen=True)
class Race:
    """Every method runs in every case with every seed, from which all that is random comes."""

    name: str  # of the table; rows are kept in the file `name_runs`
    cases: Sequence[Names]
    methods: Sequence[Names]
    seeds: Sequence[int]
    # Measures of a run by the names of its case and method and by `seed`; several rows if they have names of their own,
    # none where the method does not apply.
    run: Run
    measures: tuple[str, ...]
    # The cells of a case and method in the table, or of several rows of it, from their runs; means if not given.
    columns: Columns | None = None
    notes: Sequence[str] = ()  # in the head of the table
    others: Mapping[str, Columns] = field(default_factory=dict)  # columns of further tables of the same runs, by name
    # The rows that tables are of, from those of the runs.
    told: Callable[[Sequence[Row]], Sequence[Row]] = lambda rows: rows
    derived: Callable[[Row], Names] = lambda row: {}  # numbers that tables need of a row, beside those that are stored
    pooled: str = ""  # a name over whose values tables have rows too
    quick: Mapping[str, Any] = field(default_factory=dict)  # arguments of small runs
    plot: Callable[[Any, Sequence[Row]], None] | None = None  # draws all rows on a figure of matplotlib

    @property
    def title(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def names(self) -> set[str]:
        return {shown(name) for entry in (*self.cases, *self.methods) for name in entry.values()} - {""}

    def only(self, names: Sequence[str]) -> Race:
        """The race of cases and methods that have one of the names in every column to which one of them belongs."""

        def chosen(entries: Sequence[Names]) -> list[Names]:
            found = [*entries]
            for column in entries[0]:
                if wanted := {shown(entry[column]) for entry in entries} & {*names}:
                    found = [entry for entry in found if shown(entry[column]) in wanted]
            return found

        cases, methods = chosen(self.cases), chosen(self.methods)
        if not cases or not methods:
            raise ValueError(f"Nothing in the race {self.name!r} has all of the names {', '.join(names)}.")
        return replace(self, cases=cases, methods=methods)

    def small(self) -> Race:
        """One small run of each method in the first case."""
        return replace(self, cases=self.cases[:1], seeds=self.seeds[:1], run=partial(self.run, **self.quick))

    def hold(self, folder: Path | None, processes: int = 1, seconds: float | None = None) -> list[Row]:
        """Run what is not stored or stale, seeds first, so that a race that is stopped has pairs; all rows."""
        names = (*self.cases[0], *self.methods[0], "seed")
        runs = _Runs((*names, *self.measures, "commit"), None if folder is None else folder / f"{self.name}_runs.csv")
        has_ages = folder == RESULTS and has_history()
        current = [row for row in runs.rows if not (has_ages and reason_of_staleness(self.name, row["commit"]))]
        known = {tuple(row[name] for name in names) for row in current}
        product = itertools.product(self.seeds, self.cases, self.methods)
        wanted = [{**case, **method, "seed": seed} for seed, case, method in product]
        missing = [cell for cell in wanted if tuple(map(shown, cell.values())) not in known]
        stale = f"{len(runs.rows) - len(current)} stored ones are stale"
        say(f"{self.name}: {len(missing)} of {len(wanted)} runs are missing, {stale}; load average {load_average()}")
        began = time.monotonic()
        jobs = (
            joblib.delayed(_measured)(self.run, cell, torch.get_num_threads())
            for cell in missing
            if seconds is None or time.monotonic() - began < seconds
        )
        held = joblib.Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch=processes)
        for rows in held(jobs):
            runs.add(names, *rows)
            for row in rows:
                say(", ".join(shown(cell)[-60:] for cell in row.values()))
        return runs.rows

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """The columns of all cases and methods that have rows, those of the race first."""
        names = (*self.cases[0], *self.methods[0])
        rows = [{**row, **{name: str(cell) for name, cell in self.derived(row).items()}} for row in self.told(rows)]
        if self.pooled:
            rows += [{**row, self.pooled: "all", "seed": f"{row[self.pooled]} {row['seed']}"} for row in rows]
        by_names: dict[Key, dict[str, Row]] = {}
        for case, method in itertools.product(self.cases, self.methods):
            by_names[tuple(map(shown, {**case, **method}.values()))] = {}
        for row in rows:
            by_names.setdefault(tuple(row[name] for name in names), {})[row["seed"]] = row
        groups = [Group(dict(zip(names, key, strict=True)), by_names) for key in by_names]
        columns = self.columns or (lambda group: {measure: group.cell(measure) for measure in self.measures})
        return [
            self._table(name, of_group, [group for group in groups if len(group)])
            for name, of_group in {self.name: columns, **self.others}.items()
        ]

    def _table(self, name: str, columns: Columns, groups: Sequence[Group]) -> Table:
        found = []
        for group in groups:
            commits = dict.fromkeys(commit for row in group.rows for commit in row["commit"].split())
            found += [{**group.names, **cells, "commit": " ".join(commits)} for cells in _listed(columns(group))]
        return Table(name, [environment(), f"load average at the end {load_average()}", *self.notes], found)


class Contest:
    """Races, one after another, each with its tables."""

    def __init__(self, races: Sequence[Race]) -> None:
        self.races = races

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true", help="one small run of each method; nothing is stored")
        parser.add_argument("--threads", type=int, default=1, help="CPU threads")
        parser.add_argument("--output", type=Path, help="folder for tables and pictures; benchmarks/results by default")
        parser.add_argument("--seeds", type=int, help="runs of each method in each case")
        parser.add_argument("--processes", type=int, default=1, help="runs at a time, of one thread each")
        parser.add_argument("--seconds", type=float, help="nothing begins later than this; 0 only makes tables")
        names = sorted({race.title for race in self.races}.union(*(race.names for race in self.races)))
        listing = "races, cases and methods by their names: " + "; ".join(names).replace("%", "%%")
        parser.add_argument("--only", nargs="+", choices=names, default=[], metavar="NAME", help=listing)

    def run(self, options: argparse.Namespace) -> None:
        """Hold those that are asked for, and publish what there is of each."""
        torch.set_num_threads(options.threads)
        folder = options.output or (None if options.quick else RESULTS)
        wanted = {*options.only}
        named = [race for race in self.races if race.title in wanted]
        for race in named or [race for race in self.races if not wanted or race.names & wanted]:
            chosen = race.only(options.only)
            if options.seeds is not None:
                chosen = replace(chosen, seeds=range(race.seeds[0], race.seeds[0] + options.seeds))
            chosen = chosen.small() if options.quick else chosen
            rows = chosen.hold(folder, options.processes, options.seconds)
            order = {tuple(map(shown, case.values())): place for place, case in enumerate(race.cases)}
            for table in chosen.tables(rows):
                if not table.rows:
                    continue
                if folder is not None:
                    table.keep_stored(folder, (*race.cases[0], *race.methods[0]))
                keys = [tuple(shown(row.get(name)) for name in race.cases[0]) for row in table.rows]
                places = sorted(range(len(keys)), key=lambda i: order.get(keys[i], len(order)))
                table.rows = [table.rows[i] for i in places]
                print(f"\n{table.text()}")
                if folder is not None:
                    table.store(folder)
            if race.plot is not None and folder is not None and rows:
                from matplotlib.figure import Figure

                figure = Figure(layout="constrained")
                race.plot(figure, rows)
                figure.savefig(folder / f"{race.name}.png", dpi=100)


class _Runs:
    """Rows in a CSV file, if there is one, in which they are stored as they come; every row has its commit."""

    def __init__(self, columns: Sequence[str], path: Path | None) -> None:
        self.columns, self.path = tuple(dict.fromkeys(columns)), path
        self.head, rows = read(path) if path is not None and path.exists() else ([], [])
        self.rows: list[Row] = [{**dict.fromkeys(self.columns, ""), **row} for row in rows]

    def add(self, names: Sequence[str], *rows: Names) -> None:
        """Keep rows, in place of those of the same names; a run that is cut off leaves either all or none."""
        made = [{**dict.fromkeys(self.columns, ""), **row, "commit": commit()} for row in rows]
        new = [{name: shown(cell) for name, cell in row.items()} for row in made]
        replaced = [[row[name] for name in names] for row in new]
        self.rows = [row for row in self.rows if [row[name] for name in names] not in replaced] + new
        if self.path is not None:
            write(self.path, self.head, self.columns, self.rows)


def _listed(found: Found) -> Sequence[Names]:
    return [found] if isinstance(found, Mapping) else found


def _measured(run: Run, cell: Names, threads: int) -> list[Names]:
    torch.set_num_threads(threads)  # of another process
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(int(cell["seed"] or 0))
        return [{**cell, **row} for row in _listed(run(**cell))]
