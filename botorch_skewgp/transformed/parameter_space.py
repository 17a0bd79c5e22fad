r"""The parameters of several modules as one vector of unbounded coordinates, with their joint prior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from gpytorch import Module
from gpytorch.constraints import Interval
from torch import Tensor

from botorch_skewgp.warpings import Warping
from botorch_skewgp.warpings.parameters import constrained, from_unbounded, to_unbounded, unconstrained, with_parameters


@dataclass(frozen=True, eq=False)
class Entry:
    """A parameter: its module and name, its constraint, and its shape."""

    module: str
    name: str
    constraint: Interval | None
    shape: torch.Size


class ParameterSpace:
    """Unbounded coordinates of the parameters of named modules, in the order of the modules.

    Redundant parameters of an outermost warping, and those that need no gradient, are left out and keep their values.
    """

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = dict(modules)
        self.entries: list[Entry] = []
        self._redundant_priors: set[str] = set()
        self._with_prior: set[Entry] = set()
        for key, module in self.modules.items():
            redundant = module.redundant_parameters() if isinstance(module, Warping) else set()
            for name, parameter, constraint in module.named_parameters_and_constraints():
                if parameter.requires_grad and name not in redundant:
                    self.entries.append(Entry(key, name, constraint, parameter.shape))
            for name in redundant:
                path, _, leaf = name.rpartition(".")
                self._redundant_priors.add(f"{key}/{path}{'.' if path else ''}{leaf.removeprefix('raw_')}_prior")
        self._with_prior = self._find_priors()

    def dim(self, *modules: str) -> int:
        """The number of coordinates of some modules, or of all."""
        return sum(entry.shape.numel() for entry in self.entries if not modules or entry.module in modules)

    def names(self) -> list[str]:
        """The name of every coordinate."""
        return [f"{e.module}.{e.name}" for e in self.entries for _ in range(e.shape.numel())]

    @torch.no_grad()
    def coordinates(self) -> Tensor:
        """The coordinates of the modules' present parameters, `D`, in double precision."""
        parts = [torch.zeros(0, dtype=torch.float64)]
        for entry in self.entries:
            raw = self.modules[entry.module].get_parameter(entry.name).double()
            value = constrained(entry.constraint, raw)
            parts.append(to_unbounded(entry.constraint, value).flatten().to(parts[0]))
        return torch.cat(parts)

    @torch.no_grad()
    def assign(self, u: Tensor) -> None:
        """Set the modules' parameters to those of coordinates, `D`."""
        for entry, raw in zip(self.entries, self._raw(u.unsqueeze(0))[0], strict=True):
            self.modules[entry.module].get_parameter(entry.name).copy_(raw.squeeze(0))

    def _raw(self, u: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Raw parameters, each `S x shape`, and the log slopes of their values in the coordinates, each `S x size`."""
        raws, log_slopes = [], []
        sizes = [entry.shape.numel() for entry in self.entries]
        for entry, part in zip(self.entries, u.split(sizes, dim=-1), strict=True):
            value, log_slope = from_unbounded(entry.constraint, part)
            raws.append(unconstrained(entry.constraint, value).reshape(len(u), *entry.shape))
            log_slopes.append(log_slope)
        return raws, log_slopes

    def raw_parameters(self, u: Tensor, module: str) -> dict[str, Tensor]:
        """The raw parameters of a module at coordinates `S x D`, by name, each `S x` its shape."""
        raws = zip(self.entries, self._raw(u)[0], strict=True)
        return {entry.name: raw for entry, raw in raws if entry.module == module}

    def at(self, u: Tensor, module: str) -> Module:
        """A module with the parameters of several nodes, `S x D`."""
        return with_parameters(self.modules[module], self.raw_parameters(u, module), torch.Size([len(u)]))

    def log_prior(self, u: Tensor) -> Tensor:
        """The log prior density of coordinates `S x D`; without a prior it is flat in the coordinate."""
        raws, log_slopes = self._raw(u)
        total = self._log_prior_of(raws, len(u))
        for entry, log_slope in zip(self.entries, log_slopes, strict=True):
            if entry in self._with_prior:
                total = total + log_slope.sum(-1)
        return torch.where(total.isnan(), -math.inf, total)

    def _log_prior_of(self, raws: Sequence[Tensor], num: int) -> Tensor:
        """The log prior density of values, for raw parameters of `num` nodes."""
        total = torch.zeros(num, dtype=torch.float64, device=raws[0].device if raws else None)
        for key, module in self.modules.items():
            named = {e.name: raw for e, raw in zip(self.entries, raws, strict=True) if e.module == key}
            nodes = with_parameters(module, named, torch.Size([num]))
            for name, owner, prior, closure, _ in nodes.named_priors():
                if f"{key}/{name}" not in self._redundant_priors:
                    terms = prior.log_prob(closure(owner))
                    if terms.ndim and terms.shape[0] == num:  # else of parameters that are not integrated over
                        total = total + terms.reshape(num, -1).sum(-1)
        return total

    def _find_priors(self) -> set[Entry]:
        """The parameters on which the prior depends."""
        with torch.enable_grad():
            raws = [self.modules[e.module].get_parameter(e.name).detach() for e in self.entries]
            raws = [raw.expand(2, *raw.shape).clone().requires_grad_() for raw in raws]
            total = self._log_prior_of(raws, 2).sum()
            if not total.requires_grad:
                return set()
            gradients = torch.autograd.grad(total, raws, allow_unused=True)
        return {e for e, gradient in zip(self.entries, gradients, strict=True) if gradient is not None}
