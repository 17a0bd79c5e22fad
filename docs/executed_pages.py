"""Run the Python blocks of pages when they are built, and show what they print and draw.

The source stays plain Markdown, which GitHub colours. A comment before a block, `<!-- fold: Imports -->`, folds it
under these words; `<!-- not run: why -->` leaves it as it is. Of last expressions only data frames are shown. What ran
is kept as long as neither the page's code nor a file of the package changes.
"""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path

from sphinx.application import Sphinx

import botorch_skewgp

BLOCK = re.compile(r"(?:^<!-- (fold|not run): (.+?) -->\n)?^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n"
FIRST_CELL = """```{{code-cell}}
:tags: [remove-cell]
# the package: {package}
import logging

import matplotlib.pyplot
import torch

logging.disable(logging.INFO)
torch.set_num_threads(1)
torch.manual_seed(0)
matplotlib.pyplot.rcParams["figure.dpi"] = 90
show = get_ipython().displayhook
get_ipython().display_trap.hook = lambda value: show(value) if hasattr(value, "_repr_html_") else None
```

"""


def as_notebook(app: Sphinx, docname: str, source: list[str]) -> None:
    """Make a notebook of a page of Markdown that has Python blocks."""
    if not any(kind != "not run" for kind, _, _ in BLOCK.findall(source[0])):
        return
    source[0] = HEAD + FIRST_CELL.format(package=app.config.package_hash) + BLOCK.sub(cell, source[0])


def cell(block: re.Match[str]) -> str:
    """A block as a cell of a notebook."""
    kind, words, code = block.groups()
    if kind == "not run":
        return block[0]
    options = f':tags: [hide-input]\n:mystnb: {{code_prompt_show: "{words}"}}\n' if kind == "fold" else ""
    return f"```{{code-cell}}\n{options}{code}```\n"


def package_hash() -> str:
    """Changes with any file of the package."""
    files = sorted(Path(botorch_skewgp.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_config_value("package_hash", package_hash(), "env")  # pages are read again when it changes
    app.connect("source-read", as_notebook)
    logging.getLogger("traitlets").setLevel(logging.WARNING)  # a line for each page
