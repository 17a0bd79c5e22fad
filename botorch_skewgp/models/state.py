r"""What a model's posterior depends on, to find out whether it has changed."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from typing import Any, Self

import gpytorch
import torch
from torch import Tensor
from torch.nn import Module

# Attributes that hold no values: modes, hooks and bookkeeping of modules, and what lists of modules and tensors have.
_OF_ALL_MODULES = frozenset(vars(gpytorch.Module()))
_PLAIN = (bool, int, float, complex, str, bytes, set, frozenset)


@dataclass(frozen=True, eq=False)
class ModelState:
    r"""A copy of what a model's posterior depends on; GPyTorch's writes through `.data` change no version.

    Args:
        modules: The modules below the model; those of a model are shared by its models of judges.
        contents: Copies of data, settings, parameters, buffers, and of the modules' plain attributes.
        learned: Whether parameters that require gradients are part of it.
    """

    modules: list[Module]
    contents: list[Any]
    learned: bool = True

    @classmethod
    def of(cls, model: Module, *others: Any, learned: bool = True) -> Self:
        """The present state, with data and settings of the model."""
        modules = modules_below(model)
        return cls(modules, _copy(_contents(model, modules, others, learned)), learned)

    def is_of(self, model: Module, *others: Any) -> bool:
        """Whether a model, or one that shares its modules, is still in this state."""
        modules = modules_below(model)
        if [*map(id, modules)] != [*map(id, self.modules)]:
            return False
        return _is_equal(_contents(model, modules, others, self.learned), self.contents)


def _contents(model: Module, modules: list[Module], others: tuple[Any, ...], learned: bool) -> list[Any]:
    """Everything that is compared."""
    tensors = [tensor for tensor in tensors_of([model, *modules]) if learned or not tensor.requires_grad]
    return [*others, *tensors, *map(attributes_of, modules)]


def modules_below(parent: Module) -> list[Module]:
    """The modules below another one; those of a model are shared by its models of fantasies."""
    found: list[Module] = []
    ahead: list[Module | None] = [*parent._modules.values()]
    while ahead:  # called at every posterior; torch's generators take three times as long
        module = ahead.pop()
        if module is not None:
            found.append(module)
            ahead += module._modules.values()
    return found


def tensors_of(modules: list[Module]) -> list[Tensor]:
    """The parameters and buffers of modules, their own and not those of modules below them."""
    entries = (entry for module in modules for entry in (*module._parameters.values(), *module._buffers.values()))
    return [entry for entry in entries if entry is not None]


def attributes_of(module: Module) -> dict[str, Any]:
    """The plain attributes of a module, without what is computed from others and kept."""
    kept = _cached_properties(type(module))  # type: ignore[arg-type]
    return {name: value for name, value in vars(module).items() if name not in _OF_ALL_MODULES and name not in kept}


@cache
def _cached_properties(kind: type) -> frozenset[str]:
    """The names of the cached properties of a class."""
    return frozenset(name for name in dir(kind) if isinstance(getattr(kind, name, None), cached_property))


def _copy(value: Any) -> Any:
    """A copy of tensors and of containers of values; other objects are compared by identity."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if is_dataclass(value) and not isinstance(value, type):
        return _copy(_fields(value))
    if isinstance(value, dict):
        return {name: _copy(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return [_copy(entry) for entry in value]
    return set(value) if isinstance(value, set) else value


def _is_equal(value: Any, copied: Any) -> bool:
    """Whether a value equals what was copied."""
    if value is copied:  # most are; what can change in place has been copied
        return True
    if isinstance(value, Tensor):
        return isinstance(copied, Tensor) and value.dtype == copied.dtype and torch.equal(value, copied)
    if isinstance(value, dict):
        if not isinstance(copied, dict) or value.keys() != copied.keys():
            return False
        return all(entry is copied[name] or _is_equal(entry, copied[name]) for name, entry in value.items())
    if isinstance(value, list | tuple):
        return isinstance(copied, list) and len(value) == len(copied) and all(map(_is_equal, value, copied))
    if is_dataclass(value):
        return _is_equal(_fields(value), copied)
    return type(value) is type(copied) and isinstance(value, _PLAIN) and value == copied


def are_equal(value: Any, other: Any) -> bool:
    """Whether two values of the kinds that are copied are equal."""
    return value is other or _is_equal(value, _copy(other))


def _fields(value: Any) -> dict[str, Any]:
    """The class and the fields of an instance of a data class."""
    return {"class": type(value), **{field.name: getattr(value, field.name) for field in fields(value)}}
