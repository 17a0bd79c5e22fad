"""A race: methods on the same cases and seeds, every run a stored row, compared in pairs."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import torch

from benchmarks._reporting import Cell, load_average, say, shown
from benchmarks._runs import Row, Runs

Key = tuple[str, ...]


def grid(**values: Iterable[Cell]) -> list[Row]:
    """All combinations of named values, the last name varying fastest."""
    return [dict(zip(values, map(shown, row), strict=True)) for row in itertools.product(*values.values())]


@dataclass(frozen=True)
class Race:
    """Every method runs in every case with every seed, from which all that is random comes.

    Args:
        name: The file that the rows of runs are kept in.
        cases: What a run is about, by named values.
        methods: What is compared.
        seeds: The seeds.
        run: The cells of a run's row from its case, method and seed.
        columns: The names of these cells.
    """

    name: str
    cases: Sequence[Row]
    methods: Sequence[str]
    seeds: Sequence[int]
    run: Callable[[Row, str, int], Mapping[str, Cell]]
    columns: tuple[str, ...]

    def rows(self, folder: Path | None, processes: int = 1, seconds: float | None = None) -> list[Row]:
        """Run what is not in the folder yet, seed by seed so that methods are always in pairs; all rows of the race.

        A run that began within the given seconds is finished.
        """
        keys = (*self.cases[0], "method", "seed")
        runs = Runs(self.name, keys, self.columns, folder)
        known = {tuple(row[key] for key in keys) for row in runs.rows}
        wanted = list(itertools.product(self.seeds, self.cases, self.methods))
        missing = [
            (case, method, seed) for seed, case, method in wanted if (*case.values(), method, str(seed)) not in known
        ]
        say(f"{self.name}: {len(missing)} runs, {len(wanted) - len(missing)} known; load average {load_average()}")
        began = time.monotonic()
        jobs = (
            joblib.delayed(self._one)(*job) for job in missing if seconds is None or time.monotonic() - began < seconds
        )
        for row in joblib.Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch=processes)(jobs):
            runs.add(row)
            say(", ".join(f"{value:.3g}" if isinstance(value, float) else f"{value}" for value in row.values()))
        order = {(*case.values(), method, str(seed)): place for place, (seed, case, method) in enumerate(wanted)}
        of_race = [row for row in runs.rows if tuple(row[key] for key in keys) in order]
        return sorted(of_race, key=lambda row: order[tuple(row[key] for key in keys)])

    def _one(self, case: Row, method: str, seed: int) -> dict[str, Cell]:
        torch.set_num_threads(1)
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")
            torch.manual_seed(seed)
            cells = self.run(case, method, seed)
        return {**case, "method": method, "seed": seed, **cells}


def by_method(
    rows: Sequence[Row], column: str, change: Callable[[float], float] = float
) -> dict[str, dict[Key, float]]:
    """A column of some rows by their method, and by what else names a run."""
    found: dict[str, dict[Key, float]] = {}
    for row in rows:
        names = list(row)[: list(row).index("seed") + 1]
        key = tuple(row[name] for name in names if name != "method")
        found.setdefault(row["method"], {})[key] = change(float(row[column]))
    return found


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error, NaN for a single value."""
    found = torch.tensor([*values], dtype=torch.float64)
    return float(found.mean()), float(found.std() / len(found) ** 0.5) if len(found) > 1 else float("nan")


def paired(first: Mapping[Key, float], second: Mapping[Key, float]) -> tuple[float, float]:
    """The mean of `first` less `second` in runs that both have, and its standard error."""
    return mean_and_error(first[key] - second[key] for key in first if key in second)


def verdict(difference: float, error: float) -> str:
    """In words, if less is better: level within two standard errors."""
    if not abs(difference) > 2 * error:
        return "level"
    return "ahead" if difference < 0 else "behind"
