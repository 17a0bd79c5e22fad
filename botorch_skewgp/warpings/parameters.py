r"""Parameters of modules: priors, values for each of several nodes, and unbounded coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import torch
from gpytorch import Module
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import Prior
from torch import Tensor
from torch.distributions import Transform, biject_to, constraints

from botorch_skewgp.observations.checks import check_parameter

AnyModule = TypeVar("AnyModule", bound=Module)


class ReadParameter:
    """Reads a parameter of a module; a picklable closure of a prior."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Module) -> Tensor:
        return getattr(module, self.name)


class SetParameter(ReadParameter):
    """Sets a parameter of a module; a picklable closure of a prior."""

    def __call__(self, module: Module, value: float | Tensor) -> None:  # type: ignore[override]
        module.initialize(**{self.name: value})


def register_named_prior(
    module: Module, name: str, prior: Prior | None, read: type[ReadParameter] = ReadParameter
) -> None:
    """Register `name_prior`, the prior of an attribute of a module, if there is one; the module can be pickled."""
    if prior is not None:
        module.register_prior(f"{name}_prior", prior, read(name), SetParameter(name))


class constrained_parameter(property):
    """A parameter `name` of a module, stored as `raw_name`, behind a constraint if it has one and is then positive."""

    def __init__(self, description: str) -> None:
        super().__init__(self._get, self._set, doc=description)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def _constraint(self, module: Module) -> Interval | None:
        return module._constraints.get(f"raw_{self.name}_constraint")

    def _get(self, module: Module) -> Tensor:
        return constrained(self._constraint(module), getattr(module, f"raw_{self.name}"))

    def _set(self, module: Module, value: Tensor | float) -> None:
        raw, constraint = f"raw_{self.name}", self._constraint(module)
        check_parameter(value, self.name, positive=constraint is not None)
        like = getattr(module, raw)
        value = torch.as_tensor(value, dtype=like.dtype, device=like.device)
        module.initialize(**{raw: unconstrained(constraint, value)})


def with_parameters(module: AnyModule, raw: Mapping[str, Tensor], batch_shape: torch.Size | None = None) -> AnyModule:
    """A copy of a module with tensors in place of some raw parameters, by name; others are copied without gradients.

    Kernels that the tensors belong to get a leading batch shape, if it is given.
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


def constrained(constraint: Interval | None, raw: Tensor) -> Tensor:
    """The value of a raw parameter."""
    return raw if constraint is None else constraint.transform(raw)


def unconstrained(constraint: Interval | None, value: Tensor) -> Tensor:
    """The raw parameter of a value."""
    return value if constraint is None else constraint.inverse_transform(value)


def to_unbounded(constraint: Interval | None, value: Tensor) -> Tensor:
    """The logarithm of the distance to a single bound, the logit between two."""
    return _bijection(constraint, value).inv(value)


def from_unbounded(constraint: Interval | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """The value at unbounded coordinates and the logarithm of its slope."""
    bijection = _bijection(constraint, x)
    value = bijection(x)
    return value, bijection.log_abs_det_jacobian(x, value)


def _twin(module: torch.nn.Module, known: dict[int, torch.nn.Module]) -> torch.nn.Module:
    """A copy of a tree of modules, ten times as fast as a deep copy."""
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


def _bijection(constraint: Interval | None, like: Tensor) -> Transform:
    """The map from unbounded coordinates to values within a constraint."""
    if constraint is None:
        return biject_to(constraints.real)
    lower, upper = constraint.lower_bound.to(like), constraint.upper_bound.to(like)
    if lower.isinf() and upper.isinf():
        return biject_to(constraints.real)
    if upper.isinf():
        return biject_to(constraints.greater_than(lower))
    if lower.isinf():
        return biject_to(constraints.less_than(upper))
    return biject_to(constraints.interval(lower, upper))
