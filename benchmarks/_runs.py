"""Results of single runs, stored as they come: a benchmark that was stopped goes on where it was."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks._reporting import Cell, commit, shown

Row = dict[str, str]


class Runs:
    """Rows by key, in a CSV file if there is a folder; delete the file, or rows of it, to run them again.

    A key may have several rows. Every row has the commit that it was made at, as far as that is known.
    """

    def __init__(self, name: str, keys: Sequence[str], values: Sequence[str], folder: Path | None) -> None:
        self.keys, self.values = tuple(keys), tuple(values)
        self.columns = (*keys, *values, "commit")
        self.rows: list[Row] = []
        self._path = None if folder is None else folder / f"{name}.csv"
        self._head: list[str] = []  # comments of the file
        if self._path is not None and self._path.exists():
            lines = self._path.read_text(encoding="utf-8").splitlines()
            self._head = [line for line in lines if line.startswith("#")]
            found = csv.DictReader(line for line in lines if not line.startswith("#"))
            self.rows = [{**dict.fromkeys(self.columns, ""), **row} for row in found]

    def __contains__(self, key: Sequence[Cell]) -> bool:
        return bool(self.of(key))

    def of(self, key: Sequence[Cell]) -> list[Row]:
        """The rows of a key."""
        text = [shown(part) for part in key]
        return [row for row in self.rows if [row[name] for name in self.keys] == text]

    def add(self, *rows: Mapping[str, Cell]) -> None:
        """Keep rows, and store them at once, so that a run that is cut off leaves either all or none."""
        for row in rows:
            cells = {**dict.fromkeys(self.columns, ""), **row, "commit": commit()}
            self.rows.append({name: shown(cell) for name, cell in cells.items()})
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in self._head)
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)

    def get(self, key: Sequence[Cell], make: Callable[[], Sequence[float]]) -> tuple[float, ...]:
        """The numbers of a key, made and stored if they are not known."""
        if key not in self:
            self.add(dict(zip((*self.keys, *self.values), (*key, *make()), strict=True)))
        (row,) = self.of(key)
        return tuple(float(row[name] or "nan") for name in self.values)
