r"""Parameters of modules: priors, values for each of several nodes, and unbounded coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, cast

import torch
from gpytorch import Module
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior, NormalPrior, Prior
from numpy.polynomial.hermite_e import hermegauss
from torch import Tensor
from torch.distributions import Transform, biject_to, constraints

from botorch_skewgp.checks import check_parameter

NUM_NEW_JUDGES = 7  # in an average over judges who may come
SPREAD_OF_SPREADS = 0.7  # of the logarithm of deviations' spread: two thirds are within a factor of 2

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


class LogarithmPrior(LogNormalPrior):
    r"""A prior of a positive parameter that is normal in its logarithm, and whose density is that of the logarithm.

    The density of a `LogNormalPrior`, in the parameter itself, has its mode `scale^2` below its median on the
    logarithmic axis: a fit would pull to `exp(loc - scale^2)` and an average over hyperparameters to `exp(loc)`. Here
    both pull to `exp(loc)`.
    """

    @property
    def mode(self) -> Tensor:
        """The mode on the logarithmic axis, which is the median."""
        return self.loc.exp()

    def log_prob(self, x: Tensor) -> Tensor:
        """The normal log density of the logarithm."""
        return super().log_prob(x) + x.log()


class DeviationPrior(NormalPrior):
    r"""The normal prior of judges' deviations from what is common, with a spread to learn.

    Args:
        spread: The expected standard deviation.
        num_judges: The number of judges. The buffer `judge_variance` holds what is left open of each one's deviation.
    """

    def __init__(self, spread: float, num_judges: int) -> None:
        super().__init__(0.0, spread)
        self.expected_spread = spread
        self.register_buffer("judge_variance", torch.zeros(num_judges, dtype=torch.float64))

    def around_judge(self, judge: int | str | None) -> tuple[Tensor, Tensor] | None:
        """Nodes (differences from the fit, or 0 if new) and weights of an average over a judge's deviation."""
        if judge == "new":
            scale = self.scale
        elif isinstance(judge, int) and judge < len(self.judge_variance) and bool(self.judge_variance[judge] > 0):
            scale = self.judge_variance[judge].sqrt()
        else:
            return None
        nodes, weights = (torch.as_tensor(values).to(scale) for values in hermegauss(NUM_NEW_JUDGES))
        return scale * nodes, weights / weights.sum()

    def log_density_of_spread(self) -> Tensor:
        """The log density of the spread's logarithm, up to a constant."""
        return -0.5 * ((self.scale / self.expected_spread).log() / SPREAD_OF_SPREADS).square()


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
    """A copy of a module with tensors for some raw parameters, by name, and a leading batch shape of their kernels."""
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


