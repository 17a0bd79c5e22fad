"""Compiled functions, and what is said where they are not kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
from numba.core.caching import CacheImpl

from botorch_skewgp.truncated import compilation


def test_functions_that_cannot_be_kept_are_compiled_all_the_same(monkeypatch, caplog):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])  # no folder can be written to
    compilation._log_once.cache_clear()
    for _ in range(2):
        assert compilation.compiled()(lambda x: x + 1.0)(1.0) == 2.0
    (record,) = caplog.records
    assert "NUMBA_CACHE_DIR to one that is yours alone" in record.message


SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.WARNING)
from botorch_skewgp.truncated import compilation
from numba.core import caching
if sys.argv[1] == "full":
    def full(self, *args):
        raise OSError(28, "No space left on device")
    caching.IndexDataCacheFile._save_index = full
from kept import add, double
print(add(1.0), double(2.0), sum(add.stats.cache_hits.values()) + sum(double.stats.cache_hits.values()))
"""
KEPT = """
from botorch_skewgp.truncated.compilation import compiled
@compiled()
def add(x):
    return x + 1.0
@compiled(fastmath=True)
def double(x):
    return 2.0 * x
"""


@pytest.mark.slow
def test_faults_of_the_folder_stop_nothing(tmp_path):
    """A full disk, and files of which a part is missing; with those replaced, the next process reads them again."""
    (tmp_path / "kept.py").write_text(KEPT)
    root = Path(compilation.__file__).parents[2]
    environment = {
        "PYTHONPATH": os.pathsep.join([str(root), str(tmp_path)]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }

    def run(disk="works"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, disk],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split(), done.stderr.count("cannot be")

    assert run("full") == (["2.0", "4.0", "0"], 1)
    assert run() == (["2.0", "4.0", "0"], 0)
    assert run() == (["2.0", "4.0", "2"], 0)
    for suffix, part in (("nbi", 0.0), ("nbc", 0.5)):
        for path in (tmp_path / "cache").rglob(f"*.{suffix}"):
            content = path.read_bytes()
            path.write_bytes(content[: int(part * len(content))])
        assert run() == (["2.0", "4.0", "0"], 1), suffix
        assert run() == (["2.0", "4.0", "2"], 0), suffix


def test_other_errors_are_not_caught(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("of another kind")

    monkeypatch.setattr(compilation, "njit", fail)
    with pytest.raises(RuntimeError, match="of another kind"):
        compilation.compiled()(lambda x: x)
