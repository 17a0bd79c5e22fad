r"""Modules whose parameters are given from outside, such as one value for each of several nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import torch
from gpytorch import Module
from gpytorch.kernels import Kernel
from torch import Tensor

AnyModule = TypeVar("AnyModule", bound=Module)


def with_parameters(module: AnyModule, raw: Mapping[str, Tensor], batch_shape: torch.Size | None = None) -> AnyModule:
    r"""A copy of a module that has tensors in the place of parameters; those not named are copied, without gradients.

    Args:
        module: A module with parameters of its own, as it was built.
        raw: Raw parameters by name.
        batch_shape: The leading shape of the tensors, for the kernels that they belong to; these keep theirs if `None`.
    """
    result, batched = cast(AnyModule, _twin(module, {})), set()
    for name, value in raw.items():
        path, _, leaf = name.rpartition(".")
        owner = result.get_submodule(path)
        delattr(owner, leaf)
        setattr(owner, leaf, value)
        if batch_shape is not None and isinstance(owner, Kernel) and owner not in batched:
            owner.batch_shape = batch_shape + owner._batch_shape
            batched.add(owner)
    return result


def _twin(module: torch.nn.Module, known: dict[int, torch.nn.Module]) -> torch.nn.Module:
    """The same tree of modules, each with containers of its own; a deep copy takes ten times as long."""
    if id(module) not in known:
        twin: Any = module.__new__(type(module))
        known[id(module)] = twin
        twin.__dict__.update(module.__dict__)
        twin._parameters = {
            name: None if value is None else torch.nn.Parameter(value.detach().clone(), requires_grad=False)
            for name, value in module._parameters.items()
        }
        twin._buffers = dict(module._buffers)
        twin._modules = {
            name: None if child is None else _twin(child, known) for name, child in module._modules.items()
        }
    return known[id(module)]
