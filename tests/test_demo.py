"""What is wrong with the demonstration's options is said before the first duel."""

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

SCRIPT = Path(__file__).parents[1] / "tutorials" / "demo.py"


@pytest.fixture
def demo(monkeypatch):
    spec = importlib.util.spec_from_file_location("demo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "demo", module)  # its data classes look themselves up
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "run", lambda *args: pytest.fail("the duels have begun"))
    return module


def test_it_imports_what_it_is_installed_with():
    project = tomllib.loads((SCRIPT.parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    installed = {re.split("[<>=]", entry)[0] for entry in project["dependencies"] + extras["fast"] + extras["plot"]}
    nodes = [node for node in ast.walk(ast.parse(SCRIPT.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in nodes}
    assert {name.partition(".")[0] for name in names} <= installed | sys.stdlib_module_names | {project["name"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--noise", "nan"], "--noise must be a finite number that is not negative; got nan"),
        (["--noise", "inf"], "--noise must be a finite number"),
        (["--noise", "-0.1"], "--noise must be a finite number"),
        (["--duels", "0"], "--duels must be at least 1; got 0"),
        (["--duels", "-3"], "--duels must be at least 1; got -3"),
        (["--duels", "many"], "argument --duels: invalid int value"),
        (["--seed", "-1"], "--seed must be from 0"),
        (["--seed", str(2**40)], "--seed must be from 0"),
        (["--function", "branin"], "argument --function: invalid choice"),
        (["--output", "picture.doc"], "must end in one of"),
        (["--output", "picture"], "such as picture.png"),
        (["--output", "nowhere/at/all/picture.png"], "cannot be written: No such file or directory"),
        (["--output", "folder.png"], "cannot be written: Is a directory"),
    ],
)
def test_bad_options_are_refused_at_once(demo, options, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    monkeypatch.setattr(sys, "argv", ["demo.py", *options])
    with pytest.raises(SystemExit) as stopped:
        demo.main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.png"]


def test_asking_whether_a_picture_can_be_written_leaves_files_as_they_are(demo, tmp_path):
    assert demo.cannot_write(tmp_path / "new.png") is None
    assert not (tmp_path / "new.png").exists()
    old = tmp_path / "old.PNG"
    old.write_bytes(b"a picture")
    assert demo.cannot_write(old) is None
    assert old.read_bytes() == b"a picture"
