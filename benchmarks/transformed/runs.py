"""Results of single runs, stored as they come: a benchmark that was stopped goes on where it was."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._reporting import Table

Key = tuple[str | int, ...]


class Runs:
    """Numbers by key, in a CSV file if there is a folder; delete the file to run all again.

    Args:
        name: The name of the file.
        keys: The names of the parts of a key.
        values: The names of the numbers.
        folder: Where the file is, if anywhere.
        notes: Lines in the head of the file.
    """

    def __init__(
        self, name: str, keys: Sequence[str], values: Sequence[str], folder: Path | None, notes: Sequence[str]
    ) -> None:
        self.folder, self.keys, self.values = folder, tuple(keys), tuple(values)
        self.table = Table(name, (*keys, *values), list(notes))
        self.known: dict[tuple[str, ...], tuple[float, ...]] = {}
        path = None if folder is None else folder / f"{name}.csv"
        if path is not None and path.exists():
            lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
            for row in csv.DictReader(lines):
                self._keep(tuple(row[key] for key in keys), tuple(float(row[value]) for value in values))

    def _keep(self, key: tuple[str, ...], found: tuple[float, ...]) -> None:
        self.known[key] = found
        cells = dict(zip(self.keys, key, strict=True)) | dict(zip(self.values, found, strict=True))
        self.table.add(**cells)

    def get(self, key: Key, make: Callable[[], Sequence[float]]) -> tuple[float, ...]:
        """The numbers of a key, made and stored if they are not known.

        Args:
            key: The key.
            make: Makes the numbers.
        """
        text = tuple(str(part) for part in key)
        if text not in self.known:
            self._keep(text, tuple(float(value) for value in make()))
            if self.folder is not None:
                self.table.store(self.folder)
        return self.known[text]
