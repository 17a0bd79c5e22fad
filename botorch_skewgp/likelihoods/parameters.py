r"""Parameters of likelihoods with one value, or one for each judge: positive ones, and rates of slips."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.likelihoods import Likelihood
from gpytorch.module import Module
from gpytorch.priors import HalfCauchyPrior, NormalPrior, Prior
from torch import Tensor
from torch.distributions import Distribution

from botorch_skewgp.checks import as_number, as_tensor, check_flags, check_parameter, check_parts
from botorch_skewgp.likelihoods.defaults import (
    ANCHORED_NOISE,
    ANCHORED_NOISE_PRIOR,
    JUDGEMENT_NOISE,
    SHIFT_SPREAD,
    SLIP_ODDS_SCALE,
    SLIP_START,
    Context,
)
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.parameters import DeviationPrior, LogarithmPrior, ReadParameter, SetParameter, register_named_prior
from botorch_skewgp.rows import Rows
from botorch_skewgp.truncated.step_factor import Heights

MIN_POSITIVE = 1e-8  # keeps long steps of an optimiser from underflow
ROUNDING = 1e-6  # of a parameter that is stored in single precision behind a constraint
MIN_RATE = 1e-7  # likewise, for a rate and one minus it; single precision tells the latter from 1


class ReadCommon(ReadParameter):
    """Reads the common value of all judges, see `JudgeParameter`; a picklable closure of a prior."""

    def __call__(self, module: Module) -> Tensor:
        return getattr(module, f"raw_{self.name}_constraint").transform(getattr(module, f"raw_{self.name}"))


class HalfCauchyOddsPrior(HalfCauchyPrior):
    """A prior of rates whose odds `p / (1 - p)` are half-Cauchy, with the median `scale`."""

    def log_prob(self, value: Tensor) -> Tensor:
        """The log density of rates."""
        return super().log_prob(value / (1 - value)) - 2 * torch.log1p(-value)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw rates."""
        odds = super().rsample(sample_shape)
        return (odds / (1 + odds)).clamp(MIN_RATE, 1 - MIN_RATE)

    sample = Distribution.sample  # that by `rsample`


def _raw_rate(constraint: Interval, rate: Tensor) -> Tensor:
    """The raw parameter of a rate, finite also at the bounds, which are rounded to single precision."""
    share = (rate - constraint.lower_bound) / (constraint.upper_bound - constraint.lower_bound)
    return torch.logit(share, eps=MIN_RATE)


def as_rate(value: float | Tensor, name: str) -> Tensor:
    """Probabilities as a tensor of one dimension: zero, or `MIN_RATE` away from 0 and 1. Raises `InputDataError`."""
    wanted = f"{name} must be 0 or a number between {MIN_RATE} and {1 - MIN_RATE}"
    try:
        given = as_tensor(value, name).detach()
    except InputDataError as error:
        raise InputDataError(f"{wanted}; got {value!r}.") from error
    rate = given.real.double()
    is_rate = given.isreal() & ((rate == 0) | ((rate >= MIN_RATE) & (rate <= 1 - MIN_RATE)))
    if rate.ndim > 1 or not rate.numel() or not bool(is_rate.all()):
        raise InputDataError(f"{wanted}; got {given.tolist()}.")
    return rate.reshape(-1)


