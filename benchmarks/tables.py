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

`--check` names the rows whose stored results are older than the code that they measure, by `benchmarks/inputs.toml`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks._inputs import has_history, reason_of_staleness
from benchmarks._reporting import COMMIT, RESULTS, read

TEMPLATES = Path(__file__).parent / "pages"
TABLE = re.compile(r"<!-- table: ([\w/]+) -->\n(?:\n(?:\|.*\n)+(?:\n\*From .*\n)?)?")
TEMPLATE = re.compile(r"(?:([\w/]+) by (.+)\n\n)?((?:\|.*\n){2})((?:\|.*\n)+)")
CELL = re.compile(r"\{(?:([\w/]+) by ([^{}:]+): )?([^{}]+)\[([^\]]+)\](?::([^{}]*))?\}")
ALL_COMMITS = re.compile(rf"{COMMIT.pattern}\+?")
Entries = dict[str, dict[str, str]]


class NotMeasured(Exception):
    """A cell has no value."""


@dataclass
class Line:
    """A row of a table, and the commits of the entries that it shows, by the file of results."""

    text: str
    commits: dict[str, list[str]] = field(default_factory=dict)

    def reasons(self) -> list[str]:
        """Why it is older than the code that it measures."""
        pairs = [(name, commit) for name, all_of_it in self.commits.items() for commit in dict.fromkeys(all_of_it)]
        found = {name: reason for name, commit in pairs if (reason := reason_of_staleness(name, commit))}
        return [f"{name}.csv: {reason}" for name, reason in found.items()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    help_of_check = "write nothing; name the rows that are older than what they measure, and exit with 1 if there are"
    parser.add_argument("--check", action="store_true", help=help_of_check)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="Markdown files to check; all by default")


def run(options: argparse.Namespace) -> None:
    if options.check:
        return check(options.pages)
    for path in pages():
        page = path.read_text(encoding="utf-8")
        if (new := written(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(path.name)


def check(paths: list[Path]) -> None:
    """Name what is stale, and end the program with 1 if there is any."""
    if not has_history():
        return print("The history of commits is not here, so that nobody can tell which rows are stale.")
    found = [
        f"{path.name}, {name}: {line.text.split('|')[1].strip()[:60]} ({'; '.join(reasons)})"
        for path in paths or pages()
        for name in TABLE.findall(path.read_text(encoding="utf-8"))
        for line in lines_of(name)[1]
        if (reasons := line.reasons())
    ]
    print("\n".join(found))
    if found:
        sys.exit(1)


def pages() -> list[Path]:
    root = RESULTS.parents[1]
    docs, measurements = (sorted((root / folder).glob("*.md")) for folder in ("docs", "docs/measurements"))
    return [root / "README.md", *docs, *measurements]


def written(page: str) -> str:
    return TABLE.sub(lambda found: f"<!-- table: {found[1]} -->\n\n{table(found[1])}", page)


def marked(page: str) -> str:
    """A page whose stale rows have a dagger, which is explained below their table."""
    return TABLE.sub(lambda found: f"<!-- table: {found[1]} -->\n\n{table(found[1], marks=has_history())}", page)


def table(name: str, marks: bool = False) -> str:
    """A table with its sources, by the name of its template."""
    head, lines = lines_of(name)
    stale = [bool(marks and line.reasons()) for line in lines]
    rows = [_daggered(line.text) if old else line.text for line, old in zip(lines, stale, strict=True)]
    commits: dict[str, list[str]] = {}
    for line in lines:
        for file, made in line.commits.items():
            commits[file] = [*commits.get(file, []), *made]
    sources = [f"`benchmarks/results/{name}.csv`{_commits(name, made)}" for name, made in commits.items()]
    older = " † Measured on an earlier version of the code that it is about." if any(stale) else ""
    return head + "".join(rows) + f"\n*From {'; '.join(sources)}.{older}*\n"


def lines_of(name: str) -> tuple[str, list[Line]]:
    """The head of a table and its rows, by the name of its template."""
    found = TEMPLATE.fullmatch((TEMPLATES / f"{name}.md").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"benchmarks/pages/{name}.md is no selection and table; benchmarks/tables.py has an example.")
    file, selection, head, rows = found.groups()
    entries, each = _entries(file, selection) if file else ({}, [])

    def lines() -> Iterator[Line]:
        for template in rows.splitlines():
            for values in each if "$" in template else [[]]:
                yield _row(template, entries, values, file)

    return head, [line for line in lines() if line.text]


def _daggered(row: str) -> str:
    """With a dagger in its first cell."""
    first, bar, rest = row[1:].partition("|")
    return f"|{first.rstrip()} † {bar}{rest}"


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


def _row(template: str, entries: Entries, values: list[str], main: str) -> Line:
    """One line of the table, without text if nothing of it was measured."""
    found_any = not values
    line = Line("", {main: []} if main else {})

    def shown(found: re.Match[str]) -> str:
        nonlocal found_any
        name, selection, key, column, form = found.groups()
        entry = (_entries(name, selection)[0] if name else entries).get(key)
        if entry is None and not values:
            raise KeyError(f"There is no entry {key!r} in the results for {found[0]}.")
        value = "" if entry is None else entry[column]
        if value in ("", "nan"):
            raise NotMeasured
        found_any = True
        file = name or main
        line.commits.setdefault(file, []).extend(_of_row(file, entry))
        return format(float(value), form).rstrip(".") if form else value

    def cell(text: str) -> str:
        try:
            return CELL.sub(shown, text)
        except NotMeasured:
            return "  "

    for number, value in reversed(list(enumerate(values, start=1))):
        template = template.replace(f"${number}", value)
    text = "|".join(map(cell, template.replace("$", " ".join(values)).split("|")))
    line.text = f"{text}\n" if found_any else ""
    return line


def _of_row(file: str, entry: dict[str, str]) -> list[str]:
    """The commits of a row, or of its file where rows have none."""
    return entry.get("commit", "").split() or ALL_COMMITS.findall(" ".join(read(RESULTS / f"{file}.csv")[0])) or [""]


def _commits(name: str, of_rows: list[str]) -> str:
    head = " ".join(read(RESULTS / f"{name}.csv")[0])
    commits = ", ".join(dict.fromkeys(COMMIT.findall(" ".join([head, *of_rows]))))
    return commits and f", {'stored' if 'stored at commit' in head else 'run'} at {commits}"
