"""Benchmarks: `python -m benchmarks` lists them, `python -m benchmarks NAME --help` tells what one takes.

A benchmark is a module of this package whose name does not start with an underscore. The first line of its docstring is
its description, and it has races, `RACES: tuple[Race, ...]`, whose options are shared; or two functions:

    add_arguments(parser: argparse.ArgumentParser) -> None    declares its options
    run(options: argparse.Namespace) -> None                  runs it

Nothing has to be registered by hand, and only the module that is asked for is imported.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
from pathlib import Path
from typing import Protocol, cast


class Benchmark(Protocol):
    """What a module of this package must offer."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def run(self, options: argparse.Namespace) -> None:
        """Run the benchmark."""


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


def load(name: str) -> Benchmark:
    """Import a benchmark.

    Raises:
        TypeError: If the module has neither races nor `add_arguments` and `run`.
    """
    module = importlib.import_module(f"{__name__}.{name}")
    if hasattr(module, "RACES"):
        return importlib.import_module(f"{__name__}._race").Contest(module.RACES)
    for function in ("add_arguments", "run"):
        if not callable(getattr(module, function, None)):
            raise TypeError(
                f"benchmarks/{name}.py must define RACES or {function}(); see the docstring of the package."
            )
    return cast(Benchmark, module)
