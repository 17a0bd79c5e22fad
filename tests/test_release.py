"""What is released says the same everywhere: versions, requirements, extras, Python's versions."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib

import pytest
from code_blocks import ROOT

from benchmarks import tables

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def text(path: str) -> str:
    return (ROOT / path).read_text()


def test_the_version_is_the_same():
    assert f"version: {PROJECT['version']}\n" in text("CITATION.cff")
    assert f"Version {PROJECT['version']} " in text("README.md")


def test_conda_requires_what_pip_does():
    recipe = text("conda/meta.yaml")
    names = {"torch": "pytorch"}
    listed = recipe.partition("  run:")[2].partition("\ntest:")[0]
    run = re.findall(r"^    - (\w+) >=([\d.]+)$", listed, flags=re.MULTILINE)
    expected = [requirement.split(">=") for requirement in PROJECT["dependencies"]]
    assert run == [("python", "3.11"), *((names.get(name, name), version) for name, version in expected)]
    assert PROJECT["requires-python"] == ">=3.11"


def test_versions_of_python_are_those_that_are_tested():
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    (matrix,) = re.findall(r"^        python: \[(.*)\]$", text(".github/workflows/test.yml"), flags=re.MULTILINE)
    assert classified == re.findall(r"3\.\d+", matrix)


def test_actions_are_pinned_by_the_hash_of_a_commit():
    used = [
        use
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for use in re.findall(r"uses: (.*)", path.read_text())
    ]
    assert len(used) > 15
    assert [use for use in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", use)] == []


def test_the_wheel_is_tested_before_it_is_published():
    release = text(".github/workflows/release.yml")
    assert "needs: [build, test]" in release
    assert ".ci/test_wheel" in release.partition("\n  test:")[2].partition("\n  publish:")[0]


def test_every_requirement_has_a_lowest_version():
    extras = PROJECT["optional-dependencies"]
    printed = subprocess.check_output([sys.executable, ".ci/lowest.py"], cwd=ROOT, text=True)
    lowest = dict(line.split("==") for line in printed.splitlines())
    wanted = [*PROJECT["dependencies"], *(entry for name in ("fast", "plot", "ax", "optuna") for entry in extras[name])]
    for requirement in wanted:
        assert ">=" in requirement, f"{requirement} has no lower bound"
        name, version = requirement.split(">=")
        assert lowest[name] == version


def test_extras_are_named_where_installation_is_told():
    install = text("docs/getting_started.md").partition("## Install")[2].partition("\n## ")[0]
    assert set(PROJECT["optional-dependencies"]) <= set(re.findall(r"`(\w+)`", install))


def test_the_readme_of_the_archives_stands_alone():
    """PyPI shows it without the files beside it: links lead to the built pages, or are words."""
    standalone = runpy.run_path(str(ROOT / ".ci" / "pypi_readme.py"))["standalone"]
    relative = re.compile(r"\]\((?!https?:)")
    readme = text("README.md")
    assert len(relative.findall(readme)) > 10
    for site in ("", "https://pages.example.org/latest"):
        alone = standalone(readme, site)
        assert not relative.findall(alone)
        assert ("![" in alone) == bool(site)
        assert ("[getting started](https://pages.example.org/latest/getting_started.html)" in alone) == bool(site)
        assert "<!--" not in alone


def test_nothing_is_installed_that_is_nowhere():
    """Until the project is published, pip finds it in a checkout or a wheel alone."""
    told = r"pip install [\"']?botorch_skewgp(?!-)"
    assert [page.stem for page in tables.pages() if re.search(told, page.read_text())] == ["releasing"]


@pytest.mark.parametrize(
    ("path", "least"),
    [("README.md", 11), ("CONTRIBUTING.md", 5), ("SECURITY.md", 0), ("CODE_OF_CONDUCT.md", 0), ("docs/releasing.md", 0),
     ("docs/style.md", 0)],
)  # fmt: skip
def test_files_that_pages_name_exist(path, least):
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text(path)) if not link.startswith("http")]
    assert len(links) >= least
    assert [link for link in links if not ((ROOT / path).parent / link).exists()] == []


def test_references_and_figures_of_the_paper_exist():
    paper = text("paper/paper.md")
    known = set(re.findall(r"^@\w+\{(\w+),", text("docs/references.bib"), flags=re.MULTILINE))
    assert set(re.findall(r"@(\w+)", paper)) <= known
    figures = re.findall(r"\]\((\S+\.png)\)", paper)
    assert len(figures) == 2
    for figure in figures:
        assert (ROOT / "paper" / figure).exists()
