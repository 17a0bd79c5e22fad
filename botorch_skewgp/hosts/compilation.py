"""Acquisition functions without BoTorch's compiled kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from botorch.acquisition.multi_objective import logei

ATTEMPTED = "_load_attempted"  # BoTorch's own flag; former versions have neither flag nor kernel
_turn = threading.RLock()


@contextmanager
def without_compilation() -> Iterator[None]:
    """Build acquisition functions of several objectives without compiling BoTorch's kernel for this machine.

    The compilation takes minutes in which nothing is printed, and waits for ever behind the lock of a process that was
    killed meanwhile. BoTorch's functions give the same values without it; a kernel that is already loaded is used.
    """
    if not hasattr(logei, ATTEMPTED):
        yield
        return
    with _turn:  # one thread at a time, or the flag of another would be restored
        before = getattr(logei, ATTEMPTED)
        setattr(logei, ATTEMPTED, True)
        try:
            yield
        finally:
            setattr(logei, ATTEMPTED, before)
