"""The Python blocks of the documentation's pages run, one after another on each page; references and figures agree."""

from __future__ import annotations

import ast
import builtins
import csv
import inspect
import re

import pytest
import torch
from botorch.exceptions import errors
from botorch.exceptions import warnings as botorch_warnings
from code_blocks import ROOT, markdown_blocks, public_modules, run
from linear_operator.utils import errors as linear_operator_errors

from benchmarks.tables import TABLE, written
from botorch_skewgp import SkewGP, exceptions
from botorch_skewgp.acquisition import next_pair
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Binary, Preference

PAGES = [page for page in sorted((ROOT / "docs").glob("*.md")) if markdown_blocks(page)]
LONG = {"ax", "bofire"}


def test_pages_are_found():
    assert {"getting_started", "migration", "sharp_bits"} <= {page.stem for page in PAGES}


@pytest.mark.filterwarnings("ignore::ImportWarning:bofire.*")  # of its own extras
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in LONG else []) for page in PAGES],
)
def test_page_runs(page, capsys):
    if page.stem in ("ax", "bofire", "optuna"):
        pytest.importorskip(page.stem)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    namespace: dict[str, object] = {}
    for number, block in enumerate(markdown_blocks(page)):
        run(block, f"{page.name} block {number}", namespace)
    pyplot.close("all")


def test_every_error_and_warning_is_on_the_page_of_trouble():
    ax_errors = pytest.importorskip("ax.exceptions.core")
    page = (ROOT / "docs" / "trouble.md").read_text()
    headings = re.findall(r"^### (\w+)$", page, flags=re.MULTILINE)
    ours = {name for name, entry in vars(exceptions).items() if getattr(entry, "__module__", "") == exceptions.__name__}
    assert len(ours) == 13
    assert ours <= set(headings), f"trouble.md lacks {ours - set(headings)}"
    for name in set(headings) - ours:
        sources = (builtins, errors, botorch_warnings, linear_operator_errors, ax_errors)
        assert any(hasattr(module, name) for module in sources), name


def test_every_class_that_is_raised_is_on_the_page_of_trouble():
    """Those raised in place of a message of their own: names in `raise` statements and in calls of `warnings.warn`."""
    page = (ROOT / "docs" / "trouble.md").read_text()
    headings = set(re.findall(r"^### (\w+)$", page, flags=re.MULTILINE))
    found = set()
    for path in (ROOT / "botorch_skewgp").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                found.add(ast.unparse(node.exc.func))
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                found |= {ast.unparse(category) for category in node.args[1:2]}
    found = {name for name in found if name.endswith(("Error", "Warning"))}
    internal = {"TypeError", "AssertionError"}  # caught by the package; BoTorch's own check of shapes
    assert {"UserInputError", "PoorDrawsWarning"} <= found
    assert found - internal <= headings, f"trouble.md lacks {found - internal - headings}"


def test_messages_on_the_page_of_trouble_are_real():
    page = (ROOT / "docs" / "trouble.md").read_text()
    X, duel = torch.rand(4, 2, dtype=torch.double), Preference([[0, 1]])
    calls = [
        lambda: SkewGP(X.half(), duel),
        lambda: SkewGP(X, Preference([[0, 9]])),
        lambda: SkewGP(X, Binary([1, 0, 1, 0]), PreferenceLikelihood()),
        lambda: next_pair(SkewGP(X, duel), torch.rand(3, 2, dtype=torch.double)),
    ]
    table = page.partition("| message | cure |")[2].partition("\n\n")[0]
    messages = re.findall(r"^\| `(.+?)` \|", table, flags=re.MULTILINE)
    for call, message in zip(calls, messages, strict=True):
        pattern = ".*".join(re.escape(part) for part in message.split("..."))
        with pytest.raises(errors.InputDataError, match=pattern):
            call()


def test_every_page_is_in_the_contents():
    contents = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", contents, flags=re.MULTILINE), page.stem


