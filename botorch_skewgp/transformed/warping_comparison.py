r"""Comparison of warpings of an outcome."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.transformed.model import BayesianTransformedGP
from botorch_skewgp.warpings import Warping


class WarpingScore(NamedTuple):
    r"""The evidence and the leave-one-out score of a warping.

    Args:
        model: The model with the warping, ready for predictions.
        log_evidence: The log density of the outcomes, all parameters integrated out.
        leave_one_out: The sum of the log predictive densities of outcomes from all others.
        behind: The best warping's `leave_one_out` minus this one.
        standard_error: The standard error of `behind`, from the spread over outcomes and that over nodes; a warping is
            worse if `behind` is two or three of them.
        effective_number: The least effective number of nodes without an outcome.
    """

    model: BayesianTransformedGP
    log_evidence: float
    leave_one_out: float
    behind: float
    standard_error: float
    effective_number: float


def compare_warpings(
    train_X: Tensor, train_Y: Tensor, warpings: Sequence[Warping], **kwargs: Any
) -> list[WarpingScore]:
    r"""Models of the same outcomes with several warpings, the best leave-one-out score first.

    The evidence depends on the priors of a warping's parameters and counts predictions from few data; the leave-one-out
    score hardly depends on priors. Where the two disagree, the data are too few to decide.

    `Affine()` is no warping; other arguments are those of `BayesianTransformedGP`. Raises `InputDataError` without a
    warping, and as `BayesianTransformedGP`.

    Example:
        >>> scores = compare_warpings(train_X, values.exp().unsqueeze(-1), [Affine(), BoxCox()])
        >>> best = scores[0].model
    """
    if not isinstance(warpings, Sequence) or not warpings:
        raise InputDataError(f"warpings must be a list of at least one warping; got {warpings!r}.")
    models = [BayesianTransformedGP(train_X, train_Y, warping=warping, **kwargs) for warping in warpings]
    results = [model.leave_one_out() for model in models]
    best = max(results, key=lambda result: float(result.log_density.sum()))
    scores = []
    for model, result in zip(models, results, strict=True):
        difference = best.log_density - result.log_density
        spread = float(difference.std()) * len(difference) ** 0.5
        error = 0.0 if result is best else math.hypot(spread, best.standard_error, result.standard_error)
        total, effective = float(result.log_density.sum()), float(result.effective_number.min())
        scores.append(WarpingScore(model, model.log_evidence, total, float(difference.sum()), error, effective))
    return sorted(scores, key=lambda score: score.behind)
