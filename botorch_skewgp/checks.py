r"""Checks of arguments; each error names the argument and says what to do."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Set
from numbers import Integral, Number, Real
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

MAX_CATEGORIES = 10_000  # grades, strengths or labels: each has cut-points or a latent function
MAX_SEED = 2**63 - 1  # torch's
MAX_OPTIONS = 100  # of a question; the readings of a choice are pairs of options


def as_tensor(value: Any, name: str, hint: str = "") -> Tensor:
    """A copy as a tensor; error messages end with the hint. Raises `InputDataError`."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    try:
        plain = _as_plain(value)
        tensor = torch.tensor(plain)
        return torch.tensor(plain, dtype=torch.float64) if tensor.is_floating_point() else tensor
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputDataError(
            f"{name} must be a tensor or a list of numbers, all rows of one length and none missing; got "
            f"{type(value).__name__} ({error}).{hint}"
        ) from error


def as_each(value: Any, name: str, m: int, hint: str = "") -> Tensor:
    """A copy as a tensor, in which a single number stands for all of `m`."""
    tensor = as_tensor(value, name, hint)
    return tensor.expand(m) if tensor.ndim == 0 else tensor


def _as_plain(value: Any) -> Any:
    """Arrays, columns and tensors in lists as lists of numbers."""
    if hasattr(value, "__array__") and not isinstance(value, Tensor):
        value = value.__array__()
        if value.dtype.kind not in "biufO":
            raise TypeError(f"entries of type {value.dtype} are not numbers")
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (str, bytes, Mapping, Set)) or not isinstance(value, Iterable):
        return value
    return [_as_plain(entry) for entry in value]


def check_parameter(value: Any, name: str, positive: bool = True) -> None:
    """Raise `InputDataError` unless the value of a parameter is finite, and positive if required."""
    number = as_tensor(value, name)
    is_real = not (number.dtype == torch.bool or number.dtype.is_complex)
    if not is_real or not number.isfinite().all() or (positive and not (number > 0).all()):
        raise InputDataError(f"{name} must be {'positive and ' if positive else ''}finite; got {number.tolist()}.")


def pad_rows(value: Any) -> Any:
    """Lists of different lengths padded with -1 at the end; anything else unchanged."""
    if not isinstance(value, (list, tuple)) or not all(hasattr(row, "__len__") for row in value):
        return value
    longest = max((len(row) for row in value), default=0)
    return [[*row, *[-1] * (longest - len(row))] for row in value]


def check_parts(**parts: tuple[Any, type]) -> None:
    """Raise unless each part of an object, by the name of its argument, is `None` or of its class."""
    for name, (part, wanted) in parts.items():
        if part is not None:
            check_class(part, name, wanted)


def check_class(value: Any, name: str, wanted: type) -> None:
    """Raise `InputDataError` unless an argument is an object of a class."""
    if not isinstance(value, wanted):
        got = class_itself(value) if isinstance(value, type) else type(value)
        raise InputDataError(f"{name} must be a {wanted.__module__}.{wanted.__qualname__} object; got {got}.")


def class_itself(cls: type) -> str:
    """The words of a message for a class given instead of an object."""
    return f"the class {cls.__name__}, not an instance; write {cls.__name__}(...)"


