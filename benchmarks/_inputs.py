"""What a table depends on, and whether that has changed since its rows were run."""

from __future__ import annotations

import ast
import functools
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


@functools.cache
def inputs_of(table: str) -> tuple[str, ...]:
    """The folders and files of `inputs.toml` whose code a table, or the file of its runs, was measured with."""
    known = tomllib.loads((Path(__file__).parent / "inputs.toml").read_text(encoding="utf-8"))
    name = table.removesuffix("_runs")
    if name not in known["tables"]:
        raise ValueError(f"benchmarks/inputs.toml does not say what the table {name!r} depends on.")
    paths = list[str]()
    for entry in known["tables"][name]:
        paths += known["groups"].get(entry, [entry])
    return tuple(dict.fromkeys(paths))


@functools.cache
def has_history() -> bool:
    """Whether this is a checkout with all of its history, of which commits can be asked."""
    return _git("rev-parse", "--is-shallow-repository") == "false\n"


def reason_of_staleness(table: str, commit: str) -> str:
    """Why a row that was run at a commit tells of other code than today's; empty if it does not."""
    if not commit:
        return "no commit is stored"
    if commit.endswith("+"):
        return f"{commit} had changes that nobody committed"
    changed = changed_since(commit, inputs_of(table))
    return changed and f"{commit} is older than {changed}"


@functools.cache
def changed_since(commit: str, inputs: tuple[str, ...]) -> str:
    """The first file among the inputs whose code is not what it was at a commit; empty if there is none."""
    listing = _git("ls-tree", "-r", "--name-only", "-z", commit, "--", *inputs)
    if listing is None:
        return "any that is known here"
    then = {path for path in listing.split("\0") if path.endswith(".py")}
    for path in sorted(then | _files(inputs)):
        file = ROOT / path
        before = _git("show", f"{commit}:{path}") if path in then else None
        if before is None or not file.exists() or _code(before) != _code(file.read_text(encoding="utf-8")):
            return path
    return ""


def _files(inputs: tuple[str, ...]) -> set[str]:
    found = set[Path]()
    for path in inputs:
        found |= {ROOT / path} if path.endswith(".py") else {*(ROOT / path).rglob("*.py")}
    return {file.relative_to(ROOT).as_posix() for file in found}


@functools.cache
def _code(text: str) -> str:
    """What a file does: its syntax tree without docstrings, in which comments and line breaks do not show."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def _git(*arguments: str) -> str | None:
    """The output of a command of git; None if it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout if found.returncode == 0 else None
