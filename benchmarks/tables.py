"""The documentation's tables, written into its pages from the stored results.

A comment `<!-- table: NAME -->` in `README.md`, `docs` or `docs/measurements` is followed by the table that
`benchmarks/pages/NAME.md` describes, whose rows come from `benchmarks/results`:

    steps by duels model

    | duels | PairwiseGP | SkewGP |
    |---|---|---|
    | $ | {$ PairwiseGP[total_s]:.2f} s | {$ SkewGP[total_s]:.2f} s |

The first line names a file of results, and after `by` the columns that name an entry; `where noise=0.1, judge=one`
leaves out others. Braces stand for a cell, with Python's format, perhaps of another file: `{evidence by n:
1000[ep_error]:.2f}`. A row with `$` is repeated for every value of the first column, or of those before a bar, as in
`by functions labels | level`, which are `$1`, `$2` alone. What has not been measured is empty, or a row left out.
"""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path

from benchmarks._reporting import COMMIT, RESULTS, read

TEMPLATES = Path(__file__).parent / "pages"
TABLE = re.compile(r"<!-- table: ([\w/]+) -->\n(?:\n(?:\|.*\n)+(?:\n\*From .*\n)?)?")
TEMPLATE = re.compile(r"(?:([\w/]+) by (.+)\n\n)?((?:\|.*\n){2})((?:\|.*\n)+)")
CELL = re.compile(r"\{(?:([\w/]+) by ([^{}:]+): )?([^{}]+)\[([^\]]+)\](?::([^{}]*))?\}")
Entries = dict[str, dict[str, str]]


class NotMeasured(Exception):
    """A cell has no value."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(options: argparse.Namespace) -> None:
    for path in pages():
        page = path.read_text(encoding="utf-8")
        if (new := written(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(path.name)


def pages() -> list[Path]:
    root = RESULTS.parents[1]
    docs, measurements = (sorted((root / folder).glob("*.md")) for folder in ("docs", "docs/measurements"))
    return [root / "README.md", *docs, *measurements]


def written(page: str) -> str:
    return TABLE.sub(lambda found: f"<!-- table: {found[1]} -->\n\n{table(found[1])}", page)


def table(name: str) -> str:
    """A table with its sources, by the name of its template."""
    found = TEMPLATE.fullmatch((TEMPLATES / f"{name}.md").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"benchmarks/pages/{name}.md is no selection and table; benchmarks/tables.py has an example.")
    file, selection, head, rows = found.groups()
    entries, each = _entries(file, selection) if file else ({}, [])
    files: dict[str, list[str]] = {file: []} if file else {}
    row = partial(_row, entries=entries, files=files, main=file)
    lines = [row(line, values=values) for line in rows.splitlines() for values in (each if "$" in line else [[]])]
    sources = [f"`benchmarks/results/{name}.csv`{_commits(name, made)}" for name, made in files.items()]
    return head + "".join(lines) + f"\n*From {'; '.join(sources)}.*\n"


def _entries(name: str, selection: str) -> tuple[Entries, list[list[str]]]:
    """The entries of a file by their names, and the values of the columns that are repeated, each combination once."""
    columns, _, condition = selection.partition(" where ")
    repeated, bar, others = columns.partition("|")
    names = [*repeated.split(), *others.split()]
    wanted = [pair.split("=") for pair in re.split(r", (?=\w+=)", condition) if pair]
    rows = read(RESULTS / f"{name}.csv")[1]
    entries = [row for row in rows if all(row[column] == value for column, value in wanted)]
    by_name = {" ".join(entry[column] for column in names): entry for entry in entries}
    each = names[: len(repeated.split()) if bar else 1]
    return by_name, [list(values) for values in dict.fromkeys(tuple(entry[c] for c in each) for entry in entries)]


def _row(template: str, entries: Entries, values: list[str], files: dict[str, list[str]], main: str) -> str:
    """One line of the table, or nothing; `files` receives the files that it reads, with the commits of their rows."""
    found_any = not values

    def shown(found: re.Match[str]) -> str:
        nonlocal found_any
        name, selection, key, column, form = found.groups()
        commits = files.setdefault(name or main, [])
        entry = (_entries(name, selection)[0] if name else entries).get(key)
        if entry is None and not values:
            raise KeyError(f"There is no entry {key!r} in the results for {found[0]}.")
        value = "" if entry is None else entry[column]
        if value in ("", "nan"):
            raise NotMeasured
        found_any = True
        commits.append(entry.get("commit", ""))
        return format(float(value), form).rstrip(".") if form else value

    def cell(text: str) -> str:
        try:
            return CELL.sub(shown, text)
        except NotMeasured:
            return "  "

    for number, value in reversed(list(enumerate(values, start=1))):
        template = template.replace(f"${number}", value)
    line = "|".join(map(cell, template.replace("$", " ".join(values)).split("|")))
    return f"{line}\n" if found_any else ""


def _commits(name: str, of_rows: list[str]) -> str:
    head = " ".join(read(RESULTS / f"{name}.csv")[0])
    commits = ", ".join(dict.fromkeys(COMMIT.findall(" ".join([head, *of_rows]))))
    return commits and f", {'stored' if 'stored at commit' in head else 'run'} at {commits}"
