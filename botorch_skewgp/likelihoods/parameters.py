r"""Positive parameters and rates of likelihoods, also by judge, and their priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import Interval
from gpytorch.module import Module
from gpytorch.priors import HalfCauchyPrior, NormalPrior
from torch import Tensor

from botorch_skewgp.observations.checks import check_parameter
from botorch_skewgp.truncated.univariate import hermite
from botorch_skewgp.warpings.parameters import ReadParameter

MIN_POSITIVE = 1e-8  # keeps long steps of an optimiser from underflow
MIN_RATE = 1e-7  # likewise, for a rate and one minus it; single precision tells the latter from 1
NUM_NEW_JUDGES = 7  # in an average over judges who may come
SPREAD_OF_SPREADS = 0.7  # of the logarithm of deviations' spread: two thirds are within a factor of 2


class ReadCommon(ReadParameter):
    """Reads the common value of all judges, see `JudgeParameter`; a picklable closure of a prior."""

    def __call__(self, module: Module) -> Tensor:
        raw = f"raw_{self.name}"
        return getattr(module, f"{raw}_constraint").transform(getattr(module, raw))


class HalfCauchyOddsPrior(HalfCauchyPrior):
    """A prior of rates whose odds `p / (1 - p)` are half-Cauchy, with the median `scale`."""

    def log_prob(self, value: Tensor) -> Tensor:
        """The log density of rates."""
        return super().log_prob(value / (1 - value)) - 2 * torch.log1p(-value)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw rates."""
        odds = super().rsample(sample_shape)
        return (odds / (1 + odds)).clamp(MIN_RATE, 1 - MIN_RATE)

    @torch.no_grad()
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw rates, without gradients."""
        return self.rsample(sample_shape)


class DeviationPrior(NormalPrior):
    r"""The normal prior of judges' deviations, with a spread to learn, and what is left of their variances."""

    def __init__(self, spread: float, num_judges: int) -> None:
        super().__init__(0.0, spread)
        self.expected_spread = spread
        self.register_buffer("judge_variance", torch.zeros(num_judges, dtype=torch.float64))

    def keep_variances(self, variance: Tensor) -> None:
        """Set the variances of judges' deviations, over which predictions are averaged."""
        self.judge_variance.copy_(variance)

    def around_judge(self, judge: int | str | None) -> tuple[Tensor, Tensor] | None:
        """Nodes (differences from the fitted deviation, or 0 if new) and weights of an average over a judge's
        deviation.
        """
        if judge == "new":
            scale = self.scale
        elif isinstance(judge, int) and judge < len(self.judge_variance) and bool(self.judge_variance[judge] > 0):
            scale = self.judge_variance[judge].sqrt()
        else:
            return None
        nodes, log_weights = hermite(self.scale, NUM_NEW_JUDGES)
        return scale * nodes, log_weights.exp()

    def log_density_of_spread(self) -> Tensor:
        """The log density of the spread's logarithm, up to a constant."""
        return -0.5 * ((self.scale / self.expected_spread).log() / SPREAD_OF_SPREADS).square()


class RateParameter:
    """A probability `name` of a module, stored as `raw_name` behind a constraint; zero without such a parameter."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None:
            return self
        raw = getattr(module, f"raw_{self.name}", None)
        if raw is None:
            return torch.zeros(1, dtype=torch.float64)
        return getattr(module, f"raw_{self.name}_constraint").transform(raw)

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
        constraint = getattr(module, f"raw_{self.name}_constraint")
        module.initialize(**{f"raw_{self.name}": _raw_rate(constraint, rate.to(raw)).expand_as(raw)})


def register_rate(module: Module, name: str, rate: Tensor, learn: bool = False) -> None:
    """Register `raw_name`, for a class attribute `name = RateParameter()`."""
    constraint = Interval(MIN_RATE, 1 - MIN_RATE)
    module.register_parameter(f"raw_{name}", torch.nn.Parameter(_raw_rate(constraint, rate), requires_grad=learn))
    module.register_constraint(f"raw_{name}", constraint)


def _raw_rate(constraint: Interval, rate: Tensor) -> Tensor:
    """The raw parameter of a rate, finite also at the bounds, which are rounded to single precision."""
    share = (rate - constraint.lower_bound) / (constraint.upper_bound - constraint.lower_bound)
    return torch.logit(share, eps=MIN_RATE)


def as_rate(value: float | Tensor, name: str) -> Tensor:
    """Probabilities as a tensor of one dimension: zero, or `MIN_RATE` away from 0 and 1. Raises `InputDataError`."""
    wanted = f"{name} must be 0 or a number between {MIN_RATE} and {1 - MIN_RATE}"
    try:
        rate = torch.as_tensor(value, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputDataError(f"{wanted}; got {value!r}.") from error
    is_rate = (rate == 0) | ((rate >= MIN_RATE) & (rate <= 1 - MIN_RATE))
    if rate.ndim > 1 or not rate.numel() or not bool(is_rate.all()):
        raise InputDataError(f"{wanted}; got {rate.tolist()}.")
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
    """A positive parameter `name` of a module: one value, or a common one times `exp(name_deviation)`."""

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
