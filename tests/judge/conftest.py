"""The tests of the page are left out where bottle is not installed."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("bottle") else ["test_*.py"]


@pytest.fixture
def folder(tmp_path):
    """Ten texts."""
    found = tmp_path / "texts"
    found.mkdir()
    for k in range(10):
        (found / f"{k}.txt").write_text(f"<b>{k}</b>")
    return found
