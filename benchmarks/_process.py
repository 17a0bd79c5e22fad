"""What a function finds in a fresh process of one thread, whose time and memory are then its own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULT = "RESULT "


def tell(found: dict[str, Any]) -> None:
    """Hand over what has been found so far: it counts if nothing follows."""
    print(RESULT + json.dumps(found), flush=True)


def apart(
    function: Callable[..., dict[str, Any]], *arguments: Any, limit: float | None = None, python: str = sys.executable
) -> dict[str, Any]:
    """What a function finds, all of JSON's kinds, within seconds of the clock; and `why`, if it does not end well."""
    command = [python, "-m", __name__, function.__module__, function.__name__, json.dumps(arguments)]
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    options: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": path}, "cwd": tempfile.gettempdir()}
    why = ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, **options)
        printed = done.stdout
        if done.returncode:
            why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1][:200]
    except subprocess.TimeoutExpired as error:
        printed, why = (error.stdout or b"").decode(), f"not done in {limit:g} s"
    lines = [line for line in printed.splitlines() if line.startswith(RESULT)]
    found = json.loads(lines[-1].removeprefix(RESULT)) if lines else {}
    return found | ({"why": why} if why else {})


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    module, name, task = sys.argv[1:]
    tell(getattr(importlib.import_module(module), name)(*json.loads(task)))
