"""The README's code blocks run as they are, one after another."""

from __future__ import annotations

import re

import pytest
import torch
from code_blocks import ROOT, markdown_blocks, run

TEXT = (ROOT / "README.md").read_text()
BLOCKS = markdown_blocks(ROOT / "README.md")
SHOWN = TEXT.partition("```text\n")[2].partition("```")[0]  # what the first block prints
MAX_ROWS = 5  # of measurements


def test_blocks_run(capsys):
    for extra in ("ax", "optuna"):
        pytest.importorskip(extra)
    namespace: dict[str, object] = {}
    for number, block in enumerate(BLOCKS):
        run(block, f"README block {number}", namespace)
        if number == 0:
            printed = capsys.readouterr().out
            assert printed.count("%") == SHOWN.count("%") == 4
            assert re.sub(r"\d+%", "", printed) == re.sub(r"\d+%", "", SHOWN)
            found, shown = (torch.tensor([int(n) for n in re.findall(r"(\d+)%", text)]) for text in (printed, SHOWN))
            assert (found - shown).abs().max() <= 3
    model = namespace["mixed"]
    mean = model.posterior(namespace["train_X"]).mean  # type: ignore[attr-defined]
    assert mean.shape == (6, 1)
    assert torch.isfinite(mean).all()


def test_it_stays_a_landing_page():
    shown = re.sub(r"<!--.*?-->", "", TEXT, flags=re.DOTALL)
    assert len(shown.splitlines()) < 200
    measured = shown.partition("## What was measured")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\|", measured, flags=re.MULTILINE)) - 2 <= MAX_ROWS


def test_counts_are_right():
    tutorials = len(list((ROOT / "tutorials").glob("*.ipynb")))
    assert tutorials == 14
    assert "fourteen tutorials" in TEXT
    section = TEXT.partition("[All thirteen kinds]")[2].partition("```")[0]
    assert len(re.findall(r"`\w+`", section)) == 13
