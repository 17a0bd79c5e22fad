"""The table of ends is on the page of failures, to which the hosts' pages lead, and says each thing once."""

from pathlib import Path

import pytest

from botorch_skewgp.hosts.ends import ENDS, Says, table_of_ends

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_failures_shows_the_table():
    assert table_of_ends() in (DOCS / "failures.md").read_text()


@pytest.mark.parametrize("page", ["ax", "optuna"])
def test_pages_of_hosts_lead_to_the_table(page):
    assert "(failures.md#in-ax-and-optuna)" in (DOCS / f"{page}.md").read_text()


def test_only_what_the_objective_did_or_a_person_said_is_a_failure():
    failures = [entry.happened for entry in ENDS if entry.says is Says.FAILS]
    assert [text.split()[:2] for text in failures] == [
        ["the", "objective"],
        ["it", "returned"],
        ["the", "objective"],
        ["you", "said"],
    ]
