"""The table of ends is on both pages, and says each thing once."""

from pathlib import Path

import pytest

from botorch_skewgp.hosts.ends import ENDS, Says, table_of_ends

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["ax", "optuna"])
def test_both_pages_show_the_table(page):
    assert table_of_ends() in (DOCS / f"{page}.md").read_text()


def test_only_what_the_objective_did_or_a_person_said_is_a_failure():
    failures = [entry.happened for entry in ENDS if entry.says is Says.FAILS]
    assert [text.split()[:2] for text in failures] == [
        ["the", "objective"],
        ["it", "returned"],
        ["the", "objective"],
        ["you", "said"],
    ]
