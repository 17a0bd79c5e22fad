r"""The probability that an experiment is valid, or that a label is positive.

.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from contextlib import suppress

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
from botorch_skewgp.thresholds import PsychometricFunction


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
        validity_functions(model)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log probability of validity at `batch_shape x 1 x d` candidates; `batch_shape`."""
        follow(self, X)
        return log_probability_of_validity(self.model, X).squeeze(-1)


def validity_functions(model: Model) -> list[tuple[LatentModel, PsychometricFunction]]:
    """The probability of a valid outcome given the latent function, for each member of a model."""
    with suppress(UnsupportedError):  # of other models, whose message is below
        found = []
        for member in members_of(model, "The probability of validity"):
            kinds = member.likelihood.kinds_of_outcomes
            told = [kind for kind in kinds if kind.tells_validity and kind.points_per_observation == 1]
            found.append((member, PsychometricFunction.of(member, told[0] if told else None)))
        return found
    likelihood = type(getattr(model, "likelihood", None)).__name__
    raise UnsupportedError(
        "The probability of validity needs a SkewGP whose likelihood takes Validity or Binary observations; got "
        f"{type(model).__name__} with {likelihood}."
    )


def warn_of_few_outcomes(model: Model) -> None:
    """Issue a `OneClassWarning` for a single model of outcomes of one class, a `FewAnswersWarning` for one of few."""
    (member, function), *others = validity_functions(model)
    if others:
        return  # an average over sampled hyperparameters; fitted ones put the function too far on one side of the limit
    answers = []
    for entry in member.observations:
        if not entry.tells_values:
            continue
        if entry.points_per_observation > 1 or entry.anchors_scale:
            return  # these tell more than the side of the limit
        answers.append(member.likelihood.for_kind(type(entry)).answers(entry)[1].flatten())
    told = torch.cat(answers)
    if len(told) == 0 or bool((told != told[0]).any()):
        return warn_of_few_answers(model)
    are_valid = bool(told[0] > 0) == (function.sign > 0)
    warnings.warn(
        f"No outcome is {'invalid' if are_valid else 'valid'}: the position of the limit comes from the prior alone, "
        "and fitted hyperparameters place it too far away. Before you rely on a probability of validity, average over "
        "sampled ones, fit_fully_bayesian_skew_gp(fit_skew_gp(model)), or add an outcome of the other class.",
        OneClassWarning,
        stacklevel=3,
    )


def log_probability_of_validity(model: Model, X: Tensor) -> Tensor:
    """The log probabilities that experiments at `batch_shape x q x d` points work, `batch_shape x q`."""
    terms = []
    for member, function in validity_functions(model):
        posterior = member.latent_posterior(X)
        standard_deviation = (posterior.gaussian_variance + function.noise).sqrt().unsqueeze(-1)
        margin = function.sign * (posterior.component_means - function.center) / standard_deviation
        terms.append((margin, posterior.log_probabilities))
    return log_average_of_members(terms)


def log_average_of_members(terms: Sequence[tuple[Tensor, Tensor]], log_odds: bool = False) -> Tensor:
    """`log p`, or `log(p / (1 - p))`, of the average `p` of `Phi(margin)` over members and their draws.

    Of each member there are the margins in standard deviations, `batch_shape x q x S`, and the log probabilities of its
    draws, `batch_shape x S`.
    """
    margin = torch.cat([margin for margin, _ in terms], dim=-1)
    weights = torch.cat([weight.unsqueeze(-2).expand_as(margin) for margin, weight in terms], dim=-1)
    weights = weights - math.log(len(terms))
    log_positive = (weights + torch.special.log_ndtr(margin)).logsumexp(-1)
    if not log_odds:
        return log_positive
    return log_positive - (weights + torch.special.log_ndtr(-margin)).logsumexp(-1)
