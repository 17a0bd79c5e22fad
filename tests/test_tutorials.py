"""Every tutorial runs from top to bottom in its short form, and is stored with outputs that fit it."""

import warnings
from pathlib import Path

import matplotlib
import pytest
from programs import run_program

from botorch_skewgp.exceptions import FewAnswersWarning

nbformat = pytest.importorskip("nbformat", reason="the notebooks are run with the extra `tutorials`")

TUTORIALS = sorted((Path(__file__).parents[1] / "tutorials").glob("*.ipynb"))
MAX_LINES = 30  # of a code cell
MAX_BYTES = 400_000  # of a notebook with its pictures


def run_cells(path: str) -> None:
    """The code cells one after another; a warning is an error, as in all tests, and a cell's name is in the traceback.

    matplotlib's of pictures that nobody sees or closes pass, and that of few answers, as there are in a short form.
    """
    matplotlib.use("agg")
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive", UserWarning)
    warnings.filterwarnings("ignore", "More than 20 figures have been opened", RuntimeWarning)
    warnings.filterwarnings("ignore", category=FewAnswersWarning)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{Path(path).name}, {cell.id}", "exec"), namespace)


@pytest.fixture(params=TUTORIALS, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


@pytest.mark.slow
def test_runs(path):
    ended = run_program(path, run_cells, cwd=path.parent)  # as Jupyter does
    assert ended.code == 0, ended.stderr[-3000:]


def test_is_stored_with_outputs_that_fit(path):
    """Under a heading; executed in order, without errors, warnings, times or paths of the machine it was made on."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(not cell.metadata for cell in notebook.cells)
    text = path.read_text()
    assert len(text) < MAX_BYTES
    assert not [place for place in ("/home/", "/tmp/", "/work/", "/root/", "/Users/") if place in text]
    assert max(len(cell.source.splitlines()) for cell in code) <= MAX_LINES
