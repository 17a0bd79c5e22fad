"""Compilation of functions for CPUs, and the notice logged on the first one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache

PACKAGE = "botorch_skewgp"
_logger = logging.getLogger(PACKAGE)


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator of functions that numba compiles, keeps on disk, and runs without the interpreter's lock.

    Without a writable folder they are compiled again in every process, as are those whose files cannot be read or
    written; both are logged.

    Options are those of `numba.njit`.
    """

    def compile_it(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **options)(function)
        try:
            dispatcher._cache = _Cache(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            herald.are_kept = False
        return dispatcher

    return compile_it


class _Cache(FunctionCache):
    """Numba's compiled functions on disk; those that cannot be read or stored are compiled in this process."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # of a truncated file, any of pickle's or LLVM's
            herald.tell_fault(self.cache_path, "read", error)
            with suppress(OSError):
                self.flush()  # else nothing could be stored beside it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk
            herald.tell_fault(self.cache_path, "stored", error)


class _Herald(event.Listener):
    """Logs that functions of this package are being compiled, once in a process."""

    def __init__(self) -> None:
        self.has_told, self.are_kept, self.has_told_fault = False, True, False

    def on_start(self, event: Any) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self.has_told and module.partition(".")[0] == PACKAGE:
            self.has_told = True
            kept = "They are kept on disk."
            if not self.are_kept:
                kept = (
                    "There is no folder to keep them in, so every process does that; set NUMBA_CACHE_DIR to one that "
                    "is yours alone, for whoever can write there can run code here."
                )
            _logger.warning("Compiling numerical functions for this machine, which takes up to a minute. %s", kept)

    def tell_fault(self, folder: str, action: str, error: Exception) -> None:
        """Log that compiled functions cannot be read or stored, once in a process."""
        if not self.has_told_fault:
            self.has_told_fault = True
            _logger.warning(
                "Compiled functions in %s cannot be %s (%s: %s); they are compiled in this process. Empty the folder "
                "or make room for it.",
                folder,
                action,
                type(error).__name__,
                error,
            )

    def on_end(self, event: Any) -> None:
        """Abstract in numba; nothing is logged."""


herald = _Herald()
event.register("numba:compile", herald)
