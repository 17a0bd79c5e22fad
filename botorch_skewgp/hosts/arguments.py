"""Checks of a user's arguments, which raise the host's class of errors."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

SEEDS = (-(2**63), 2**64)  # those that torch takes, the second one excluded


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_count(value: Any, name: str, error: type[Exception]) -> int:
    r"""A positive whole number.

    Args:
        value: The argument.
        name: Its name.
        error: The class of the error.
    """
    if not is_whole(value) or value < 1:
        raise error(f"{name} must be a positive whole number; got {value!r}.")
    return int(value)


def as_seed(value: Any, error: type[Exception]) -> int | None:
    r"""A seed that torch takes, or `None`.

    Args:
        value: The argument.
        error: The class of the error.
    """
    if value is None:
        return None
    if not is_whole(value) or not SEEDS[0] <= value < SEEDS[1]:
        raise error(f"seed must be a whole number of at most 64 bits, or None; got {value!r}.")
    return int(value)


def as_real(value: Any, name: str, error: type[Exception]) -> float:
    r"""A number, which may be infinite or NaN; also one in an array or a tensor.

    Args:
        value: The argument.
        name: Its name.
        error: The class of the error.
    """
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise error(f"{name} must be a number; got {value!r}.") from None


def as_names(value: Any, name: str, error: type[Exception]) -> list[str]:
    r"""A list of names.

    Args:
        value: The argument.
        name: Its name.
        error: The class of the error.
    """
    if isinstance(value, str):
        raise error(f"{name} must be a list of names; write [{value!r}] for a single one.")
    names = list(value) if isinstance(value, Iterable) else [value]
    if not isinstance(value, Iterable) or not all(isinstance(entry, str) for entry in names):
        raise error(f"{name} must be a list of names; got {value!r}.")
    return names
