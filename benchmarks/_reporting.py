"""Tables on paper: printed, stored as CSV, compared with the bars that were set for them."""

from __future__ import annotations

import csv
import io
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

Cell = str | float | int | bool | None
RESULTS = Path(__file__).parent / "results"


def environment(devices: Sequence[torch.device] = ()) -> str:
    """One line on what a table was made with."""
    parts = [
        f"Python {platform.python_version()}",
        f"torch {torch.__version__}",
        f"{torch.get_num_threads()} CPU threads of {os.cpu_count()}",
    ]
    parts += [torch.cuda.get_device_name(device) for device in devices if device.type == "cuda"]
    return ", ".join(parts)


def load_average() -> str:
    """The machine's load; above the number of threads, timings are those of a busy machine."""
    return " / ".join(f"{value:.2f}" for value in os.getloadavg())


def _show(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1e4 else f"{cell:.0f}"
    return str(cell)


@dataclass
class Table:
    """Rows of named cells.

    Args:
        name: The name of the CSV file.
        columns: The names of the columns.
        notes: Lines in the head of the table and of its file.
    """

    name: str
    columns: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    rows: list[dict[str, Cell]] = field(default_factory=list)

    def add(self, **cells: Cell) -> dict[str, Cell]:
        """Append a row; columns that are not named stay empty.

        Raises:
            KeyError: If a cell belongs to no column.
        """
        unknown = set(cells) - set(self.columns)
        if unknown:
            raise KeyError(f"{sorted(unknown)} are no columns of the table {self.name}.")
        self.rows.append({column: cells.get(column) for column in self.columns})
        return self.rows[-1]

    def text(self) -> str:
        """The table in aligned columns, its notes first."""
        shown = [list(self.columns)] + [[_show(row[column]) for column in self.columns] for row in self.rows]
        widths = [max(len(line[i]) for line in shown) for i in range(len(self.columns))]
        lines = [f"# {note}" for note in self.notes]
        lines += ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(
            zip(line, widths, strict=True))) for line in shown]  # fmt: skip
        return "\n".join(line.rstrip() for line in lines)

    def store(self, suffix: str = "") -> Path:
        """Write `results/name.csv`; notes are comment lines."""
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}{suffix}.csv"
        buffer = io.StringIO()
        buffer.writelines(f"# {note}\n" for note in self.notes)
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_show(row[column]) for column in self.columns] for row in self.rows)
        path.write_text(buffer.getvalue(), encoding="utf-8")
        return path


def bars_table(name: str) -> Table:
    """A table of bars: what was asked for, what was measured, and whether that is enough."""
    return Table(name, ("bar", "case", "wanted", "measured", "met"))


def add_bar(
    table: Table, bar: str, case: str, measured: float, least: float | None = None, most: float | None = None
) -> None:
    """Compare a number with a bar; exactly one of `least` and `most` is given.

    A measurement that is NaN meets nothing.
    """
    if (least is None) == (most is None):
        raise ValueError("Give either least or most.")
    met = measured >= least if least is not None else measured <= most  # type: ignore[operator]
    wanted = f">= {least:g}" if least is not None else f"<= {most:g}"
    table.add(bar=bar, case=case, wanted=wanted, measured=float(measured), met=bool(met))
