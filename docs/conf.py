"""Configuration of the documentation: `sphinx-build -W -n docs docs/_build/html`, or `make docs`. Needs no network."""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

import botorch_skewgp

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # of the extensions below, and of the benchmarks
logger = logging.getLogger(__name__)

project = "botorch_skewgp"
author = "the botorch_skewgp authors"
copyright = author  # noqa: A001  Sphinx calls it so
extensions = [
    "executed_pages",  # the Python blocks of the pages
    "gallery_cards",  # and their pictures on cards
    "stale_tables",  # daggers at what was measured on earlier code
    "myst_nb",  # pages in Markdown, and the tutorials
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build"]
nitpicky = True
suppress_warnings = ["ref.python"]  # LatentModel is a class of models and a protocol

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "executed")
nb_execution_excludepatterns = ["tutorials/*"]  # stored with their outputs
nb_execution_timeout = 300  # seconds a cell
nb_execution_raise_on_error = True
nb_merge_streams = True
bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

autoclass_content = "both"  # arguments are described in the class or in __init__, as in BoTorch
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
default_role = "literal"  # single backticks in docstrings are code
maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "botorch_skewgp"
# Formulas need no network when a page is read: one file of MathJax, without fonts, which pages with formulas load.
mathjax_path = "tex-svg.js"
mathjax_folder = importlib.util.find_spec("sphinx-mathjax-offline").submodule_search_locations[0]
html_static_path = ["_static", f"{mathjax_folder}/static/mathjax/{mathjax_path}"]
html_css_files = ["code.css"]

# Types and bases of other projects: their pages cannot be looked up without a network.
OTHERS = (
    "ax|botorch|bottle|collections|contextlib|gpytorch|linear_operator|matplotlib|numpy|optuna|os|pandas|pathlib|ray|"
    "torch|typing"
)
nitpick_ignore_regex = [
    (r"py:.*", rf"({OTHERS})(\.\w+)*"),
    (r"py:.*", r"botorch_skewgp\.(protocols|rows|truncated)(\.\w+)*"),  # internal types in signatures
    (r"py:.*", r"botorch_skewgp\.parameters\.AnyModule"),  # a type variable
    (r"py:class", r"Pairs|Ask|Judge|Judgement|Kind|People|TParameterization"),  # aliases of types
    # short names of other projects
    (r"py:(class|exc)", r"(Tensor|Kernel|Model|Parameter|Interval|Axes|DataFrame|Index|MultiIndex|\w+Error)"),
    (r"py:class", r"TruncatedNormal"),  # a short name of an internal type
    (r"py:class", r"object|abc\.ABC|enum\.(Str)?Enum"),  # bases
    (r"py:class", r"botorch_skewgp\.(\w+\.)*_\w+"),  # private types in signatures
]


# The reference: a page for every module or package, written anew from the package itself.

# what no user imports, but for the settings of draws; the pages on the architecture and on new kinds speak of it
INTERNAL = {"botorch_skewgp.protocols", "botorch_skewgp.rows", "botorch_skewgp.truncated"}
ALONE = ["botorch_skewgp.truncated.draws"]


def submodules(package: ModuleType) -> list[str]:
    """The names of a package's public modules, packages among them."""
    paths = getattr(package, "__path__", [])
    names = [f"{package.__name__}.{entry.name}" for entry in pkgutil.iter_modules(paths)]
    return [name for name in names if name not in INTERNAL and not name.rpartition(".")[2].startswith("_")]


def modules_below(package: ModuleType) -> list[str]:
    """The names of a package's public modules and of those of its packages, each before what is in it."""
    return [inner for name in submodules(package) for inner in [name, *modules_below(importlib.import_module(name))]]


