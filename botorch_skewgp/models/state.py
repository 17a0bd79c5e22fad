r"""What a model's posterior depends on, to find out whether it has changed."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, Self

import gpytorch
import torch
from torch import Tensor
from torch.nn import Module, Parameter

# Attributes that hold no values: modes, hooks and bookkeeping of modules, and what lists of modules and tensors have.
_OF_ALL_MODULES = frozenset(vars(gpytorch.Module()))
_PLAIN = (bool, int, float, complex, str, bytes, set, frozenset)


@dataclass(frozen=True, eq=False)
class ModelState:
    r"""Copies of what a model's posterior depends on; GPyTorch's writes through `.data` change no version."""

    modules: list[Module]  # the modules below the model
    attributes: list[dict[str, Any]]  # copies of the plain attributes of each of them
    values: list[Any]  # copies of all parameters and buffers, of settings, and of data
    names: list[frozenset[str]]  # the names of all that each module has, what is computed and kept among them

    @classmethod
    def of(cls, model: Module, *others: Any) -> Self:
        """The present state."""
        modules = modules_below(model)
        tensors = tensors_of([model, *modules])
        names = [frozenset(vars(module)) for module in modules]
        return cls(modules, [_copy(_attributes(module)) for module in modules], _copy([*others, *tensors]), names)

    def is_of(self, model: Module, *others: Any) -> bool:
        """Whether a model, or one that shares its modules, is still in this state."""
        modules = modules_below(model)
        return (
            len(modules) == len(self.modules)
            and all(now is before for now, before in zip(modules, self.modules, strict=True))
            and _is_equal([*others, *tensors_of([model, *modules])], self.values)
            and all(map(_has_attributes, modules, self.attributes, self.names))
        )


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


def parameters_below(parent: Module) -> list[Parameter]:
    """The parameters of the modules below another one, each once."""
    entries = (entry for module in modules_below(parent) for entry in module._parameters.values() if entry is not None)
    return list(dict.fromkeys(entries))


def tensors_of(modules: list[Module]) -> list[Tensor]:
    """The parameters and buffers of modules, their own and not those of modules below them."""
    entries = (entry for module in modules for entry in (*module._parameters.values(), *module._buffers.values()))
    return [entry for entry in entries if entry is not None]


def _attributes(module: Module) -> dict[str, Any]:
    """The plain attributes of a module, without what is computed from others and kept."""
    names = vars(module).keys() - _OF_ALL_MODULES
    kind = type(module)
    kept = {name for name in names if isinstance(getattr(kind, name, None), cached_property)}
    return {name: vars(module)[name] for name in names - kept}


def _has_attributes(module: Module, kept: dict[str, Any], names: frozenset[str]) -> bool:
    """Whether a module has the attributes that were copied, and no others."""
    present = vars(module)
    if present.keys() != names:
        return _is_equal(_attributes(module), kept)
    return all(present[name] is entry or _is_equal(present[name], entry) for name, entry in kept.items())


def _copy(value: Any) -> Any:
    """A copy of tensors and of containers of values; other objects are compared by identity."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if is_dataclass(value) and not isinstance(value, type):
        return _copy(_fields(value))
    if isinstance(value, dict):
        return {name: _copy(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
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
        return all(_is_equal(entry, copied[name]) for name, entry in value.items())
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
