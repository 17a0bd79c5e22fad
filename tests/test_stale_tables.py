"""A stored row is stale when the code that it measured is no longer that of today, by the history of commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from code_blocks import ROOT

from benchmarks import _inputs, tables
from benchmarks._race import Race, grid
from benchmarks._reporting import RESULTS


class Checkout:
    """A repository of its own, with a table that depends on a folder `code` and a file `other.py`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet")
        (root / "new.md").write_text("new by method\n\n| head |\n|---|\n| $: {$[seconds]} |\n")
        (root / "page.md").write_text("<!-- table: new -->\n")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
        return subprocess.check_output(["git", "-C", str(self.root), *identity, *arguments], text=True).strip()

    def commit(self, path: str, text: str) -> str:
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", path)
        return self.git("rev-parse", "--short", "HEAD")

    def store(self, **commits: str) -> None:
        rows = "".join(f"{method},1,{commit}\n" for method, commit in commits.items())
        (self.root / "new.csv").write_text(f"method,seconds,commit\n{rows}")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(_inputs, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    monkeypatch.setattr(tables, "TEMPLATES", tmp_path)
    monkeypatch.setattr(_inputs, "inputs_of", lambda table: ("code", "other.py"))
    caches = (_inputs.has_history, _inputs.changed_since)
    for cached in caches:
        cached.cache_clear()
    yield Checkout(tmp_path)
    for cached in caches:
        cached.cache_clear()


def stale(checkout: Checkout, capsys) -> str:
    """What the check prints, which ends the program with 1 if it names a row."""
    _inputs.changed_since.cache_clear()
    try:
        tables.check([checkout.root / "page.md"])
        code = 0
    except SystemExit as end:
        code = end.code
    printed = capsys.readouterr().out.strip()
    assert code == bool(printed)
    return printed


def test_a_row_is_stale_when_its_inputs_have_changed_what_they_do(checkout, capsys):
    checkout.commit("code/a.py", '"""What."""\n\n\ndef f(x):\n    """Words."""\n    return x + 1\n')
    first = checkout.commit("other.py", "y = 1\n")
    checkout.store(plain=first)
    assert stale(checkout, capsys) == ""
    checkout.commit("code/a.py", "# words\ndef f(x):\n    return (\n        x + 1\n    )\n")
    checkout.commit("elsewhere.py", "z = 1\n")
    assert stale(checkout, capsys) == ""  # it does the same
    second = checkout.commit("code/a.py", "def f(x):\n    return x + 2\n")
    assert stale(checkout, capsys) == f"page.md, new: plain: 1 (new.csv: {first} is older than code/a.py)"
    checkout.store(plain=second, clever=first)
    assert stale(checkout, capsys).startswith("page.md, new: clever")
    assert "| plain: 1 |\n| clever: 1 † |\n" in tables.marked("<!-- table: new -->\n")
    assert "† Measured on an earlier version" in tables.marked("<!-- table: new -->\n")
    assert "†" not in tables.written("<!-- table: new -->\n")
    checkout.store(plain=second)
    (checkout.root / "code" / "new.py").write_text("w = 1\n")  # a new file, not yet committed
    assert "older than code/new.py" in stale(checkout, capsys)
    third = checkout.commit("code/new.py", "w = 1\n")
    checkout.store(plain=third)
    assert stale(checkout, capsys) == ""
    (checkout.root / "other.py").unlink()
    assert "older than other.py" in stale(checkout, capsys)


@pytest.mark.parametrize(
    ("commit", "reason"),
    [("", "no commit is stored"), ("{}+", "had changes that nobody committed"), ("abcdef0", "any that is known here")],
)
def test_a_row_of_unknown_code_is_stale(commit, reason, checkout, capsys):
    checkout.store(plain=commit.format(checkout.commit("other.py", "y = 1\n")))
    assert reason in stale(checkout, capsys)


def test_without_history_nothing_is_checked_and_that_is_said(checkout, capsys, tmp_path):
    checkout.store(plain=checkout.commit("other.py", "y = 1\n"))
    checkout.git("clone", "--quiet", "--depth=1", f"file://{tmp_path}", str(tmp_path / "shallow"))
    _inputs.has_history.cache_clear()
    _inputs.ROOT = tmp_path / "shallow"
    tables.check([tmp_path / "page.md"])
    assert "history" in capsys.readouterr().out


def test_stale_runs_are_run_again_in_their_places(checkout, tmp_path, monkeypatch):
    ran: list = []

    def run(size: int, method: str, seed: int) -> dict:
        ran.append((size, method, seed))
        return {"error": 2.0}

    old = checkout.commit("other.py", "y = 1\n")
    new = checkout.commit("other.py", "y = 2\n")
    (tmp_path / "new_runs.csv").write_text(
        f"size,method,seed,error,commit\n1,a,0,1,{old}\n1,a,1,1,{new}\n9,a,0,1,{old}\n"
    )
    monkeypatch.setattr("benchmarks._race.RESULTS", tmp_path)
    race = Race("new", grid(size=[1]), grid(method=["a"]), range(2), run, ("error",))
    rows = race.hold(tmp_path)
    assert ran == [(1, "a", 0)]
    assert sorted((row["size"], row["seed"], row["error"]) for row in rows) == [
        ("1", "0", "2"),
        ("1", "1", "1"),
        ("9", "0", "1"),
    ]


def test_every_stored_table_has_inputs_that_exist():
    names = {path.relative_to(RESULTS).with_suffix("").as_posix() for path in RESULTS.rglob("*.csv")}
    for name in names:
        assert [path for path in _inputs.inputs_of(name) if not (ROOT / path).exists()] == [], name