class PositiveParameter:
    """A positive parameter `name` of a module, stored as `raw_name` behind a constraint."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        return self if module is None else ReadCommon(self.name)(module)

    def _checked(self, value: float | Tensor, parameter: Tensor, hint: str = "") -> Tensor:
        """Positive values as those of a parameter, of which one may stand for all."""
        check_parameter(value, self.name)
        value = torch.as_tensor(value, dtype=parameter.dtype, device=parameter.device).detach()
        if value.shape != parameter.shape and (value.numel() != 1 or value.ndim > parameter.ndim):
            shape = tuple(parameter.shape)
            raise InputDataError(
                f"{self.name} must be a number or of shape {shape}{hint}; got shape {tuple(value.shape)}."
            )
        return value

    def __set__(self, module: Any, value: float | Tensor) -> None:
        raw = f"raw_{self.name}"
        value = self._checked(value, getattr(module, raw))
        constraint = getattr(module, f"{raw}_constraint")
        if not constraint.check(value):
            hint = (
                " Other bounds can be given as noise_constraint; numbers without noise are Numeric(values, noise=0)."
                if self.name == "noise"
                else ""
            )
            raise InputDataError(f"{self.name} must be within its constraint {constraint}; got {value.tolist()}.{hint}")
        module.initialize(**{raw: constraint.inverse_transform(value.expand_as(getattr(module, raw)))})


class RateParameter(PositiveParameter):
    """A probability `name` of a module, stored as `raw_name` behind a constraint; zero without such a parameter."""

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None or hasattr(module, f"raw_{self.name}"):
            return super().__get__(module, owner)
        return torch.zeros(1, dtype=torch.float64)

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
        logarithm = self._checked(value, deviation, ", with one for each judge").log()
        common = logarithm.mean()
        super().__set__(module, common.exp())
        module.initialize(**{f"{self.name}_deviation": (logarithm - common).expand_as(deviation)})


class JudgedLikelihood(Likelihood):
    """A likelihood whose answers are judges': what it needs to hold parameters of all, or of each of them."""

    default_noise: ClassVar[float] = JUDGEMENT_NOISE  # of judgements, without numbers beside them
    slip = RateParameter()
    _judge: int | str | None = None  # the judge of new answers, where judges have parameters of their own
    _deviation: Tensor | None = None  # of a judge's parameter from what is fitted, or from what is common
    _open: Set[str] = frozenset()  # what `resolved_beside` sets
    _takes_slips = True  # whether answers may be slips, if there is a rate of them

    def _register_positive(
        self,
        name: str,
        value: float | Tensor,
        learn: bool,
        prior: Prior | None = None,
        constraint: Interval | None = None,
        shape: Sequence[int] = (1,),
    ) -> None:
        """Register `raw_name` behind a constraint, for a class attribute `name = PositiveParameter()`."""
        check_flags(**{f"learn_{name}": learn})
        check_parts(**{f"{name}_prior": (prior, Prior), f"{name}_constraint": (constraint, Interval)})
        raw = torch.nn.Parameter(torch.zeros(*shape, dtype=torch.float64), requires_grad=learn)
        self.register_parameter(f"raw_{name}", raw)
        self.register_constraint(f"raw_{name}", GreaterThan(MIN_POSITIVE) if constraint is None else constraint)
        register_named_prior(self, name, prior)
        setattr(self, name, value)

    def _register_shift(self, shift: float | None, learn: bool | None, prior: Prior | None = None) -> None:
        """Register `shift`, of shape `1`: a given threshold, in units of the outcome, or open at zero."""
        given = shift is not None
        if given and learn:
            raise InputDataError("Given cut-points do not shift; leave out learn_shift, or the cut-points.")
        if learn is prior is None and not given:
            self._open = self._open | {"shift"}
        self._shift_is_given = given
        learn = False if learn is None else learn
        check_flags(learn_shift=learn)
        check_parts(shift_prior=(prior, Prior))
        value = torch.tensor([0.0 if shift is None else as_number(shift, "threshold")], dtype=torch.float64)
        self.register_parameter("shift", torch.nn.Parameter(value, requires_grad=learn))
        register_named_prior(self, "shift", NormalPrior(0.0, SHIFT_SPREAD) if prior is None and learn else prior)

    def _level(self, like: Tensor, scale: OutcomeScale) -> Tensor:
        """The value of the latent function at the threshold, of shape `1`."""
        shift = self.shift.to(like)
        return scale.standardize(shift) if self._shift_is_given else shift

    def resolved_beside(self, context: Context) -> Self:
        """The likelihood of a model with some observations: a copy that shares parameters, but for those whose
        defaults depend on these and were neither given nor set; they are the copy's own.
        """
        new = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | set):  # where modules register parameters, priors and constraints
                new.__dict__[name] = copy(value)
        new.set_defaults_beside(context)
        return new

    def set_defaults_beside(self, context: Context) -> None:
        """Set a new copy's defaults that depend on observations, unless the values were given or set."""
        if not context.anchors_scale:
            return
        read = ReadParameter("noise")
        if "noise" in self._open and math.isclose(float(read(self)), self.default_noise, rel_tol=ROUNDING):
            self._learn_own("raw_noise")
            SetParameter("noise")(self, ANCHORED_NOISE)
            register_named_prior(self, "noise", LogarithmPrior(*ANCHORED_NOISE_PRIOR))
        if "shift" in self._open and not self.shift.any():
            self._learn_own("shift")
            register_named_prior(self, "shift", NormalPrior(0.0, SHIFT_SPREAD))
        self._open = self._open - {"noise", "shift"}

    def _learn_own(self, name: str) -> None:
        """Replace a parameter that others may share by one to fit."""
        value = getattr(self, name).detach().clone()
        setattr(self, name, torch.nn.Parameter(value, requires_grad=True))

    def _register_by_judge(
        self, name: str, value: float | Tensor, learn: bool, spread: float, prior: Prior | None = None
    ) -> None:
        """Register `raw_name`, and with several values `name_deviation`, for a class attribute `JudgeParameter()`."""
        check_flags(**{f"learn_{name}": learn})
        num_judges = as_tensor(value, name).numel()
        if num_judges > 1:
            deviation = torch.nn.Parameter(torch.zeros(num_judges, dtype=torch.float64), requires_grad=learn)
            self.register_parameter(f"{name}_deviation", deviation)
        self._register_positive(name, value, learn)
        if learn:
            register_named_prior(self, name, prior, ReadCommon)
        if learn and num_judges > 1:
            register_named_prior(self, f"{name}_deviation", DeviationPrior(spread, num_judges))

    def _register_slip(self, slip: float | Tensor, learn: bool, prior: Prior | None) -> None:
        """Register the rate of slips, if there are any: answers drawn uniformly from all possible ones."""
        check_flags(learn_slip=learn)
        check_parts(slip_prior=(prior, Prior))
        rate = as_rate(slip, "slip")
        if not learn and not bool((rate > 0).any()):
            return
        if learn:
            rate = torch.where(rate > 0, rate, SLIP_START)
        elif not bool((rate > 0).all()):
            raise InputDataError(f"slip must be 0 for all judges or positive for each; got {rate.tolist()}.")
        self._register_rate("slip", rate, learn)
        register_named_prior(self, "slip", HalfCauchyOddsPrior(SLIP_ODDS_SCALE) if prior is None and learn else prior)

    def _register_rate(self, name: str, rate: Tensor, learn: bool = False) -> None:
        """Register `raw_name`, for a class attribute `name = RateParameter()`."""
        constraint = Interval(MIN_RATE, 1 - MIN_RATE)
        self.register_parameter(f"raw_{name}", torch.nn.Parameter(_raw_rate(constraint, rate), requires_grad=learn))
        self.register_constraint(f"raw_{name}", constraint)

    def start_slips(self) -> None:
        """Begin to learn a rate of slips, one for all judges."""
        self._register_slip(0.0, True, None)

    @property
    def learns_slips(self) -> bool:
        """Whether a rate of slips is a parameter to fit."""
        return hasattr(self, "raw_slip") and self.raw_slip.requires_grad

    @contextmanager
    def without_slips(self) -> Iterator[None]:
        """Within the block no answer is a slip, and the rate is not fitted."""
        self._takes_slips = False
        self.raw_slip.requires_grad_(False)
        try:
            yield
        finally:
            self._takes_slips = True
            self.raw_slip.requires_grad_(True)

    def _slips(self, num_outcomes: int, like: Tensor, judge: Tensor | None = None) -> Tensor | None:
        """The probability that an answer is a slip to each outcome; `None` without slips."""
        if not (self._takes_slips and hasattr(self, "raw_slip")):
            return None
        rate = self._of_judges("slip", like, judge)
        rate = rate if judge is None else rate.unsqueeze(-1)
        return (rate / num_outcomes).expand(*rate.shape[:-1], num_outcomes)

    def _of_judges(self, name: str, like: Tensor, judge: Tensor | None = None) -> Tensor:
        """A parameter that judges may have of their own: of the judge of each answer, `m`, or of new answers, `1`."""
        return self._of_new_answers(name, like) if judge is None else self._of_answers(name, like, judge)

    def _of_answers(self, name: str, like: Tensor, judge: Tensor) -> Tensor:
        """A parameter of the judge of each answer, `m`; raises `InputDataError` for judges without a value."""
        values = getattr(self, name).to(like)
        if values.numel() == 1:
            return values.expand(len(judge))
        if len(judge) and int(judge.max()) >= values.numel():
            raise InputDataError(
                f"{name} has values for {values.numel()} judges, but judge {int(judge.max())} gave answers; "
                "give one value, or one for each judge from 0 on."
            )
        return values[judge.to(values.device)]

    def _of_new_answers(self, name: str, like: Tensor) -> Tensor:
        """A parameter of the judge of new answers, `1`, at one node of an average over what is open of it."""
        values = getattr(self, name).to(like)
        if values.numel() == 1:
            return values
        has_node = self._deviation is not None and hasattr(self, f"{name}_deviation_prior")
        if isinstance(self._judge, int) and self._judge < values.numel():
            value = values[self._judge].unsqueeze(-1)
        elif has_node:
            value = ReadCommon(name)(self).to(like)
        else:  # of all judges, or a new one of given values
            value = values.mean(-1, keepdim=True)
        return value * self._deviation.exp().to(like) if has_node else value  # type: ignore[union-attr]

    def _with_slips(
        self, rows: Rows, judge: Tensor | None, num_outcomes: Tensor | int, answer: Tensor | None = None
    ) -> Rows:
        """Rows whose answers are slips to all of so many outcomes alike; an answer may have several rows."""
        slips = self._slips(1, rows.noise, judge)
        if slips is None:
            return rows
        rate = slips.reshape(-1).expand(rows.num_rows)
        share = rate / torch.as_tensor(num_outcomes).to(rate)
        rows = rows.of_parameters(judge if self.slip.numel() > 1 else None)
        return replace(rows, heights=Heights(share, 1 - rate, None if answer is None else answer.to(rate)))

    def for_judge(self, judge: int | str | None) -> Self:
        """The likelihood of a judge's new answers, with the judge's own values of parameters; others are shared."""
        if not self.parameters_by_judge:
            return self
        return self._but(_judge=judge)

    def _but(self, **changed: Any) -> Self:
        """A likelihood that shares everything with this one but some plain attributes."""
        new = copy(self)
        new.__dict__.update(changed)
        return new

    @property
    def parameters_by_judge(self) -> list[str]:
        """The names of the parameters that have a value for each judge."""
        return ["slip"] if self.slip.numel() > 1 else []

    def extend_judges(self, num_judges: int) -> None:
        """Begin fitted deviations of new judges at zero; what is open of them is the spread of all."""
        for name in self.parameters_by_judge:
            prior: DeviationPrior | None = getattr(self, f"{name}_deviation_prior", None)
            deviation = getattr(self, f"{name}_deviation", None)
            if prior is None or deviation is None or len(deviation) >= num_judges:
                continue
            more = deviation.new_zeros(num_judges - len(deviation))
            extended = torch.nn.Parameter(torch.cat([deviation.detach(), more]), requires_grad=deviation.requires_grad)
            setattr(self, f"{name}_deviation", extended)
            open_ = prior.scale.square() if bool(prior.judge_variance.any()) else 0.0  # zero before a fit
            prior.judge_variance = torch.cat([prior.judge_variance, (more + open_).to(prior.judge_variance)])

    def around_judge(self) -> tuple[list[Self], Tensor] | None:
        """The likelihoods that the judge's answers are an average over, and their weights; `None` if known."""
        names = (f"{name}_deviation_prior" for name in self.parameters_by_judge)
        prior = next((getattr(self, name) for name in names if hasattr(self, name)), None)  # there is one at most
        around = None if prior is None or self._deviation is not None else prior.around_judge(self._judge)
        if around is None:
            return None
        return [self._but(_deviation=deviation) for deviation in around[0]], around[1]
