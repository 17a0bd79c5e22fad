"""The README's code blocks run as they are, one after another."""

from __future__ import annotations

import pytest
import torch
from code_blocks import ROOT, markdown_blocks, run

BLOCKS = markdown_blocks(ROOT / "README.md")


def test_blocks_run(capsys):
    for extra in ("ax", "optuna"):
        pytest.importorskip(extra)
    namespace: dict[str, object] = {}
    models = 0
    for number, block in enumerate(BLOCKS):
        before = namespace.get("model")
        run(block, f"README block {number}", namespace)
        model, train_X = namespace["model"], namespace["train_X"]
        if model is not before:
            mean = model.posterior(train_X).mean  # type: ignore[attr-defined]
            assert mean.shape == (len(train_X), 1)  # type: ignore[arg-type]
            assert torch.isfinite(mean).all()
            models += 1
    assert models == 3
    median = namespace["outcome"].median  # type: ignore[attr-defined]
    assert (median > 0).all()  # the warping's domain


def test_pages_and_pictures_that_it_names_exist():
    text = (ROOT / "README.md").read_text()
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    local = [link for link in links if not link.startswith("http")]
    assert len(local) > 10
    for link in local:
        assert (ROOT / link).exists(), link
