"""The README's code blocks run as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
@pytest.mark.filterwarnings("ignore::botorch.exceptions.InputDataWarning")
def test_block_runs(number, capsys):
    namespace: dict[str, object] = {}
    exec(compile(BLOCKS[number], f"README block {number}", "exec"), namespace)
    model = namespace["model"]
    mean = model.posterior(namespace["train_X"]).mean  # type: ignore[attr-defined]
    assert mean.shape == (len(namespace["train_X"]), 1)  # type: ignore[arg-type]
    assert torch.isfinite(mean).all()
