"""Run the README's examples against the installed package, which must not be the checkout's: what `make dist` does."""

from __future__ import annotations

import warnings
from pathlib import Path

from code_blocks import ROOT, markdown_blocks, run

import botorch_skewgp
from botorch_skewgp.exceptions import SkewGPWarning

if __name__ == "__main__":
    place = Path(botorch_skewgp.__file__)
    if ROOT in place.parents:
        raise SystemExit(f"{place} is the checkout; run this from elsewhere, with the wheel installed.")
    if not (place.parent / "py.typed").exists():
        raise SystemExit("The wheel lacks py.typed.")
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", category=SkewGPWarning)  # none of ours
    namespace: dict[str, object] = {}
    blocks = markdown_blocks(ROOT / "README.md")
    for number, block in enumerate(blocks):
        run(block, f"README block {number}", namespace)
    print(f"{len(blocks)} examples ran with {place.parent}")  # noqa: T201
