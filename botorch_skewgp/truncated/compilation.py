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
            _log_once(
                "There is no folder to keep compiled functions in, so that every process compiles them; set "
                "NUMBA_CACHE_DIR to one that is yours alone, for whoever can write there can run code here."
            )
        return dispatcher

    return compile_it


class _Cache(FunctionCache):
    """Numba's compiled functions on disk; those that cannot be read or stored are compiled in this process."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # of a truncated file, any of pickle's or LLVM's
            self._log("read", error)
            with suppress(OSError):
                self.flush()  # else nothing could be stored beside it
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk
            self._log("stored", error)

    def _log(self, action: str, error: Exception) -> None:
        _log_once(
            f"Compiled functions in {self.cache_path} cannot be {action} ({type(error).__name__}: {error}); they are "
            "compiled in this process. Empty the folder or make room for it."
        )


@functools.cache
def _log_once(message: str) -> None:
    """Log a message, once in a process."""
    _logger.warning(message)
