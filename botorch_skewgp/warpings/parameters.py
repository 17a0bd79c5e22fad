r"""Modules whose parameters are given from outside, such as one value for each of several nodes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TypeVar

import torch
from gpytorch import Module
from gpytorch.kernels import Kernel
from torch import Tensor

AnyModule = TypeVar("AnyModule", bound=Module)


def with_parameters(module: AnyModule, raw: Mapping[str, Tensor], batch_shape: torch.Size | None = None) -> AnyModule:
    r"""A copy of a module that has tensors in the place of parameters.

    Args:
        module: A module with parameters of its own, as it was built.
        raw: Raw parameters by name.
        batch_shape: The leading shape of the tensors, for the kernels among the modules; their own if `None`.
    """
    result = deepcopy(module)
    for name, value in raw.items():
        path, _, leaf = name.rpartition(".")
        owner = result.get_submodule(path)
        delattr(owner, leaf)
        setattr(owner, leaf, value)
    for entry in result.modules() if batch_shape is not None else ():
        if isinstance(entry, Kernel):
            entry.batch_shape = batch_shape + entry._batch_shape
    return result