def write(path: Path, text: str) -> None:
    """Write a page, unless it is the same already: Sphinx reads again what has changed."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_reference(app: Sphinx) -> None:
    """Make `api/`, with one page for each module or package and a section for each module of a package."""
    pages = sorted([*submodules(botorch_skewgp), *ALONE])
    for name in pages:
        lines = [f"# {name.partition('.')[2]}", ""]
        for module in [name, *modules_below(importlib.import_module(name))]:
            if module != name:
                lines += [f"## {module.partition('.')[2]}", ""]
            lines += ["```{eval-rst}", f".. automodule:: {module}"]
            if not hasattr(
                importlib.import_module(module), "__path__"
            ):  # a package's names are described where they are
                lines += ["   :members:", "   :show-inheritance:"]
            lines += ["```", ""]
        write(HERE / "api" / f"{name}.md", "\n".join(lines))
    entries = [name.partition(".")[2] + f" <{name}>" for name in pages]
    write(HERE / "api" / "index.md", "\n".join(["# API", "", "```{toctree}", ":maxdepth: 1", "", *entries, "```", ""]))
    for stale in set((HERE / "api").glob("*.md")) - {HERE / "api" / f"{name}.md" for name in [*pages, "index"]}:
        stale.unlink()


def copy_tutorials(app: Sphinx) -> None:
    """Copy the notebooks into `tutorials/`: Sphinx reads nothing outside this folder. Links to pages lose `docs/`."""
    folder = HERE / "tutorials"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for notebook in sorted((HERE.parent / "tutorials").glob("*.ipynb")):
        (folder / notebook.name).write_text(notebook.read_text().replace("](../docs/", "](../"))


def source_of(entry: Any) -> str:
    """The source code of an entry, nothing for compiled ones."""
    try:
        return inspect.getsource(entry)
    except TypeError:
        return ""


def adapt_docstring(app: Sphinx, what: str, name: str, entry: Any, options: Any, lines: list[str]) -> None:
    """Resolve citations on the page of references, and list what a package exports."""
    if what == "class" and not has_own_constructor_text(entry):
        lines[:] = (inspect.getdoc(entry) or "").splitlines()
    text = "\n".join(lines)
    defined = re.findall(r"^\.\. \[(\w+)\]", text, flags=re.MULTILINE)
    text = re.sub(r"^\.\. \[\w+\].*\n?(?:^[ \t]+\S.*\n?)*", "", text, flags=re.MULTILINE)  # definitions, as for BoTorch
    text = re.sub(r"^References:\s*\Z", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[(\w+)\]_", r":cite:t:`\1`", text)
    lines[:] = text.splitlines()
    if other := [f":cite:t:`{key}`" for key in defined if f"[{key}]_" not in source_of(entry)]:
        lines += ["", "See also " + ", ".join(other) + ".", ""]
    exported = getattr(entry, "__all__", ()) if what == "module" else ()
    if exported:
        homes = {key: getattr(getattr(entry, key), "__module__", "") for key in exported}  # none for a constant
        links = [f":py:obj:`{key} <{home}.{key}>`" if home else f"``{key}``" for key, home in homes.items()]
        lines += ["", f"``from {name} import`` " + ", ".join(links), ""]


def has_own_constructor_text(entry: type) -> bool:
    """Whether a class's constructor has a docstring of this package: that of a host's base class says nothing here."""
    constructor = entry.__init__
    return bool(constructor.__doc__) and str(getattr(constructor, "__module__", "")).startswith("botorch_skewgp")


def skip_fields(app: Sphinx, what: str, name: str, entry: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, whose only text is their number; the class describes them."""
    return True if str(getattr(entry, "__doc__", "")).startswith("Alias for field number") else None


def public_bases(app: Sphinx, name: str, entry: type, options: Any, bases: list[type]) -> None:
    """Show the public classes that a private base is made of in its place."""
    while any(base.__name__.startswith("_") for base in bases):
        bases[:] = [up for base in bases for up in (base.__bases__ if base.__name__.startswith("_") else (base,))]
    bases[:] = dict.fromkeys(bases)


def check_reference(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn, hence fail, of every public class, function or method that has no docstring or no place in the pages."""
    described = set(env.domains.python_domain.objects)
    modules = [importlib.import_module(name) for name in modules_below(botorch_skewgp)]
    for module in [botorch_skewgp, *modules]:
        if not inspect.getdoc(module):
            logger.warning("%s has no docstring", module.__name__)
        for name, entry in public_names(module):
            full = f"{entry.__module__}.{name}"
            if not inspect.getdoc(entry):
                logger.warning("%s has no docstring", full)
            elif full not in described:
                logger.warning("%s is public but not in the reference", full)


def public_names(module: ModuleType) -> list[tuple[str, Any]]:
    """What a module defines: classes, their methods, and functions, by their names in it."""
    names = []
    for name, entry in vars(module).items():
        is_code = inspect.isclass(entry) or inspect.isfunction(entry)
        if name.startswith("_") or not is_code or entry.__module__ != module.__name__:
            continue
        names.append((name, entry))
        for key, member in vars(entry).items() if inspect.isclass(entry) else ():
            member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(member) and not key.startswith("_") and member.__module__ == entry.__module__:
                names.append((f"{name}.{key}", Member(entry, key)))
    return names


class Member:
    """A method or property of a class, with the docstring it has there or inherits."""

    def __init__(self, owner: type, name: str) -> None:
        self.__module__ = owner.__module__
        self.__doc__ = inspect.getdoc(getattr(owner, name))


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", write_reference)
    app.connect("builder-inited", copy_tutorials)
    app.connect("autodoc-process-docstring", adapt_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-bases", public_bases)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("env-check-consistency", check_reference)
