"""Imports go one way, from the ground to the roof; extras are imported in their folders alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_blocks import ROOT, parsed_package

from botorch_skewgp import observations

PACKAGE = ROOT / "botorch_skewgp"

# From the ground to the roof: a folder, or a file beside them, imports of the package what stands before it.
ORDER = [
    "exceptions", "checks", "parameters", "seeding", "inputs", "observations", "truncated", "warpings", "rows",
    "posteriors", "likelihoods", "protocols", "kernels", "transformed", "models", "mlls", "fitting", "checking",
    "sampling", "thresholds", "acquisition", "papers", "frames", "items", "summaries", "plots", "hosts", "judge", "ax",
    "optuna", "__init__",
]  # fmt: skip

# Which folders alone may import an extra, and which may not import what all others may.
ONLY_IN = {"ax": {"ax"}, "bottle": {"judge"}, "matplotlib": {"plots"}, "optuna": {"optuna"}, "ray": set()}
NOT_IN = {"gpytorch": {"truncated"}, "botorch": {"truncated"}}
# Where kinds of observations may be named: where they are at home, and where others' data become observations.
NAMES_KINDS = {
    "observations", "likelihoods", "frames", "items", "summaries", "hosts", "ax", "optuna", "models/inputs.py",
    "__init__.py",
}  # fmt: skip
KINDS = {name for name in observations.__all__ if name not in ("Mark", "Observation")}


def imported(tree: ast.Module) -> Iterator[str]:
    """The full names in all import statements, at the top of a file, inside functions and for type checkers alike."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # `from package import folder` names the folder last
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def place(name: str) -> int:
    """The place in the order of a full name of the package."""
    parts = name.split(".")
    return ORDER.index(parts[1] if len(parts) > 1 and parts[1] in ORDER else "__init__")


def faults(folder: str, tree: ast.Module) -> list[str]:
    """The imports of a file in a folder that run back up, or that belong into another folder."""
    found = []
    for name in imported(tree):
        top = name.partition(".")[0]
        if top == "botorch_skewgp" and place(name) > ORDER.index(folder):
            found.append(f"{folder} imports {name}, which stands after it")
        if (top in ONLY_IN and folder not in ONLY_IN[top]) or folder in NOT_IN.get(top, ()):
            found.append(f"{folder} imports {name}")
    return found


def folder_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def test_imports_go_one_way():
    files = parsed_package()
    assert {folder_of(path) for path in files} <= {*ORDER}, "a new folder needs its place in the order"
    assert [fault for path, tree in files.items() for fault in faults(folder_of(path), tree)] == []


@pytest.mark.parametrize(
    ("folder", "source", "number"),
    [
        ("models", "from botorch_skewgp.mlls import RowMarginalLogLikelihood", 1),
        ("models", "def f():\n    from botorch_skewgp.fitting.restarts import fit_skew_gp", 1),
        ("models", "import botorch_skewgp.acquisition.analytic", 1),
        ("models", "from botorch_skewgp import acquisition", 1),
        ("models", "from botorch_skewgp import SkewGP", 1),
        ("truncated", "from gpytorch.kernels import Kernel", 1),
        ("models", "if TYPE_CHECKING:\n    import matplotlib.pyplot as plt", 1),
        ("acquisition", "from ax.core import Arm", 1),
        ("mlls", "from botorch_skewgp.models.skew_gp import SkewGP", 0),
        ("models", "from botorch_skewgp.models.skew_prior import SkewPrior", 0),
        ("plots", "import matplotlib.pyplot as plt", 0),
        ("ax", "from ax.core import Arm\nfrom botorch_skewgp.ax.data import read", 0),
    ],
)
def test_faults_are_seen(folder, source, number):
    assert len(faults(folder, ast.parse(source))) == number


def kinds_named(tree: ast.Module) -> set[str]:
    """The kinds of observations that a file imports."""
    return {name.rpartition(".")[2] for name in imported(tree) if "botorch_skewgp.observations" in name} & KINDS


def test_kinds_are_not_asked_for_by_name():
    named = {
        path: kinds_named(tree)
        for path, tree in parsed_package().items()
        if not {folder_of(path), str(path.relative_to(PACKAGE))} & NAMES_KINDS
    }
    assert named
    assert {path: kinds for path, kinds in named.items() if kinds} == {}
    assert kinds_named(ast.parse("from botorch_skewgp.observations.duels import Preference")) == {"Preference"}
