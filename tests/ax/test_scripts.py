"""The programs of `tutorials/ax` run from top to bottom in their short form, and stay short."""

from pathlib import Path

import pytest
from programs import run_program

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
    ended = run_program(path)
    assert ended.code == 0, ended.stderr[-3000:]
    assert ended.stdout
