"""What the user of a host cannot act on: some warnings, and the compilation of BoTorch's kernel."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from botorch.acquisition.multi_objective import logei
from botorch.exceptions.warnings import BadInitialCandidatesWarning, BotorchWarning, OptimizationWarning
from scipy.optimize import OptimizeWarning

ATTEMPTED = "_load_attempted"  # BoTorch's own flag
_turn = threading.RLock()


@contextmanager
def suppress_irrelevant_warnings() -> Iterator[None]:
    """Silence warnings of starts that stopped early, raw points of equal values, options of scipy's solver, samples
    without a feasible point, fewer points left than wanted, and a slow way to copy tensors.
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
    """Keep BoTorch from compiling a kernel for several objectives, which takes silent minutes, and for ever behind the
    lock of a killed process. The values are the same without it; a kernel that is already loaded is used.
    """
    with _turn:  # one thread at a time, or the flag of another would be restored
        before = getattr(logei, ATTEMPTED)
        setattr(logei, ATTEMPTED, True)
        try:
            yield
        finally:
            setattr(logei, ATTEMPTED, before)
