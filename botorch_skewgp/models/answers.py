"""What a judge answers: an average over what is open of the judge's reliability and of the likelihood's parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.kernels.judges import Reliability
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.likelihoods.predictions import averaged
from botorch_skewgp.posteriors import SkewGPPosterior


class AnswerLaw(NamedTuple):
    r"""One of the laws that a judge's new answers are an average of.

    Args:
        likelihood: The likelihood, with one value of the parameter that is open, as a width of ties.
        factor: A factor of the utility: a reliability, over that of the utility's posterior.
        weight: The weight in the average.
    """

    likelihood: RowLikelihood
    factor: Tensor
    weight: Tensor


def answer_laws(likelihood: RowLikelihood, reliability: Reliability | None, judge: int | str | None) -> list[AnswerLaw]:
    """The laws of a judge's new answers, by a likelihood of one kind that is the judge's."""
    around = likelihood.around_judge()
    likelihoods, shares = ([likelihood], torch.ones(1, dtype=torch.float64)) if around is None else around
    factors, weights = _factors(reliability, judge)
    return [
        AnswerLaw(given, factor, share * weight)
        for given, share in zip(likelihoods, shares, strict=True)
        for factor, weight in zip(factors, weights, strict=True)
    ]


def answer(
    likelihood: RowLikelihood,
    reliability: Reliability | None,
    judge: int | str | None,
    posterior: SkewGPPosterior,
    **options: Any,
) -> Any:
    """The distribution of a judge's new answers given the posterior of the utility; the likelihood averages too."""
    factors, weights = _factors(reliability, judge)
    if len(factors) == 1:
        return likelihood(posterior, **options)
    return averaged([likelihood(posterior.scaled(factor), **options) for factor in factors], weights)


def _factors(reliability: Reliability | None, judge: int | str | None) -> tuple[Tensor, Tensor]:
    """Factors of the utility and their weights; the posterior of a new judge is of reliability 1."""
    around = None if reliability is None else reliability.around_judge(judge)
    one = torch.ones(1, dtype=torch.float64)
    return (one, one) if around is None else around
