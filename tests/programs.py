"""Programs in processes of their own, which are forked from one that has paid for the imports."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["botorch_skewgp", "botorch_skewgp.ax", "botorch_skewgp.optuna", "matplotlib.pyplot"])
ENVIRONMENT = {"SMOKE_TEST": "1", "RAY_USAGE_STATS_ENABLED": "0"}


class Ended(NamedTuple):
    """What is left of a program."""

    code: int | None
    stdout: str
    stderr: str


def run_program(path: Path, run: Callable[[str], object] | None = None, cwd: Path | None = None) -> Ended:
    """Run a program in its short form, by `runpy` or by a function of its path, which must be one of a module."""
    with tempfile.TemporaryDirectory() as folder:
        process = CONTEXT.Process(target=_main, args=(run or _as_main, str(path), str(cwd or Path.cwd()), folder))
        process.start()
        process.join()
        texts = ((Path(folder) / name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        return Ended(process.exitcode, *texts)


def _as_main(path: str) -> None:
    runpy.run_path(path, run_name="__main__")


def _main(run: Callable[[str], object], path: str, cwd: str, folder: str) -> None:
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(folder) / name, os.O_WRONLY | os.O_CREAT), stream)
    os.environ.update(ENVIRONMENT)
    os.chdir(cwd)
    sys.argv = [path]
    sys.path.insert(0, str(Path(path).parent))
    torch.set_num_threads(1)
    try:
        run(path)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