def check_flags(**flags: Any) -> None:
    """Raise `InputDataError` unless each argument, by name, is `True` or `False`."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise InputDataError(f"{name} must be True or False; got {value!r}.")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, and no truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_count(value: Any, name: str, least: int = 2, most: int | None = None) -> int:
    """Check an integer from `least` to `most` and return it as an `int`; raises `InputDataError`."""
    try:
        count = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = least - 1
    if count < least or (most is not None and count > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputDataError(f"{name} must be an integer {bounds}; got {value!r}.")
    return count


def as_position(value: Any, size: int) -> int | None:
    """The position, from 0, that an index names in a sequence of a given size; `None` if it is out of range."""
    try:
        position = operator.index(value)
    except TypeError:
        return None
    return position % size if -size <= position < size else None


def as_seed(value: Any) -> int:
    """Check a seed and return it as an `int`; raises `InputDataError`."""
    return as_count(value, "seed", least=0, most=MAX_SEED)


def as_number(value: Any, name: str, least: float = -math.inf) -> float:
    """Check a finite number of at least `least` and return it as a `float`; raises `InputDataError`."""
    try:
        number = value.item() if hasattr(value, "item") else value
        is_finite = isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number)
    except (RuntimeError, ValueError, OverflowError):  # several numbers, or an integer beyond floating point
        is_finite = False
    if not is_finite or number < least:
        raise InputDataError(
            f"{name} must be a finite number{'' if least == -math.inf else f' of at least {least:g}'}; got {value!r}."
        )
    return float(number)


def as_probability(value: Any, name: str) -> float:
    """Check a probability in (0, 1) and return it as a `float`; raises `InputDataError`."""
    number = as_number(value, name)
    if not 0 < number < 1:
        raise InputDataError(f"{name} must be strictly between 0 and 1; got {number:g}.")
    return number


def check_names(names: Iterable[Any], name: str) -> None:
    """Raise `InputDataError` if a truth value among names is equal to a number, such as `True` and `1`."""
    names = list(names)
    truths: set[Any] = {bool(value) for value in names if type(value).__name__ in ("bool", "bool_")}  # NumPy's too
    both = [value for value in names if isinstance(value, Number) and not isinstance(value, bool) and value in truths]
    if both:
        raise InputDataError(
            f"{name} has the names {both[0]!r} and {bool(both[0])}, which are equal; write them as texts."
        )


def as_names(value: Any, name: str, count: int) -> list[str]:
    """Check a list of `count` names and return them as strings; raises `InputDataError`."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputDataError(f"{name} must be a list of {count} names; got {value!r}.")
    found = [str(entry) for entry in value]
    if len(found) != count:
        raise InputDataError(f"{name} must hold {count} names; got {len(found)}.")
    return found


def positions(wrong: Tensor) -> list[int]:
    """The first positions at which something is wrong; five are enough for a message."""
    return wrong.nonzero().squeeze(-1)[:5].tolist()


def as_index(
    value: Any, name: str, shape: str, ndim: int, padded: bool = False, what: str = "indices into train_X"
) -> Tensor:
    """Check non-negative integers (-1 is padding, where allowed), return them as int64; raises `InputDataError`."""
    index = as_tensor(pad_rows(value) if padded else value, name)
    if index.numel() == 0:
        index = index.long()
        if index.ndim == 1:  # an empty list: no answers yet
            index = index.reshape(0, *[2] * (ndim - 1))
    if index.dtype.is_floating_point or index.dtype.is_complex or index.dtype == torch.bool:
        hint = "For a mask give mask.nonzero().squeeze(-1)." if index.dtype == torch.bool else "Round them to integers."
        raise InputDataError(f"{name} must hold integer {what}; got dtype {index.dtype}. {hint}")
    if index.ndim != ndim:
        hint = f" Write {name}={[index.tolist()]} for a single one." if index.ndim == ndim - 1 else ""
        raise InputDataError(f"{name} must be a {shape} tensor; got shape {tuple(index.shape)}.{hint}")
    if (index < (-1 if padded else 0)).any():
        hint = " (-1 pads short rows)" if padded else ""
        raise InputDataError(f"{name} must not hold negative {what}; count from 0{hint}.")
    return index.long()


def as_values(value: Any, name: str) -> Tensor:
    """Check a vector of real numbers without NaN, return it in floating point; raises `InputDataError`."""
    values = as_tensor(value, name)
    if values.dtype.is_complex or values.dtype == torch.bool:
        raise InputDataError(f"{name} must hold real numbers; got dtype {values.dtype}.")
    if not values.is_floating_point():
        values = values.double()
    if values.ndim == 2 and values.shape[-1] == 1:
        values = values.squeeze(-1)  # BoTorch's n x 1 outcomes
    if values.ndim != 1:
        hint = f" Write {name}=[{values.item():g}] for a single one." if values.ndim == 0 else ""
        raise InputDataError(f"{name} must be an m-dim or m x 1 tensor; got shape {tuple(values.shape)}.{hint}")
    if bad := positions(values.isnan()):
        raise InputDataError(f"{name} contains NaN at positions {bad}; leave these observations out.")
    return values


def as_codes(value: Any, name: str, num: int, meaning: str = "") -> Tensor:
    """Check a vector of integers from 0 to `num - 1`, return it as int64; raises `InputDataError`."""
    codes = as_values(value, name)
    if bad := positions((codes != codes.round()) | (codes < 0) | (codes >= num)):
        hint = " They count from 0: subtract 1." if codes.min() == 1 and codes.max() == num else ""
        raise InputDataError(
            f"{name} must be integers from 0 to {num - 1}{meaning}; got {codes[bad].tolist()} at positions {bad}.{hint}"
        )
    return codes.long()


def as_weights(value: Any, name: str, shape: str) -> Tensor:
    """Check a matrix of finite weights, return it in floating point; raises `InputDataError`."""
    weights = as_tensor(value, name)
    if weights.ndim != 2 or weights.dtype == torch.bool or weights.is_complex():
        hint = f" Write {name}=[[...]] for a single row." if weights.ndim == 1 else ""
        raise InputDataError(
            f"{name} must be an {shape} tensor of real numbers; got {weights.dtype} of shape {tuple(weights.shape)}."
            f"{hint}"
        )
    if bad := positions(~weights.isfinite().all(-1)):
        raise InputDataError(f"{name} must be finite; it is not in rows {bad}.")
    return weights if weights.is_floating_point() else weights.double()


def check_rows_of_weights(weights: Tensor, name: str) -> None:
    """Raise `InputDataError` if a row of weights is zero."""
    if empty := positions((weights == 0).all(-1)):
        raise InputDataError(
            f"{name} is zero in all of rows {empty}, which then do not depend on the function; leave them out."
        )


def as_point_index(index: Any, m: int, name: str) -> Tensor:
    """Check an index with one entry per observation, by default `0, ..., m - 1`; raises `InputDataError`."""
    if index is None:
        return torch.arange(m)
    index = as_index(index, "index", "m-dim", ndim=1)
    check_length(index, m, "index", f"entries of {name}")
    return index


def check_length(values: Tensor, m: int, name: str, what: str) -> None:
    """Raise `InputDataError` unless there is a value for each of `m` others."""
    if len(values) != m:
        raise InputDataError(f"{name} must have one entry for each of the {m} {what}; got {len(values)}.")


def as_flags(value: Any, name: str) -> Tensor:
    """Check a vector of 0 and 1 and return it as booleans; raises `InputDataError`."""
    flags = as_tensor(value, name)
    flags = as_values(flags.double() if flags.dtype == torch.bool else flags, name)
    if bad := positions((flags != 0) & (flags != 1)):
        raise InputDataError(f"{name} must be 0 or 1; got {flags[bad].tolist()} at positions {bad}.")
    return flags.bool()


def check_pairs(pairs: Any, name: str, what: str = "indices into train_X", item: str = "a point") -> Tensor:
    """Check an m x 2 tensor of integers that differ within each row, return it as int64; raises `InputDataError`."""
    pairs = as_index(pairs, name, "m x 2", ndim=2, what=what)
    if pairs.shape[-1] != 2:
        raise InputDataError(f"{name} must be m x 2, winner first; got shape {tuple(pairs.shape)}.")
    if bad := positions(pairs[:, 0] == pairs[:, 1]):
        raise InputDataError(f"{name} compares {item} with itself in rows {bad}; leave these out.")
    return pairs
