"""The README's code blocks run as they are."""

from __future__ import annotations

import pytest
import torch
from code_blocks import ROOT, markdown_blocks, run

BLOCKS = markdown_blocks(ROOT / "README.md")


@pytest.mark.parametrize("number", range(len(BLOCKS)))
@pytest.mark.filterwarnings("ignore::botorch.exceptions.InputDataWarning")
def test_block_runs(number, capsys):
    namespace: dict[str, object] = {}
    run(BLOCKS[number], f"README block {number}", namespace)
    model = namespace["model"]
    mean = model.posterior(namespace["train_X"]).mean  # type: ignore[attr-defined]
    assert mean.shape == (len(namespace["train_X"]), 1)  # type: ignore[arg-type]
    assert torch.isfinite(mean).all()
