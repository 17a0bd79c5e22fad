r"""Parameters of likelihoods with one value, or one for each judge: positive ones, and rates of slips."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager
from copy import copy
from typing import ClassVar, Self

import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.likelihoods import Likelihood
from gpytorch.priors import LogNormalPrior, NormalPrior, Prior
from torch import Tensor

from botorch_skewgp.likelihoods.defaults import (
    ANCHORED_NOISE,
    ANCHORED_NOISE_PRIOR,
    JUDGEMENT_NOISE,
    SHIFT_SPREAD,
    SLIP_ODDS_SCALE,
    SLIP_START,
)
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.likelihoods.parameters import (
    MIN_POSITIVE,
    DeviationPrior,
    HalfCauchyOddsPrior,
    RateParameter,
    ReadCommon,
    as_rate,
    register_rate,
)
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import as_number, as_tensor, check_flags, check_parts
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.warpings.parameters import ReadParameter, SetParameter, register_named_prior

ROUNDING = 1e-6  # of a parameter that is stored in single precision behind a constraint


class JudgedLikelihood(Likelihood):
    """A likelihood whose answers are judges': what it needs to hold parameters of all, or of each of them."""

    default_noise: ClassVar[float] = JUDGEMENT_NOISE  # of judgements, without numbers beside them
    slip = RateParameter()
    _judge: int | str | None = None  # the judge of new answers, where judges have parameters of their own
    _deviation: Tensor | None = None  # of a judge's parameter from what is fitted, or from what is common
    _open: Set[str] = frozenset()  # what `set_defaults_beside` sets
    _takes_slips = True  # whether answers may be slips, if there is a rate of them

    def _register_positive(
        self, name: str, value: float | Tensor, learn: bool, prior: Prior | None, constraint: Interval | None
    ) -> None:
        """Register `raw_name` behind a constraint, for a class attribute `name = PositiveParameter()`."""
        check_flags(**{f"learn_{name}": learn})
        check_parts(**{f"{name}_prior": (prior, Prior), f"{name}_constraint": (constraint, Interval)})
        raw = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64), requires_grad=learn)
        self.register_parameter(f"raw_{name}", raw)
        self.register_constraint(f"raw_{name}", GreaterThan(MIN_POSITIVE) if constraint is None else constraint)
        register_named_prior(self, name, prior)
        setattr(self, name, value)

    def _register_shift(self, shift: Tensor, learn: bool | None, prior: Prior | None, given: bool) -> None:
        """Register `shift`, the value of the latent function at the middle cut-point, of shape `1`."""
        if given and learn:
            raise InputDataError("Given cut-points do not shift; leave out learn_shift, or the cut-points.")
        if learn is prior is None and not given:
            self._open = self._open | {"shift"}
        self._shift_is_given = given
        learn = False if learn is None else learn
        check_flags(learn_shift=learn)
        check_parts(shift_prior=(prior, Prior))
        self.register_parameter("shift", torch.nn.Parameter(shift.to(torch.float64).clone(), requires_grad=learn))
        register_named_prior(self, "shift", NormalPrior(0.0, SHIFT_SPREAD) if prior is None and learn else prior)

    def _register_threshold(self, threshold: float | None, learn: bool | None, prior: Prior | None = None) -> None:
        """Register `shift` at a given threshold in units of the outcome, or open at zero; see `_register_shift`."""
        value = 0.0 if threshold is None else as_number(threshold, "threshold")
        self._register_shift(torch.tensor([value]), learn, prior, threshold is not None)

    def _level(self, like: Tensor, scale: OutcomeScale) -> Tensor:
        """The value of the latent function at the threshold, of shape `1`."""
        shift = self.shift.to(like)
        return scale.standardize(shift) if self._shift_is_given else shift

    def set_defaults_beside(self, kinds: Collection[type[Observation]]) -> None:
        """Set the defaults that depend on a model's kinds of observations, unless the values were given or set."""
        if not any(kind.anchors_scale for kind in kinds):
            return
        read = ReadParameter("noise")
        if "noise" in self._open and math.isclose(float(read(self)), self.default_noise, rel_tol=ROUNDING):
            SetParameter("noise")(self, ANCHORED_NOISE)
            self.raw_noise.requires_grad_(True)
            register_named_prior(self, "noise", LogNormalPrior(*ANCHORED_NOISE_PRIOR))
        if "shift" in self._open and not self.shift.any():
            self.shift.requires_grad_(True)
            register_named_prior(self, "shift", NormalPrior(0.0, SHIFT_SPREAD))
        self._open = self._open - {"noise", "shift"}

    def _register_by_judge(
        self, name: str, value: float | Tensor, learn: bool, spread: float, prior: Prior | None = None
    ) -> None:
        """Register `raw_name`, and with several values `name_deviation`, for a class attribute `JudgeParameter()`."""
        check_flags(**{f"learn_{name}": learn})
        num_judges = as_tensor(value, name).numel()
        if num_judges > 1:
            deviation = torch.nn.Parameter(torch.zeros(num_judges, dtype=torch.float64), requires_grad=learn)
            self.register_parameter(f"{name}_deviation", deviation)
        self._register_positive(name, value, learn, None, None)
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
        register_rate(self, "slip", rate, learn)
        register_named_prior(self, "slip", HalfCauchyOddsPrior(SLIP_ODDS_SCALE) if prior is None and learn else prior)

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
        """A parameter with one value, or one for each judge."""
        values = getattr(self, name).to(like)
        if judge is None or values.numel() == 1:
            moved = self._deviation is not None and hasattr(self, f"{name}_deviation_prior")
            if isinstance(self._judge, int) and self._judge < values.numel():
                value = values[self._judge].unsqueeze(-1)
                value = value * self._deviation.exp().to(like) if moved else value  # type: ignore[union-attr]
            elif moved:
                value = (ReadCommon(name)(self) * self._deviation.exp()).to(like)  # type: ignore[union-attr]
            else:
                value = values.mean(-1, keepdim=True)
            return value if judge is None else value.expand(len(judge))
        if len(judge) and int(judge.max()) >= values.numel():
            raise InputDataError(
                f"{name} has values for {values.numel()} judges, but judge {int(judge.max())} gave answers; "
                "give one value, or one for each judge from 0 on."
            )
        return values[judge.to(values.device)]

    def _heights_of_answers(
        self, judge: Tensor | None, answer: Tensor, num_outcomes: Tensor, like: Tensor
    ) -> Heights | None:
        """The heights of rows of answers with several rows each."""
        slips = self._slips(1, like, judge)
        if slips is None:
            return None
        rate = slips.reshape(-1).expand(len(answer))
        return Heights(rate / num_outcomes.to(rate), 1 - rate, answer.to(rate))

    def _heights(self, slips: Tensor, outcome: Tensor) -> Heights:
        """The heights of answers of one row each, from `m x O` or `O` probabilities of slips."""
        slips = slips.expand(len(outcome), slips.shape[-1])
        outside = slips.gather(-1, outcome.to(slips.device).unsqueeze(-1)).squeeze(-1)
        return Heights(outside, 1 - slips.sum(-1))

    def for_judge(self, judge: int | str | None) -> Self:
        """The likelihood of a judge's new answers, with the judge's own values of parameters; others are shared."""
        if not self.parameters_by_judge:
            return self
        new = copy(self)
        new.__dict__["_judge"] = judge
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

    @property
    def _deviation_prior(self) -> DeviationPrior | None:
        """The prior of judges' deviations, of which a likelihood has one at most; `None` if none is fitted."""
        names = (f"{name}_deviation_prior" for name in self.parameters_by_judge)
        return next((getattr(self, name) for name in names if hasattr(self, name)), None)

    def around_judge(self) -> tuple[list[Self], Tensor] | None:
        """The likelihoods that the judge's answers are an average over, and their weights; `None` if known."""
        prior = self._deviation_prior
        around = None if prior is None or self._deviation is not None else prior.around_judge(self._judge)
        if around is None:
            return None
        members = [copy(self) for _ in around[0]]
        for member, deviation in zip(members, around[0], strict=True):
            member.__dict__["_deviation"] = deviation
        return members, around[1]
