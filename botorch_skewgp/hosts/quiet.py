"""What the user of a host cannot act on: some warnings, and the compilation of BoTorch's kernel."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from botorch.acquisition.multi_objective import logei
from botorch.exceptions.warnings import BadInitialCandidatesWarning, BotorchWarning, OptimizationWarning
from scipy.optimize import OptimizeWarning

ATTEMPTED = "_load_attempted"  # BoTorch's own flag; former versions have neither flag nor kernel
_turn = threading.RLock()


@contextmanager
def suppress_irrelevant_warnings() -> Iterator[None]:
    """Silence warnings that a host's user cannot act on while a point is chosen.

    BoTorch: advice to take another acquisition function where no observed point meets the constraints in some samples;
    equal values at all raw points; one of several starts that stopped early; its tolerance given to scipy's solver,
    which has another; fewer points left than wanted. Ax: a slow way to copy tensors.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "When all training points are infeasible", BotorchWarning)
        warnings.filterwarnings("ignore", "Unknown solver options: tol", OptimizeWarning)
        warnings.filterwarnings("ignore", "To copy construct from a tensor", UserWarning, r"ax\.")
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        warnings.filterwarnings("ignore", r"\s*Requested q=", OptimizationWarning)
        warnings.filterwarnings("ignore", category=BadInitialCandidatesWarning)
        yield


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
