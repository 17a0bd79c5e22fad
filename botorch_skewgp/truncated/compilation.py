"""Compilation of functions for CPUs, kept on disk."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

_logger = logging.getLogger("botorch_skewgp")


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator, with `numba.njit`'s options: compiled code is kept on disk where possible, and takes no lock."""

    def compile_it(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **options)(function)
        try:
            dispatcher._cache = _Cache(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            _log_missing_folder()
        return dispatcher

    return compile_it


class _Cache(FunctionCache):
    """Numba's compiled functions on disk; those that cannot be read or stored are compiled in this process."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # of a truncated file, any of pickle's or LLVM's
            _log_fault(self.cache_path, "read", f"{type(error).__name__}: {error}")
            with suppress(OSError):
                self.flush()  # else nothing could be stored beside it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk
            _log_fault(self.cache_path, "stored", f"{type(error).__name__}: {error}")


@functools.cache
def _log_missing_folder() -> None:
    """Log, once in a process, that compiled functions are not kept."""
    _logger.warning(
        "There is no folder to keep compiled functions in, so that every process compiles them; set NUMBA_CACHE_DIR to "
        "one that is yours alone, for whoever can write there can run code here."
    )


@functools.cache
def _log_fault(folder: str, action: str, error: str) -> None:
    """Log that compiled functions cannot be read or stored, once in a process."""
    _logger.warning(
        "Compiled functions in %s cannot be %s (%s); they are compiled in this process. Empty the folder or make room "
        "for it.",
        folder,
        action,
        error,
    )
