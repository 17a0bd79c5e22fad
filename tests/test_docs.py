"""References, figures and lists of the documentation agree with the code. Its Python blocks run when it is built."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from dataclasses import make_dataclass
from types import ModuleType

import pytest
import torch
from botorch.exceptions import errors
from botorch.exceptions import warnings as botorch_warnings
from code_blocks import ROOT, parsed_package, public_modules
from linear_operator.utils import errors as linear_operator_errors

from benchmarks import tables
from benchmarks._reporting import RESULTS, read
from benchmarks.tables import TABLE, TEMPLATES, written
from botorch_skewgp import SkewGP, exceptions, plots
from botorch_skewgp.acquisition import next_pair
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Binary, Preference


def headings_of_trouble() -> list[str]:
    """The errors of one page and the warnings of the other."""
    pages = "\n".join((ROOT / "docs" / f"{page}.md").read_text() for page in ("trouble", "warnings"))
    return re.findall(r"^### (\w+)$", pages, flags=re.MULTILINE)


def test_every_error_and_warning_is_on_the_pages_of_trouble():
    ax_errors, sympify = pytest.importorskip("ax.exceptions.core"), pytest.importorskip("sympy.core.sympify")
    headings = headings_of_trouble()
    ours = {name for name, entry in vars(exceptions).items() if getattr(entry, "__module__", "") == exceptions.__name__}
    assert len(ours) == 17
    assert ours <= set(headings), f"trouble.md or warnings.md lacks {ours - set(headings)}"
    for name in set(headings) - ours:
        sources = (builtins, errors, botorch_warnings, linear_operator_errors, ax_errors, sympify)
        assert any(hasattr(module, name) for module in sources), name


def test_every_class_that_is_raised_is_on_the_pages_of_trouble():
    """Those raised in place of a message of their own: names in `raise` statements and in calls of `warnings.warn`."""
    headings, found = set(headings_of_trouble()), set[str]()
    for node in (node for tree in parsed_package().values() for node in ast.walk(tree)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found.add(ast.unparse(node.exc.func))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "warn":
            found |= {ast.unparse(category) for category in node.args[1:2]}
    found = {name for name in found if name.endswith(("Error", "Warning"))}
    internal = {"TypeError", "AssertionError"}  # caught by the package; BoTorch's own check of shapes
    assert {"UserInputError", "PoorDrawsWarning"} <= found
    assert found - internal <= headings, f"trouble.md or warnings.md lacks {found - internal - headings}"


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


def test_every_picture_is_on_their_page():
    page = (ROOT / "docs" / "plots.md").read_text()
    assert [name for name in plots.__all__ if name.startswith("plot_") and f"`{name}" not in page] == []


def names_without_a_sentence(module: ModuleType, pages: str) -> list[str]:
    """The public names of a module that have no sentence of their own and stand on no page.

    One inherited from a host, such as "Constructor for the AcquisitionFunction base class.", is none.
    """
    lacking = []
    for name in getattr(module, "__all__", ()):
        entry = getattr(module, name)
        sentence = vars(entry).get("__doc__") if inspect.isclass(entry) else inspect.getdoc(entry)
        sentence = "" if str(sentence).startswith(f"{name}(") else sentence  # a data class's signature
        of_its_own = sentence and (inspect.isclass(entry) or inspect.isfunction(entry) or inspect.ismodule(entry))
        if not of_its_own and re.search(rf"\b{name}\b", pages) is None:
            lacking.append(f"{module.__name__}.{name}")
    return lacking


def test_every_public_name_has_a_sentence_of_its_own_or_stands_on_a_page():
    internal = ("botorch_skewgp.protocols", "botorch_skewgp.rows", "botorch_skewgp.truncated")
    pages = " ".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    modules = [module for module in public_modules() if not module.__name__.startswith(internal)]
    assert sum(len(getattr(module, "__all__", ())) for module in modules) > 140
    assert [name for module in modules for name in names_without_a_sentence(module, pages)] == []


def test_a_name_without_a_sentence_is_seen():
    module = ModuleType("home")
    module.Bare, module.Pair = type("Bare", (SkewGP,), {}), make_dataclass("Pair", ["first"])
    module.LIMIT, module.told = 3, headings_of_trouble
    module.__all__ = ["Bare", "Pair", "LIMIT", "told"]
    assert names_without_a_sentence(module, "on no page") == ["home.Bare", "home.Pair", "home.LIMIT"]
    assert names_without_a_sentence(module, "`Bare` and `Pair` up to a LIMIT") == []


def test_every_page_is_in_the_contents():
    texts = [page.read_text() for page in (ROOT / "docs").glob("*.md")]
    contents = "".join(block for text in texts for block in re.findall(r"```\{toctree\}.*?```", text, flags=re.DOTALL))
    for page in tables.pages()[1:]:
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        assert name == "index" or re.search(rf"^{name}$", contents, flags=re.MULTILINE), name


# Pages that somebody with a question opens; the others are references, or compare with other code.
GUIDES = [
    "adaptive",
    "asking",
    "ax",
    "bope",
    "choices",
    "conjoint",
    "event_curves",
    "evidence",
    "exactness",
    "failures",
    "items",
    "judges",
    "judging",
    "kernels",
    "league",
    "maps",
    "optuna",
    "panels",
    "questionnaires",
    "questions",
    "rankings",
    "safe_search",
    "scale",
    "shapes",
    "slips",
    "thresholds",
    "transformed",
    "votes",
]
CELL = re.compile(r"(?:^<!-- (fold|not run): .+? -->\n)?^```python\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)


def prose(text: str) -> list[str]:
    """The words of a page outside code, comments, tables and addresses."""
    text = re.sub(r"^(```+).*?^\1\s*$|<!--.*?-->|^    \S[^\n]*$|^\|[^\n]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\w[\w\u2019'./-]*", re.sub(r"\]\([^)]*\)", "]", text))


@pytest.mark.parametrize("name", GUIDES)
def test_guides_begin_with_a_question_a_result_and_a_picture(name):
    text = (ROOT / "docs" / f"{name}.md").read_text()
    cells = list(CELL.finditer(text))
    first = next(cell for cell in cells if cell[1] is None)
    before = CELL.sub("", text[: first.start()])
    assert "?" in before
    assert "\n## " not in before
    assert len(prose(before)) <= 80
    assert re.search(r"plot|axes\.", first[2]), "the first block draws nothing"
    assert "print(" in first[2] or re.search(r"round\(2\)$", first[2].strip()), "the first block tells nothing"
    assert "## When it looks wrong" in text
    assert len(prose(text)) <= 700
    lines = [cell[2].splitlines() for cell in cells]
    assert max(map(len, lines)) <= 20, [code[0] for code in lines if len(code) > 20]
    assert [line for code in lines for line in code if len(line) > 96] == []


def test_links_of_pages_have_words():
    """Without words a link shows nothing on GitHub."""
    assert [page.name for page in (ROOT / "docs").glob("*.md") if "[](" in page.read_text()] == []


def test_files_and_folders_that_the_architecture_page_names_exist():
    page = (ROOT / "docs" / "architecture.md").read_text()
    package = ROOT / "botorch_skewgp"
    for path in re.findall(r"`([a-z_]+/[a-z_]+\.py)`", page):
        assert (package / path).exists() or (ROOT / path).exists(), path
    table = page.partition("## Folders")[2].partition("## One walk")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    folders = {folder for line in lines for folder in re.findall(r"`(\w+)/`", line)}
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


def test_tests_that_the_pages_name_are_there():
    names = re.findall(r"`([\w/]+\.py)::(\w+)`", (ROOT / "docs" / "checks.md").read_text())
    assert len(names) > 40
    for path, name in names:
        assert f"def {name}(" in (ROOT / "tests" / path).read_text(), f"tests/{path} has no {name}"
    pages = " ".join(page.read_text() for page in tables.pages())
    assert [path for path in re.findall(r"`(tests/[\w/]+\.py)`", pages) if not (ROOT / path).exists()] == []


WRITTEN = tables.pages()


def test_tables_are_the_stored_ones():
    for page in WRITTEN:
        text = page.read_text()
        assert text.count("<!-- table") == len(TABLE.findall(text)), page.name
        assert text == written(text), f"{page.name} is not current: python -m benchmarks tables"


def test_every_table_stands_on_a_page():
    shown = {name for page in WRITTEN for name in TABLE.findall(page.read_text())}
    assert {path.relative_to(TEMPLATES).with_suffix("").as_posix() for path in TEMPLATES.rglob("*.md")} == shown


def test_tables_of_figures_are_stored_or_name_their_commit():
    """Beside a table of figures that no file of results holds stands the commit, or the page that names it."""
    for page in WRITTEN:
        blocks = re.sub(TABLE, "", page.read_text()).split("\n\n")
        for place, block in enumerate(blocks):
            figures = re.findall(r"^\|.*\|[^|`]*(?<![\w.])\d+\.\d", block, flags=re.MULTILINE)
            beside = "".join(blocks[max(place - 2, 0) : place + 3])
            sources = re.findall(r"\b(?=\w*\d)[0-9a-f]{7,10}\b|\(real_data.md\)", beside)
            assert len(figures) < 3 or sources, f"{page.name}: {block[:80]}"


def test_tables_choose_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "TEMPLATES", tmp_path)
    (tmp_path / "one.csv").write_text(
        "# stored at commit abcdef0\nkind,size,method,seconds\n"
        'duels,10,a,1.25\nduels,10,b,2.5\nduels,20,a,nan\nlabels,10,a,3\n"x, y",10,b,4\n'
    )
    (tmp_path / "two.csv").write_text('# commit 1234567\nkind,error\nduels,0.125\nlabels,0.5\n"x, y",1\n')

    def rows(selection: str, *lines: str) -> list[str]:
        head = [selection, ""] if selection else []
        (tmp_path / "new.md").write_text("\n".join([*head, "| head |", "|---|", *lines, ""]))
        new = tables.written("<!-- table: new -->\n\n| old |\n|---|\n| 0 |\n\n*From nowhere.*\n")
        assert new == tables.written("<!-- table: new -->\n")
        found = new.partition("|---|\n")[2].splitlines()
        assert found[-1].startswith("*From `benchmarks/results/")
        return found[:-2]

    a = "{$ a[seconds]:.1f}"
    assert rows("one by kind size method where kind=duels", "| {duels 10 a[seconds]:.1f} |") == ["| 1.2 |"]
    assert rows("one by kind size | method", f"| $2 $1 | {a} ({a}) |") == [
        "| 10 duels | 1.2 (1.2) |",
        "| 10 labels | 3.0 (3.0) |",
    ]
    assert rows("one by kind | method where kind=x, y, size=10", "| {$ b[seconds]} | {$ a[seconds]} |") == ["| 4 |  |"]
    assert rows("one by kind where size=10", "| $ | {two by kind: $[error]:.2f} |") == [
        "| duels | 0.12 |",
        "| labels | 0.50 |",
        "| x, y | 1.00 |",
    ]
    assert rows("", "| {two by kind: duels[error]} |") == ["| 0.125 |"]
    with pytest.raises(KeyError, match="no entry 'choices'"):
        rows("", "| {two by kind: choices[error]} |")
    with pytest.raises(ValueError, match=r"new\.md is no selection and table"):
        rows("one of kind", "| {$ a[seconds]} |")


def test_tables_name_the_commits_of_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "TEMPLATES", tmp_path)
    (tmp_path / "one.csv").write_text("method,nats,commit\na,1,abcdef0\nb,2,1234567 abcdef0\nc,3,7654321\n")
    (tmp_path / "new.md").write_text("one by method\n\n| head | |\n|---|---|\n| {a[nats]} | {b[nats]} |\n")
    assert tables.table("new").endswith("*From `benchmarks/results/one.csv`, run at abcdef0, 1234567.*\n")


def test_gains_of_transformed_processes_are_the_stored_ones():
    words = " ".join((ROOT / "docs" / "measurements" / "transformed.md").read_text().split())
    for warping, method in (("sinh_arcsinh", "the default warping won"), ("arcsinh", "`Arcsinh`")):
        loops = read(RESULTS / "transformed_loops.csv")[1]
        (entry,) = [row for row in loops if (row["problem"], row["method"]) == ("all", "Standardize")]
        assert f"{method} {entry[f'{warping}_wins']}" in words
