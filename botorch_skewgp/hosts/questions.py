"""The next question in an experiment: the prices that hosts take, and the choice among points tried and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.acquisition import Question, next_question
from botorch_skewgp.checks import as_number
from botorch_skewgp.hosts.outcomes import PowerTransform
from botorch_skewgp.models import SkewGP

NUM_SPREAD = 128  # points of the search space that questions may be about, beside those that were tried


def as_prices(costs: object, may_be_asked: Callable[[Any], bool], wanted: str, named: str) -> dict[Any, float]:
    """Positive prices by what may be asked; raises `InputDataError`, which says what is wanted, or names the price."""
    if not isinstance(costs, Mapping) or not costs or not all(map(may_be_asked, costs)):
        raise InputDataError(f"costs must be a price for each of {wanted}; got {costs!r}.")
    prices = {}
    for key, cost in costs.items():
        name = f"The price of {named.format(key)}"
        prices[key] = as_number(cost, name)
        if prices[key] <= 0:
            raise InputDataError(f"{name} must be a positive, finite number; got {cost!r}.")
    return prices


def choose_question(
    model: SkewGP,
    questions: Mapping[Any, Question],
    prices: Mapping[Any, float],
    pool: Tensor,
    transform: PowerTransform,
) -> tuple[Any, float]:
    """The key of the question about points of a pool, `n x d`, with the most information about the best one for its
    price, and the expected rise of that one's mean, by a model of large values that are good, on a transform's scale.
    """
    costs = [prices[key] for key in questions]
    chosen = next_question(model, None, list(questions.values()), costs, X_candidates=pool)
    best = float(model.outcome_scale.unstandardize(model.latent_posterior(pool).mean.max()))
    key = next(key for key, question in questions.items() if question == chosen.question)
    return key, transform.rise(best, chosen.value)
