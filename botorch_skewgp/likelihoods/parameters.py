r"""Positive parameters and rates of likelihoods, also by judge, and picklable closures for their priors."""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.module import Module
from torch import Tensor

from botorch_skewgp.observations.checks import check_parameter

MIN_POSITIVE = 1e-8  # keeps long steps of an optimiser from underflow
MIN_RATE = 1e-9  # likewise, for a rate and one minus it


class ReadParameter:
    """Reads a parameter of a module; a picklable closure of a prior."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Module) -> Tensor:
        return getattr(module, self.name)


class SetParameter(ReadParameter):
    """Sets a parameter of a module; a picklable closure of a prior."""

    def __call__(self, module: Module, value: Tensor) -> None:  # type: ignore[override]
        module.initialize(**{self.name: value})


class ReadCommon(ReadParameter):
    """Reads the common value of all judges, see `JudgeParameter`; a picklable closure of a prior."""

    def __call__(self, module: Module) -> Tensor:
        raw = f"raw_{self.name}"
        return getattr(module, f"{raw}_constraint").transform(getattr(module, raw))


class ReadOdds(ReadParameter):
    """Reads the odds `p / (1 - p)` of a rate; a picklable closure of a prior."""

    def __call__(self, module: Module) -> Tensor:
        rate = getattr(module, self.name)
        return rate / (1 - rate)


class SetOdds(ReadParameter):
    """Sets a rate by its odds; a picklable closure of a prior."""

    def __call__(self, module: Module, value: Tensor) -> None:  # type: ignore[override]
        odds = torch.as_tensor(value)
        setattr(module, self.name, (odds / (1 + odds)).clamp(MIN_RATE, 1 - MIN_RATE))


class RateParameter:
    """A probability `name` of a module, stored as the logit `raw_name`; zero without such a parameter.

    It stays `MIN_RATE` away from 0 and 1, however far an optimiser steps.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None:
            return self
        raw = getattr(module, f"raw_{self.name}", None)
        if raw is None:
            return torch.zeros(1, dtype=torch.float64)
        return MIN_RATE + (1 - 2 * MIN_RATE) * torch.sigmoid(raw)

    def __set__(self, module: Any, value: float | Tensor) -> None:
        raw = getattr(module, f"raw_{self.name}", None)
        rate = as_rate(value, self.name)
        if raw is None:
            if bool((rate > 0).any()):
                raise InputDataError(
                    f"This likelihood was built without {self.name}; build another with {self.name}=, which those of "
                    "numbers do not take."
                )
            return
        if not bool((rate > 0).all()) or rate.numel() not in (1, raw.numel()):
            raise InputDataError(
                f"{self.name} must be one rate above 0 or {raw.numel()}, the number it was built with; got "
                f"{rate.tolist()}."
            )
        module.initialize(**{f"raw_{self.name}": raw_rate(rate).to(raw).expand_as(raw)})


def raw_rate(rate: Tensor) -> Tensor:
    """The unbounded values behind rates, as `RateParameter` stores them."""
    return torch.logit(((rate - MIN_RATE) / (1 - 2 * MIN_RATE)).clamp(MIN_RATE, 1 - MIN_RATE))


def as_rate(value: float | Tensor, name: str) -> Tensor:
    r"""Probabilities below 1 as a tensor of one dimension.

    Args:
        value: A number, or one for each judge.
        name: The name of the argument.

    Raises:
        InputDataError: If one is not a number in [0, 1).
    """
    try:
        rate = torch.as_tensor(value, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputDataError(f"{name} must be a number in [0, 1); got {value!r}.") from error
    if rate.ndim > 1 or not rate.numel() or not bool(((rate >= 0) & (rate < 1)).all()):
        raise InputDataError(f"{name} must be a number in [0, 1); got {rate.tolist()}.")
    return rate.reshape(-1)


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
            hint = (
                " Other bounds can be given as noise_constraint; numbers without noise are Numeric(values, noise=0)."
                if self.name == "noise"
                else ""
            )
            raise InputDataError(f"{self.name} must be within its constraint {constraint}; got {value.tolist()}.{hint}")
        module.initialize(**{raw: constraint.inverse_transform(value.expand_as(getattr(module, raw)))})


class JudgeParameter(PositiveParameter):
    """A positive parameter `name` of a module, with one value or one for each judge.

    Values of judges are a common one, stored as `raw_name`, times a factor each, whose logarithms are the parameter
    `name_deviation`.
    """

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        common = super().__get__(module, owner)
        deviation = None if module is None else getattr(module, f"{self.name}_deviation", None)
        return common if deviation is None else common * deviation.exp()

    def __set__(self, module: Any, value: float | Tensor) -> None:
        deviation = getattr(module, f"{self.name}_deviation", None)
        if deviation is None:
            super().__set__(module, value)
            return
        check_parameter(value, self.name)
        logarithm = torch.as_tensor(value, dtype=deviation.dtype, device=deviation.device).detach().log()
        if logarithm.numel() != 1 and logarithm.shape != deviation.shape:
            raise InputDataError(
                f"{self.name} must be a number or of shape {tuple(deviation.shape)}, with one for each judge; got "
                f"shape {tuple(logarithm.shape)}."
            )
        common = logarithm.mean()
        super().__set__(module, common.exp())
        module.initialize(**{f"{self.name}_deviation": (logarithm - common).expand_as(deviation)})
