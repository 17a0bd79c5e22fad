"""Warnings that the user of a host cannot act on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from botorch.exceptions.warnings import BadInitialCandidatesWarning, BotorchWarning, OptimizationWarning
from scipy.optimize import OptimizeWarning


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
