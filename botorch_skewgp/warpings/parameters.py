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
        batch_shape: The leading shape of the tensors, for the kernels that they belong to; these keep theirs if `None`.
    """
    result, batched = deepcopy(module), set()
    for name, value in raw.items():
        path, _, leaf = name.rpartition(".")
        owner = result.get_submodule(path)
        delattr(owner, leaf)
        setattr(owner, leaf, value)
        if batch_shape is not None and isinstance(owner, Kernel) and owner not in batched:
            owner.batch_shape = batch_shape + owner._batch_shape
            batched.add(owner)
    return result
