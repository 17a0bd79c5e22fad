"""The programs of `tutorials/ax` and `tutorials/optuna` run in their short form and stay short; OptunaHub's package."""

import importlib.util
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from programs import run_program

import botorch_skewgp.optuna

ROOT = Path(__file__).parents[2]
FEWER_LINES_THAN = {"ax": 50, "optuna": 40}
PROGRAMS = [path for host in FEWER_LINES_THAN for path in sorted((ROOT / "tutorials" / host).glob("*.py"))]
ELSEWHERE = {"tune_a_picture", "worker"}  # run in a browser, and on several processes
PACKAGE = ROOT / "package" / "samplers" / "skewgp"


def test_programs_are_short():
    assert {path.stem for path in PROGRAMS} > ELSEWHERE | {"preferences"}
    long = [path for path in PROGRAMS if len(path.read_text().splitlines()) >= FEWER_LINES_THAN[path.parent.name]]
    assert long == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.stem not in ELSEWHERE], ids=lambda path: path.stem)
def test_runs(path):
    """Without an error, and with a result; Ax and Optuna report trials on stderr."""
    ended = run_program(path)
    assert ended.code == 0, ended.stderr[-3000:]
    assert ended.stdout


def hub_module():
    """The package of OptunaHub's layout, as OptunaHub loads it."""
    spec = importlib.util.spec_from_file_location("skewgp_of_optunahub", PACKAGE / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_package_for_optunahub_is_this_one():
    assert hub_module().SkewGPSampler is botorch_skewgp.optuna.SkewGPSampler
    front_matter = (PACKAGE / "README.md").read_text().split("---\n")[1]
    keys = [line.split(":")[0] for line in front_matter.splitlines()]
    assert keys == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.slow
def test_the_example_for_optunahub_runs(monkeypatch):
    modules = {"samplers/skewgp": hub_module()}
    hub = SimpleNamespace(load_module=lambda package: modules[package])
    monkeypatch.setitem(sys.modules, "optunahub", hub)
    monkeypatch.setenv("SMOKE_TEST", "1")
    best = runpy.run_path(str(PACKAGE / "example.py"))["best"]
    assert best.params["power"] + 0.6 * best.params["speed"] <= 0.95
