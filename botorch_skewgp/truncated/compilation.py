"""How functions are compiled for CPUs, and the word that is said when it happens."""

from __future__ import annotations

import logging
from typing import Any

from numba import njit
from numba.core import event

PACKAGE = "botorch_skewgp"
_logger = logging.getLogger(PACKAGE)


def compiled(signature: Any = None, **options: Any) -> Any:
    r"""A decorator of functions that numba compiles, keeps on disk, and runs without the interpreter's lock.

    Args:
        signature: Types to compile for when the module is loaded; by default those of the first call's arguments.
        options: What else `numba.njit` takes.
    """
    return njit(signature, cache=True, nogil=True, **options)


class _Herald(event.Listener):
    """Logs that functions of this package are being compiled, once in a process."""

    def __init__(self) -> None:
        self.has_told = False

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self.has_told and module.partition(".")[0] == PACKAGE:
            self.has_told = True
            _logger.warning(
                "Compiling numerical functions for this machine, which takes up to a minute. They are kept on disk."
            )

    def on_end(self, event: Any) -> None:
        """Nothing is said of that."""


herald = _Herald()
event.register("numba:compile", herald)
