r"""Positive parameters of likelihoods, and closures of priors on them that can be pickled."""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.module import Module
from torch import Tensor

from botorch_skewgp.observations.checks import check_parameter

LEAST_POSITIVE = 1e-8  # of positive parameters, so that a long step of an optimiser does not underflow to zero


class ReadParameter:
    """Reads a parameter of a module; a prior's closure that can be pickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Module) -> Tensor:
        return getattr(module, self.name)


class SetParameter(ReadParameter):
    """Sets a parameter of a module; a prior's closure that can be pickled."""

    def __call__(self, module: Module, value: Tensor) -> None:  # type: ignore[override]
        module.initialize(**{self.name: value})


class PositiveParameter:
    """A positive parameter `name` of a module, stored as `raw_name` behind a constraint."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None:
            return self
        raw = f"raw_{self.name}"
        return getattr(module, f"{raw}_constraint").transform(getattr(module, raw))

    def __set__(self, module: Any, value: float | Tensor) -> None:
        raw = f"raw_{self.name}"
        parameter = getattr(module, raw)
        check_parameter(value, self.name)
        value = torch.as_tensor(value, dtype=parameter.dtype, device=parameter.device).detach()
        is_number = value.numel() == 1 and value.ndim <= parameter.ndim
        if not is_number and value.shape != parameter.shape:
            raise InputDataError(
                f"{self.name} must be a number or of shape {tuple(parameter.shape)}; got shape {tuple(value.shape)}."
            )
        constraint = getattr(module, f"{raw}_constraint")
        if not constraint.check(value):
            raise InputDataError(
                f"{self.name} must be within its constraint {constraint}; got {value.tolist()}. Other bounds of noise "
                "can be given as noise_constraint; numbers without noise are Numeric(values, noise=0)."
            )
        module.initialize(**{raw: constraint.inverse_transform(value.expand_as(getattr(module, raw)))})