def from_unbounded(constraint: Interval | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """The value at unbounded coordinates and the logarithm of its slope."""
    to_value = bijection(constraint, x)
    value = to_value(x)
    return value, to_value.log_abs_det_jacobian(x, value)


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


def bijection(constraint: Interval | None, like: Tensor) -> Transform:
    """The map to values within a constraint from the log distance to a single bound, or from the logit between two."""
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


class Entry(NamedTuple):
    """A parameter: its module and name, its constraint, and its shape."""

    module: str
    name: str
    constraint: Interval | None
    shape: torch.Size


class ParameterSpace:
    """Unbounded coordinates of the parameters of named modules that need a gradient and are not redundant."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = dict(modules)
        self.entries = [
            Entry(key, name, constraint, parameter.shape)
            for key, module in self.modules.items()
            for name, parameter, constraint in module.named_parameters_and_constraints()
            if parameter.requires_grad and name not in getattr(module, "redundant_parameters", set)()
        ]

    def dim(self, *modules: str) -> int:
        """The number of coordinates of some modules, or of all."""
        return sum(entry.shape.numel() for entry in self.entries if not modules or entry.module in modules)

    def names(self) -> list[str]:
        """The name of every coordinate."""
        return [f"{e.module}.{e.name}" for e in self.entries for _ in range(e.shape.numel())]

    @torch.no_grad()
    def coordinates(self, farthest_logit: float = math.inf) -> Tensor:
        """The modules' present parameters, `D`, in double precision; those between two bounds up to a limit."""
        parts = []
        for entry in self.entries:
            constraint = entry.constraint
            raw = self.modules[entry.module].get_parameter(entry.name).double()
            part = bijection(constraint, raw).inv(constrained(constraint, raw)).flatten()
            if constraint is not None and bool(constraint.upper_bound.isfinite() & constraint.lower_bound.isfinite()):
                part = part.clamp(-farthest_logit, farthest_logit)
            parts.append(part)
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)

    def split(self, u: Tensor) -> tuple[Tensor, ...]:
        """The coordinates of each parameter."""
        return u.split([entry.shape.numel() for entry in self.entries], dim=-1)

    @torch.no_grad()
    def assign(self, u: Tensor) -> None:
        """Set the modules' parameters to those of coordinates, `D`."""
        for entry, raw in zip(self.entries, self.raw(u.unsqueeze(0))[0], strict=True):
            self.modules[entry.module].get_parameter(entry.name).copy_(raw.squeeze(0))

    def raw(self, u: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Raw parameters, each `S x shape`, and the log slopes of their values in the coordinates, each `S x size`."""
        raws, log_slopes = [], []
        for entry, part in zip(self.entries, self.split(u), strict=True):
            value, log_slope = from_unbounded(entry.constraint, part)
            raws.append(unconstrained(entry.constraint, value).reshape(len(u), *entry.shape))
            log_slopes.append(log_slope)
        return raws, log_slopes

    def raw_parameters(self, u: Tensor, module: str) -> dict[str, Tensor]:
        """The raw parameters of a module at coordinates `S x D`, by name, each `S x` its shape."""
        raws = zip(self.entries, self.raw(u)[0], strict=True)
        return {entry.name: raw for entry, raw in raws if entry.module == module}

    def at(self, u: Tensor, module: str) -> Module:
        """A module with the parameters of several nodes, `S x D`."""
        return with_parameters(self.modules[module], self.raw_parameters(u, module), torch.Size([len(u)]))

    def log_prior(self, u: Tensor) -> Tensor:
        """The log prior density of coordinates `S x D`; without a prior it is flat in the coordinate."""
        (priors, entries), (raws, log_slopes) = self._free_priors, self.raw(u)
        total = u.new_zeros(len(u))
        for name, prior, value in self._values_with_priors(raws, len(u)):
            if name in priors:
                total = total + prior.log_prob(value).reshape(len(u), -1).sum(-1)
        for entry, log_slope in zip(self.entries, log_slopes, strict=True):
            if entry in entries:
                total = total + log_slope.sum(-1)
        return torch.where(total.isnan(), -math.inf, total)

    def _values_with_priors(self, raws: Sequence[Tensor], num: int) -> Iterator[tuple[str, Prior, Tensor]]:
        """All priors, with their names and of what they are, for raw parameters of `num` nodes."""
        for key, module in self.modules.items():
            named = {e.name: raw for e, raw in zip(self.entries, raws, strict=True) if e.module == key}
            for name, owner, prior, closure, _ in with_parameters(module, named, torch.Size([num])).named_priors():
                yield f"{key}.{name}", prior, closure(owner)

    @cached_property
    def _free_priors(self) -> tuple[set[str], set[Entry]]:
        """The priors of parameters that are integrated over, and these parameters."""
        with torch.enable_grad():
            raws = [self.modules[e.module].get_parameter(e.name).detach() for e in self.entries]
            raws = [raw.clone().unsqueeze(0).requires_grad_() for raw in raws]
            values = self._values_with_priors(raws, 1)
            free = {name: value.sum() for name, _, value in values if value.requires_grad}
            slopes = torch.autograd.grad([*free.values()], raws, allow_unused=True) if free else [None] * len(raws)
        return {*free}, {e for e, slope in zip(self.entries, slopes, strict=True) if slope is not None}
