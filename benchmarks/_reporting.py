"""Tables on paper: printed and stored as CSV."""

from __future__ import annotations

import csv
import functools
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
        command = ["git", "-C", str(RESULTS.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    places = (":/botorch_skewgp", ":/benchmarks", ":(exclude,top)benchmarks/results")
    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "--", *places))


def load_average() -> str:
    """The machine's load; above the number of threads, timings are those of a busy machine."""
    return " / ".join(f"{value:.2f}" for value in os.getloadavg())


def shown(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:.4g}" if abs(cell) < 1e4 else f"{cell:.0f}"
    return str(cell)


def read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The lines in the head of a stored table, and its rows."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if line[:1] != "#")
    return [line for line in lines if line[:1] == "#"], [*rows]


def write(path: Path, head: Sequence[str], columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> None:
    """Store a table; cells that a row lacks are empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in head)
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: shown(cell) for name, cell in row.items()} for row in rows)


@dataclass
class Table:
    """Rows of named cells, each with its commit."""

    name: str  # of the CSV file
    notes: list[str]  # lines in the head of the table and of its file
    rows: list[dict[str, Cell]]

    @property
    def columns(self) -> list[str]:
        """The names of all cells, the commit last."""
        names = dict.fromkeys(column for row in self.rows for column in row)
        return sorted(names, key=lambda name: name == "commit")

    def text(self) -> str:
        columns = self.columns
        lines_of_cells = [columns] + [[shown(row.get(column)) for column in columns] for row in self.rows]
        widths = [max(map(len, cells)) for cells in zip(*lines_of_cells, strict=True)]
        lines = [f"# {note}" for note in self.notes]
        for line in lines_of_cells:
            first, *rest = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            lines.append("  ".join([first.strip().ljust(widths[0]), *rest]))
        return "\n".join(line.rstrip() for line in lines)

    def keep_stored(self, folder: Path, keys: Sequence[str]) -> None:
        """Append the stored rows whose keys this table lacks, as records of the commits that they were made at."""
        path = folder / f"{self.name}.csv"
        head, rows = read(path) if path.exists() else ([], [])
        keys, columns = [key for key in keys if rows and key in rows[0]], self.columns
        made = {tuple(shown(row.get(key)) for key in keys) for row in self.rows}
        commits = {"commit": " ".join(COMMIT.findall(" ".join(head)))}
        kept = [commits | row for row in rows if tuple(row[key] for key in keys) not in made]
        self.rows += [{name: row[name] for name in columns if name in row} for row in kept]

    def store(self, folder: Path) -> None:
        """Write `name.csv` into a folder; the notes are comment lines."""
        write(folder / f"{self.name}.csv", [f"# {note}" for note in self.notes], self.columns, self.rows)


def say(text: str) -> None:
    """Tell how far a long run has come, without getting in the way of the tables."""
    print(text, file=sys.stderr, flush=True)
