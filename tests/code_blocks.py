"""Code in texts: blocks of Markdown pages, and the modules whose docstrings have examples."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import botorch_skewgp

ROOT = Path(__file__).parents[1]
# compiled code behind the samplers, which cannot be imported without its compilers
INTERNAL = "botorch_skewgp.truncated.samplers.trajectories"


@functools.cache
def parsed_package() -> dict[Path, ast.Module]:
    """The syntax trees of the package's files."""
    paths = sorted((ROOT / "botorch_skewgp").rglob("*.py"))
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def markdown_blocks(page: Path) -> list[str]:
    """The Python blocks of a Markdown page, in order."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def run(code: str, name: str, namespace: dict[str, Any]) -> None:
    """Run code from a text."""
    exec(compile(code, name, "exec", dont_inherit=True), namespace)  # the text has no future imports


def public_modules() -> Iterator[ModuleType]:
    """All modules of the package that can be imported with the extras that are installed."""
    for entry in pkgutil.walk_packages(botorch_skewgp.__path__, "botorch_skewgp."):
        if not entry.name.startswith(INTERNAL):
            try:
                with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of what extras import
                    module = importlib.import_module(entry.name)
            except ModuleNotFoundError as error:  # of an extra
                if str(error.name).startswith("botorch_skewgp"):
                    raise
            else:
                yield module
