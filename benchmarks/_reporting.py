"""Tables on paper: printed and stored as CSV."""

from __future__ import annotations

import csv
import functools
import io
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

Cell = str | float | int | bool | None
RESULTS = Path(__file__).parent / "results"
COMMIT = re.compile(r"\b[0-9a-f]{7,10}\b")


def environment() -> str:
    """One line on what a table was made with."""
    threads = f"{torch.get_num_threads()} CPU threads of {os.cpu_count()}"
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return ", ".join([f"Python {platform.python_version()}", f"torch {torch.__version__}", threads, *devices])


@functools.cache
def commit() -> str:
    """The commit of this checkout, with a plus if package or benchmarks have changed since; empty outside git."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(RESULTS.parent), *arguments], capture_output=True, text=True, check=False
        ).stdout.strip()

    places = (":/botorch_skewgp", ":/benchmarks", ":(exclude,top)benchmarks/results")
    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--", *places))


def load_average() -> str:
    """The machine's load; above the number of threads, timings are those of a busy machine."""
    return " / ".join(f"{value:.2f}" for value in os.getloadavg())


def shown(cell: Cell) -> str:
    """A cell as text."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1e4 else f"{cell:.0f}"
    return str(cell)


@dataclass
class Table:
    """Rows of named cells."""

    name: str  # of the CSV file
    columns: tuple[str, ...]
    notes: list[str] = field(default_factory=list)  # lines in the head of the table and of its file
    rows: list[dict[str, Cell]] = field(default_factory=list)

    def add(self, **cells: Cell) -> dict[str, Cell]:
        """Append a row; columns that are not named stay empty."""
        unknown = set(cells) - set(self.columns)
        if unknown:
            raise KeyError(f"{sorted(unknown)} are no columns of the table {self.name}.")
        self.rows.append({column: cells.get(column) for column in self.columns})
        return self.rows[-1]

    def text(self) -> str:
        """The table in aligned columns, its notes first."""
        lines_of_cells = [list(self.columns)] + [[shown(row[column]) for column in self.columns] for row in self.rows]
        widths = [max(len(line[i]) for line in lines_of_cells) for i in range(len(self.columns))]
        lines = [f"# {note}" for note in self.notes]
        for line in lines_of_cells:
            first, *rest = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            lines.append("  ".join([first.strip().ljust(widths[0]), *rest]))
        return "\n".join(line.rstrip() for line in lines)

    def keep_stored(self, folder: Path | None, keys: Sequence[str]) -> None:
        """Append the stored rows whose keys this table lacks, as records of the commits that they were made at."""
        path = None if folder is None else folder / f"{self.name}.csv"
        if path is None or not path.exists():
            return
        lines = path.read_text(encoding="utf-8").splitlines()
        stored = [*csv.DictReader(line for line in lines if line[:1] != "#")]
        keys = [key for key in keys if stored and key in stored[0]]
        made = {tuple(shown(row[key]) for key in keys) for row in self.rows}
        commits = " ".join(COMMIT.findall(" ".join(line for line in lines if line[:1] == "#")))
        for row in stored:
            if tuple(row[key] for key in keys) not in made:
                cells = {"commit": commits, **row}
                self.add(**{name: cells[name] for name in self.columns if name in cells})

    def store(self, folder: Path) -> Path:
        """Write `name.csv` into a folder; the notes are comment lines, and the commit, unless rows have their own."""
        path = folder / f"{self.name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.StringIO()
        made_at = [] if "commit" in self.columns else [f"commit {commit()}"]
        buffer.writelines(f"# {note}\n" for note in [*made_at, *self.notes])
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([shown(row[column]) for column in self.columns] for row in self.rows)
        path.write_text(buffer.getvalue(), encoding="utf-8")
        return path


def say(text: str) -> None:
    """Tell how far a long run has come, without getting in the way of the tables."""
    print(text, file=sys.stderr, flush=True)


def publish(tables: Sequence[Table], folder: Path | None) -> None:
    """Print tables, and store them if there is a folder."""
    for table in tables:
        print(f"\n{table.text()}")
        if folder is not None:
            table.store(folder)
