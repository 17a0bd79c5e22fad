"""When pages are built, rows of tables that are older than the code that they measure have a dagger."""

from __future__ import annotations

from sphinx.application import Sphinx

from benchmarks import tables


def mark_stale_rows(app: Sphinx, docname: str, source: list[str]) -> None:
    """Called with the text of each page."""
    source[0] = tables.marked(source[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", mark_stale_rows, priority=400)  # before pages become notebooks