def test_files_and_folders_that_the_architecture_page_names_exist():
    page = (ROOT / "docs" / "architecture.md").read_text()
    package = ROOT / "botorch_skewgp"
    for path in re.findall(r"`([a-z_]+/[a-z_]+\.py)`", page):
        assert (package / path).exists() or (ROOT / path).exists(), path
    table = page.partition("## Folders")[2].partition("## Three walks")[0]
    folders = {
        folder for line in table.splitlines() if line.startswith("| `") for folder in re.findall(r"`(\w+)/`", line)
    }
    assert folders == {entry.parent.name for entry in package.glob("*/__init__.py")}
    answers = page.partition("## Which file do I open?")[2].partition("## Folders")[0]
    for path, name in re.findall(r"`(\w+/\w+\.py)` \(`(\w+)`\)", answers):
        assert f"def {name}(" in (package / path).read_text(), f"{path} has no {name}"


def test_words_of_the_glossary_are_in_order():
    page = (ROOT / "docs" / "glossary.md").read_text()
    words = [word.lower() for word in re.findall(r"^\| \*\*(.+?)\*\* \|", page, flags=re.MULTILINE)]
    assert len(words) > 25
    assert words == sorted(words)


def test_references_of_docstrings_are_in_the_bibliography():
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text(), flags=re.MULTILINE))
    for module in public_modules():
        source = inspect.getsource(module)
        defined = set(re.findall(r"^\.\. \[(\w+)\]", source, flags=re.MULTILINE))
        cited = set(re.findall(r"\[(\w+)\]_", source))
        assert cited <= defined, f"{module.__name__} cites {cited - defined} without a `.. [Key]` of its own"
        assert defined <= known, f"references.bib lacks {defined - known} of {module.__name__}"


def test_tests_that_the_page_on_checks_names_are_there():
    names = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "docs" / "checks.md").read_text())
    assert len(names) > 40
    for path, name in names:
        assert f"def {name}(" in (ROOT / "tests" / path).read_text(), f"tests/{path} has no {name}"


def test_tables_are_the_stored_ones():
    pages = {page.name: page.read_text() for page in (ROOT / "docs").glob("*.md")}
    assert sum(text.count("<!-- stored ") for text in pages.values()) == sum(
        len(TABLE.findall(t)) for t in pages.values()
    )
    for name, text in pages.items():
        assert text == written(text), f"{name} is not current: python -m benchmarks tables"


def stored(name: str) -> list[dict[str, str]]:
    """A stored table of the benchmarks."""
    lines = (ROOT / "benchmarks" / "results" / f"{name}.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_gains_of_transformed_processes_are_the_stored_ones():
    words = " ".join((ROOT / "docs" / "transformed.md").read_text().split())
    for warping, method in (("sinh-arcsinh", "the default warping won"), ("arcsinh", "`Arcsinh`")):
        (entry,) = [
            e
            for e in stored("transformed_loops_paired")
            if (e["problem"], e["warping"], e["baseline"]) == ("all", f"transformed, {warping}", "Standardize")
        ]
        assert f"{method} {entry['won'].split()[0]}" in words


def test_figures_of_experiments_are_the_stored_ones():
    """Every number with decimals in a table of the page is, to these, one that its section's command stores."""
    page = (ROOT / "docs" / "experiments.md").read_text()
    for section in page.split("\n## ")[1:]:
        commands = re.findall(r"`python -m benchmarks experiments (\w+)`", section)
        if not commands:
            continue
        known = [
            abs(float(cell))
            for path in (ROOT / "benchmarks" / "results" / "experiments").glob(f"{commands[0]}*.csv")
            if not path.stem.endswith("_runs")
            for entry in stored(f"experiments/{path.stem}")
            for cell in entry.values()
            if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell or "")
        ]
        for line in re.findall(r"^\|.*\|$", section, flags=re.MULTILINE):
            for number in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", line.partition("|")[2].partition("|")[2]):
                decimals = len(number.partition(".")[2])
                close = any(abs(value - float(number)) <= 0.51 * 10**-decimals for value in known)
                assert close, f"{commands[0]} has no {number}, which the page says: {line}"
