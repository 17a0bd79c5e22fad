"""The programs of `tutorials/ax` run from top to bottom in their short form, and stay short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ax")

SCRIPTS = sorted((Path(__file__).parents[2] / "tutorials" / "ax").glob("*.py"))
FEWER_LINES_THAN = 50


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


def test_there_are_scripts():
    assert SCRIPTS


def test_is_short(path):
    assert len(path.read_text().splitlines()) < FEWER_LINES_THAN


@pytest.mark.slow
def test_runs(path):
    """Without an error, and with a result; Ax reports its trials on stderr."""
    result = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "SMOKE_TEST": "1", "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout
