"""Points and bounds as tensors: their shapes, precision and digits."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.exceptions.warnings import InputDataWarning, _get_single_precision_warning
from torch import Tensor

from botorch_skewgp.checks import as_tensor

SMALLEST_UNIT = 1e-2  # in units of which squared distances must not overflow


def as_bounds(bounds: Any, dim: int | None = None) -> Tensor:
    """Bounds, `2 x d`, as a floating point tensor, also from lists or integers; raises `InputDataError`."""
    bounds = as_tensor(bounds, "bounds")
    bounds = bounds if bounds.dtype in (torch.float32, torch.float64) else bounds.double()
    if bounds.ndim != 2 or bounds.shape[0] != 2 or bounds.shape[1] == 0 or dim not in (None, bounds.shape[1]):
        wanted = "2 x d" if dim is None else f"2 x {dim}"
        raise InputDataError(f"bounds must be {wanted}, lower ones first; got shape {tuple(bounds.shape)}.")
    if not (bounds[0] <= bounds[1]).all() or not bounds.isfinite().all():
        raise InputDataError(f"bounds must be finite, and lower ones not above upper ones; got {bounds.tolist()}.")
    return bounds


def check_digits_of_points(X: Tensor) -> None:
    """Raise `InputDataError` where squared distances of points overflow, in units of `SMALLEST_UNIT`."""
    largest = SMALLEST_UNIT * math.sqrt(torch.finfo(X.dtype).max / max(1, X.shape[-1]))
    if not X.numel() or bool(X.detach().abs().amax() < largest):  # the common case, without squares
        return
    square = (X / SMALLEST_UNIT).square().sum(-1)
    if bool((square.isinf() & X.isfinite().all(-1)).any()):
        raise InputDataError(
            f"Some points are too large for {X.dtype}: the largest input is {X.abs().max():.3g}. Scale them, such as "
            "with input_transform=Normalize(d), or use double precision."
        )


def _check_precision(X: Any, name: str) -> None:
    """Raise unless `X` is a tensor of single or double precision."""
    if not isinstance(X, Tensor) or X.dtype not in (torch.float32, torch.float64):
        kind = X.dtype if isinstance(X, Tensor) else type(X).__name__
        raise InputDataError(
            f"{name} must be a floating point tensor of single or double precision; got {kind}. Give "
            f"torch.as_tensor({name}, dtype=torch.double)."
        )


def check_query(X: Tensor, train_X: Tensor, num_appended: int = 0) -> Tensor:
    """Check points of a query, `batch_shape x q x d`, before input transforms change their buffers; raises errors."""
    _check_precision(X, "X")
    if X.ndim < 2:
        raise BotorchTensorDimensionError(f"X must be batch_shape x q x d; got shape {tuple(X.shape)}.")
    wanted = train_X.shape[-1] - num_appended
    if X.shape[-1] != wanted:
        but = f", without the {num_appended} that the input transform appends" if num_appended else ""
        raise BotorchTensorDimensionError(
            f"X must have {wanted} columns like train_X{but}; got shape {tuple(X.shape)}."
        )
    if X.dtype == torch.float64 and train_X.dtype == torch.float32:
        raise InputDataError(
            "X has double and the model single precision. Build the model from train_X.double(), or give X.float()."
        )
    check_finite(X, "X")
    return X.double() if train_X.dtype == torch.float64 else X


def check_finite(X: Tensor, name: str) -> None:
    """Raise `InputDataError` where points are NaN or infinite."""
    if not X.detach().sum().isfinite() and not X.isfinite().all():  # a sum takes less, but may overflow
        where = (~X.isfinite()).any(-1).nonzero()[:5].squeeze(-1).tolist()
        raise InputDataError(
            f"{name} contains NaN or infinite values in rows {where}; remove or repair these. Options that are "
            "unavailable need values too."
        )


def check_train_X(X: Tensor, warn: bool = True, name: str = "train_X") -> None:
    """Raise `InputDataError` unless points are finite `n x d` floats; warn of single precision as BoTorch does."""
    _check_precision(X, name)
    if X.ndim != 2 or X.shape[-1] == 0:
        raise InputDataError(f"{name} must be n x d; got shape {tuple(X.shape)}. Give it a column for each input.")
    check_finite(X, name)
    if warn and X.dtype == torch.float32:
        warnings.warn(_get_single_precision_warning(str(X.dtype)), InputDataWarning, stacklevel=3)
