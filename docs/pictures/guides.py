"""The pictures of guides, the first that each page's code draws: `python docs/pictures/guides.py` runs the pages."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import torch

mpl.use("agg")
from matplotlib import pyplot  # after the choice of a backend

DOCS = Path(__file__).parents[1]
PAGES = ("getting_started", "items", "questionnaires", "safe_search", "shapes", "slips", "thresholds", "transformed")


def draw(page: str) -> None:
    """Run the Python blocks of a page up to its first figure, and save that."""
    torch.manual_seed(0)
    names: dict[str, object] = {}
    text = (DOCS / f"{page}.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, page, "exec", dont_inherit=True), names)  # the page's own code
        if pyplot.get_fignums():
            break
    pyplot.figure(pyplot.get_fignums()[0]).savefig(Path(__file__).parent / f"{page}.png", dpi=90, bbox_inches="tight")
    pyplot.close("all")


if __name__ == "__main__":
    for page in PAGES:
        draw(page)
