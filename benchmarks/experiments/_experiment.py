"""An experiment: a race whose rows are prepared for its table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from benchmarks._race import Race, grid
from benchmarks._reporting import Cell, Table, prepare, publish
from benchmarks._runs import Row


@dataclass(frozen=True)
class Experiment:
    """An experiment: a race, and what its table needs.

    Args:
        race: Its runs; they take `smoke=True` to be as small as runs at all.
        methods: Those of which every run has a row, if it is not a run of one of them.
        pooled: A name over whose values the table has means too.
        derived: Numbers that the table needs of a row, beside those that are stored.
        prepared: The rows of the table from those that are stored, where it needs several of them.
        more: Tables of all rows, beside that of the race.
        plot: Draws all rows on a figure of matplotlib.
    """

    race: Race
    methods: tuple[str, ...] = ()
    pooled: str = ""
    derived: Callable[[Row], Mapping[str, Cell]] = lambda row: {}
    prepared: Callable[[Sequence[Row]], Sequence[Row]] = lambda rows: rows
    more: Callable[[Sequence[Row]], list[Table]] = lambda rows: []
    plot: Callable[[Any, Sequence[Row]], None] | None = None

    def tables(self, rows: Sequence[Row]) -> list[Table]:
        """Tables of all rows."""
        every = [
            {**row, **{name: str(cell) for name, cell in self.derived(row).items()}} for row in self.prepared(rows)
        ]
        if self.pooled:
            every += [{**row, self.pooled: "all", "seed": f"{row[self.pooled]} {row['seed']}"} for row in every]
        race = replace(self.race, methods=grid(method=self.methods)) if self.methods else self.race
        return [race.table(every), *self.more(rows)]

    def hold(self, options: argparse.Namespace) -> None:
        """Run what is not there yet, and make its tables and its picture of all that is."""
        race, folder = self.race, prepare(options)
        if options.quick:
            race = replace(race, cases=race.cases[:1], seeds=race.seeds[:1], run=partial(race.run, smoke=True))
        elif options.seeds:
            race = replace(race, seeds=race.seeds[: options.seeds])
        rows = race.hold(folder, options.processes, options.seconds)
        publish(self.tables(rows), folder)
        if self.plot is not None and folder is not None:
            from matplotlib.figure import Figure

            figure = Figure(layout="constrained")
            self.plot(figure, rows)
            figure.savefig(folder / f"{race.name}.png", dpi=100)
