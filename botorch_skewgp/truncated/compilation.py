"""Compilation of functions for CPUs, and the notice logged on the first one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core import event

PACKAGE = "botorch_skewgp"
_logger = logging.getLogger(PACKAGE)


def compiled(signature: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    r"""A decorator of functions that numba compiles, keeps on disk, and runs without the interpreter's lock.

    Without a writable folder they are compiled again in every process, which is logged.

    Args:
        signature: Types to compile for when the module is loaded; by default those of the first call's arguments.
        options: What else `numba.njit` takes.
    """

    def compile_it(function: Callable[..., Any]) -> Any:
        try:
            return njit(signature, cache=True, nogil=True, **options)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
        herald.are_kept = False
        return njit(signature, nogil=True, **options)(function)

    return compile_it


class _Herald(event.Listener):
    """Logs that functions of this package are being compiled, once in a process."""

    def __init__(self) -> None:
        self.has_told, self.are_kept = False, True

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self.has_told and module.partition(".")[0] == PACKAGE:
            self.has_told = True
            kept = "They are kept on disk."
            if not self.are_kept:
                kept = "There is no folder to keep them in, so every process does that; set NUMBA_CACHE_DIR to one."
            _logger.warning("Compiling numerical functions for this machine, which takes up to a minute. %s", kept)

    def on_end(self, event: Any) -> None:
        """Nothing is said of that."""


herald = _Herald()
event.register("numba:compile", herald)
