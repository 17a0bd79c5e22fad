"""The examples of all public docstrings run, given the names of `code_blocks.docstring_names`; errors are named."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

import pytest
from code_blocks import ROOT, ax_client, docstring_examples, docstring_names, optuna_study, run

EXAMPLES = docstring_examples()


def test_examples_are_found():
    assert {"botorch_skewgp.models.skew_gp.SkewGP", "botorch_skewgp.observations.duels.Preference"} <= EXAMPLES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.OptimizationWarning",  # twenty steps are no convergence
    "ignore::botorch_skewgp.exceptions.FewAnswersWarning",  # few answers are quick
    "ignore:A not p.d., added jitter:linear_operator.utils.warnings.NumericalWarning",  # both points of a pair coincide
    r"ignore::DeprecationWarning:(botorch_skewgp\.)?ax\..*",  # Ax renames much, and says so to its callers
)
def test_example_runs(name):
    names = docstring_names()
    home, _, own = name.rpartition(".")
    if home in sys.modules:
        names[own] = getattr(sys.modules[home], own)  # other rooms may use the same name
    if name.startswith("botorch_skewgp.ax."):
        names["client"] = ax_client()
    if name.startswith("botorch_skewgp.optuna."):
        names["study"], names["optuna"] = optuna_study(), pytest.importorskip("optuna")
    run(EXAMPLES[name], f"example of {name}", names)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")  # it warns of more than twenty figures


FILES = {path: path.read_text() for path in sorted((ROOT / "botorch_skewgp").rglob("*.py"))}


def _exported(source: str) -> set[str]:
    """The names in `__all__`, which users import."""
    assigned = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assign)]
    return {
        name for node in assigned if ast.unparse(node.targets[0]) == "__all__" for name in ast.literal_eval(node.value)
    }


def unnamed_errors(source: str, exported: set[str]) -> list[str]:
    """Functions that users import and raise errors of which neither their docstring nor their class's says so."""
    return [
        f"{name} raises {error}"
        for name, function, docstring in _public_functions(ast.parse(source))
        for error in sorted(_raised(function))
        if error not in docstring and name.partition(".")[0] in exported
    ]


def _public_functions(node: ast.AST, prefix: str = "", outer: str = "") -> Iterator[tuple[str, ast.FunctionDef, str]]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            continue
        is_constructor = child.name in {"__init__", "__post_init__"}
        if child.name.startswith("_") and not is_constructor:
            continue
        docstring = ast.get_docstring(child) or ""
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child, docstring + (outer if is_constructor else "")
        else:
            yield from _public_functions(child, f"{prefix}{child.name}.", docstring)


def _raised(function: ast.FunctionDef) -> set[str]:
    """The classes of errors in the function's own `raise` statements."""
    raised = [entry.exc for entry in ast.walk(function) if isinstance(entry, ast.Raise)]
    classes = [entry.func for entry in raised if isinstance(entry, ast.Call)]
    return {entry.id for entry in classes if isinstance(entry, ast.Name)} - {"NotImplementedError"}


def test_errors_are_named():
    exported = set().union(*(_exported(source) for path, source in FILES.items() if path.name == "__init__.py"))
    assert [fault for source in FILES.values() for fault in unnamed_errors(source, exported)] == []


def test_an_error_that_is_not_named_is_seen():
    source = 'class A:\n    """A."""\n    def f(self):\n        """F."""\n        raise ValueError("no")\n'
    assert unnamed_errors(source, {"A"}) == ["A.f raises ValueError"]
    assert unnamed_errors(source, {"B"}) == []
    assert unnamed_errors(source.replace("F.", "F.\n\n    Raises:\n        ValueError: Always.\n    "), {"A"}) == []


def test_every_file_has_a_sentence():
    """In the docstring of its folder; those of two folders on the page of the architecture."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    for path in (path for path in FILES if path.name == "__init__.py"):
        told = ast.get_docstring(ast.parse(FILES[path])) or ""
        told += page if path.parent.name in ("botorch_skewgp", "truncated") else ""
        names = {other.stem for other in path.parent.glob("*.py")} - {"__init__"}
        assert {name for name in names if not re.search(rf"`{name}[`.]", told)} == set(), path
