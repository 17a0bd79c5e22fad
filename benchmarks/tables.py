"""The documentation's tables, written into its pages from the stored results.

A table in `docs/*.md` that comes after a comment such as

    <!-- stored steps by duels model
    | $ | {$ PairwiseGP[total_s]:.2f} s | {$ SkewGP[total_s]:.2f} s |
    -->

has its rows from `benchmarks/results/steps.csv`. The columns after `by` name an entry of the file, and braces stand for
a cell of it, with Python's format. A line with `$` is repeated for every value of the first of these columns.
"""

from __future__ import annotations

import argparse
import csv
import re

from benchmarks._reporting import RESULTS

TABLE = re.compile(
    r"(<!-- stored ([\w/]+) by ([\w ]+)\n((?:\|.*\n)*)-->\n\n(?:\|.*\n){2})(?:\|.*\n)*(?:\n\*From .*\n)?"
)
CELL = re.compile(r"\{([^{}]+)\[(\w+)\](?::([^{}]*))?\}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(options: argparse.Namespace) -> None:
    """Write the tables of all pages."""
    for path in sorted((RESULTS.parents[1] / "docs").glob("*.md")):
        page = path.read_text(encoding="utf-8")
        if (new := written(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(path.name)


def written(page: str) -> str:
    """A page with its tables as the results have them."""
    return TABLE.sub(_written, page)


def _written(table: re.Match[str]) -> str:
    head, name, columns, templates = table.groups()
    lines = (RESULTS / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    keys = columns.split()
    entries = {
        " ".join(entry[key] for key in keys): entry for entry in csv.DictReader(x for x in lines if x[:1] != "#")
    }

    def cell(found: re.Match[str]) -> str:
        value = entries[found[1]][found[2]]
        return format(float(value), found[3]).rstrip(".") if found[3] and value else value

    each = dict.fromkeys(entry[keys[0]] for entry in entries.values())
    rows = [line.replace("$", key) for line in templates.splitlines() for key in (each if "$" in line else [""])]
    heads = " ".join(line for line in lines if line[:1] == "#")
    commits = ", ".join(dict.fromkeys(re.findall(r"\b(?=\w*\d)[0-9a-f]{7}\b", heads)))
    note = f"\n*From `benchmarks/results/{name}.csv`{commits and ', run at ' + commits}.*\n"
    return head + CELL.sub(cell, "".join(f"{row}\n" for row in rows)) + note
