"""Benchmarks: `python -m benchmarks` lists them, `python -m benchmarks NAME --help` tells what one takes.

A benchmark is a module without a leading underscore that has races, `RACES`; or `add_arguments` and `run`.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any


def descriptions() -> dict[str, str]:
    """Name and first docstring line of every benchmark, read without importing it."""
    folder = Path(__file__).parent
    names = sorted(module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_"))
    found = {}
    for name in names:
        file = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        found[name] = docstring.partition("\n")[0]
    return found


def modules_of_races() -> dict[str, str]:
    """The benchmark of every race of another name, read without importing it."""
    folder, found = Path(__file__).parent, dict[str, str]()
    for file in sorted(folder.rglob("*.py")):
        for race in re.findall(r'\bRace\(\s*"(\w+)"', file.read_text(encoding="utf-8")):
            found[race] = file.relative_to(folder).parts[0].removesuffix(".py")
    return {race: module for race, module in found.items() if race not in descriptions()}


def load(name: str) -> Any:
    """What declares the options of a benchmark by `add_arguments(parser)`, and runs it by `run(options)`."""
    module = importlib.import_module(f"{__name__}.{name}")
    return importlib.import_module(f"{__name__}._race").Contest(module.RACES) if hasattr(module, "RACES") else module
