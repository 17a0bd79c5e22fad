"""The choice of a backend: numba on CPUs, torch everywhere."""

from __future__ import annotations

import functools
import logging
from importlib.util import find_spec

import torch

BACKENDS = ("auto", "eager", "numba")
_logger = logging.getLogger("botorch_skewgp")


def uses_numba(device: torch.device) -> bool:
    """Whether numba compiles for `device` and is installed."""
    return choose_backend("auto", device) == "numba"


def choose_backend(name: str, device: torch.device) -> str:
    """The backend for `name` on `device`.

    "auto" takes numba on CPU where it is installed, and eager torch elsewhere; a backend that is named raises
    `ImportError` or `ValueError` where it cannot run.
    """
    if name not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}; got {name!r}.")
    if name == "eager":
        return name
    if name == "auto":
        if device.type != "cpu":
            return "eager"
        if find_spec("numba") is not None:
            return "numba"
        log_missing_numba()
        return "eager"
    if find_spec(name) is None:
        raise ImportError(f"backend={name!r} needs {name}; the extra `fast` installs it.")
    if device.type != "cpu":
        raise ValueError(f"backend={name!r} runs on cpu, the distribution is on {device.type}; use 'auto'.")
    return name


@functools.cache
def log_missing_numba() -> None:
    """Log, once in a process, that samplers run in eager torch, and the extra that compiles them."""
    _logger.warning(
        "numba is not installed, so that samplers run in eager torch, up to a hundred times slower; the extra `fast` "
        "installs it."
    )
