r"""The probability that an experiment is valid, or that a label is positive.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from typing import NamedTuple

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_skewgp.acquisition.components import follow
from botorch_skewgp.exceptions import OneClassWarning
from botorch_skewgp.models.few_answers import warn_of_few_answers
from botorch_skewgp.protocols import LatentModel, members_of


class LogProbabilityOfValidity(AnalyticAcquisitionFunction):
    r"""The logarithm of the probability that an experiment works.

    `log sum_s p_s Phi((m_s(x) - h) / sqrt(v(x) + noise))` with threshold `h` and noise of the model's likelihood of
    `Validity` observations ([Benavoli2021unified]_, equation (40)); without these of `Binary` ones, with `h = 0`, or of
    others with two outcomes at one point. Add it to another log acquisition function to weight that by the probability
    of validity.

    Example:
        >>> model = SkewGP(train_X, Validity(worked))
        >>> acq = LogProbabilityOfValidity(model)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP whose likelihood takes `Validity` or `Binary` observations, or an ensemble of these, over which
            the probability is averaged.

    Raises:
        UnsupportedError: If the likelihood takes neither.
    """

    _log = True

    def __init__(self, model: Model) -> None:
        super().__init__(model=model)
        validity_bounds(model)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log probability of validity at `batch_shape x 1 x d` candidates; `batch_shape`."""
        follow(self, X)
        return log_probability_of_validity(self.model, X).squeeze(-1)


class ValidityBound(NamedTuple):
    r"""A valid outcome is `sign * (f(x) - threshold) + noise > 0`, in units of the latent function.

    Args:
        sign: 1, or -1 where low values are good.
        threshold: A tensor of shape `1`.
        noise: The variance of the noise, of shape `1`.
    """

    sign: float
    threshold: Tensor
    noise: Tensor


def validity_bounds(model: Model) -> list[tuple[LatentModel, ValidityBound]]:
    """The limit of the noisy latent function for a valid outcome, for each member of a model, one for a single one."""
    with suppress(UnsupportedError):  # of other models, whose message is below
        bounds = [(member, _validity_bound(member)) for member in members_of(model, "The probability of validity")]
        if all(bound is not None for _, bound in bounds):
            return bounds  # type: ignore[return-value]
    likelihood = type(getattr(model, "likelihood", None)).__name__
    raise UnsupportedError(
        "The probability of validity needs a SkewGP whose likelihood takes Validity or Binary observations; got "
        f"{type(model).__name__} with {likelihood}."
    )


def _validity_bound(model: LatentModel) -> ValidityBound | None:
    at_points = (kind for kind in model.likelihood.kinds_of_outcomes if kind.points_per_observation == 1)
    for kind in sorted(at_points, key=lambda kind: not kind.tells_validity):
        reading = model.answering_likelihood.reading(kind, model.datapoints, model.outcome_scale)
        if reading.is_single and reading.num_outcomes == 2:
            is_above = (reading.highest == 1) != (model.minimize and kind.turns_round)
            return ValidityBound(1.0 if is_above else -1.0, reading.cutpoints[0], reading.variance)
    return None


def warn_of_few_outcomes(model: Model) -> None:
    r"""Issue a `OneClassWarning` for a single model of outcomes of one class, a `FewAnswersWarning` for one of few.

    Fitted hyperparameters put the function too far on one side of the limit, and probabilities are too near 1. Those of
    ensembles, averages over sampled hyperparameters, are not.
    """
    bounds = validity_bounds(model)
    if len(bounds) > 1:
        return
    member, bound = bounds[0]
    answers = []
    for entry in member.observations:
        if entry.points_per_observation > 1 or entry.anchors_scale:
            return  # these tell more than the side of the limit
        answers.append(member.likelihood.for_kind(type(entry)).answers(entry)[1].flatten())
    told = torch.cat(answers)
    if len(told) == 0 or bool((told != told[0]).any()):
        return warn_of_few_answers(model)
    are_valid = bool(told[0] > 0) == (bound.sign > 0)
    outcomes = "The only outcome is" if len(told) == 1 else f"All {len(told)} outcomes are"
    warnings.warn(
        f"{outcomes} {'valid' if are_valid else 'invalid'}: the position of the limit comes from the prior alone, and "
        "fitted hyperparameters place it too far away. Before you rely on a probability of validity, average over "
        "sampled ones, fit_fully_bayesian_skew_gp(fit_skew_gp(model)), or add an outcome of the other class.",
        OneClassWarning,
        stacklevel=3,
    )


def log_probability_of_validity(model: Model, X: Tensor, log_odds: bool = False) -> Tensor:
    r"""The log probabilities that experiments at given points work; see `LogProbabilityOfValidity`.

    At `batch_shape x q x d` points, `batch_shape x q`; or `log(p / (1 - p))`.
    """
    terms = [_margins(member, bound, X) for member, bound in validity_bounds(model)]
    margin, weights = (torch.cat(parts, dim=-1) for parts in zip(*terms, strict=True))
    weights = weights - math.log(len(terms))
    log_valid = (weights + torch.special.log_ndtr(margin)).logsumexp(-1)
    if not log_odds:
        return log_valid
    return log_valid - (weights + torch.special.log_ndtr(-margin)).logsumexp(-1)


def _margins(model: LatentModel, bound: ValidityBound, X: Tensor) -> tuple[Tensor, Tensor]:
    """Margins of validity in standard deviations, and log probabilities of draws, `batch_shape x q x S` each."""
    posterior = model.latent_posterior(X)
    standard_deviation = (posterior.gaussian_variance + bound.noise).sqrt().unsqueeze(-1)
    margin = bound.sign * (posterior.component_means - bound.threshold) / standard_deviation
    return margin, posterior.log_probabilities.unsqueeze(-2).expand_as(margin)
