"""The next question in an experiment: the prices that hosts take, and the choice among points tried and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.acquisition import NextQuestion, Question, next_question
from botorch_skewgp.checks import as_number
from botorch_skewgp.hosts.outcomes import PowerTransform
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Numeric, Preference

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
    waiting: Sequence[Tensor] = (),
    seed: int = 0,
) -> tuple[Any, float]:
    """The key of the question about points of a pool, `n x d`, with the most information about the best one for its
    price, and the expected rise of that one's mean beyond answers that are waited for, which of two points is better,
    `2 x d`, or the number of one, `1 x d`: by a model of large values that are good, on a transform's scale.
    """
    pending = []
    for X in waiting:
        kind = Numeric if len(X) == 1 else Preference
        pending.append(NextQuestion(Question(kind), X, None, 0.0, 0.0, False))
    costs = [prices[key] for key in questions]
    chosen = next_question(model, None, list(questions.values()), costs, X_candidates=pool, pending=pending, seed=seed)
    best = float(model.outcome_scale.unstandardize(model.latent_posterior(pool).mean.max()))
    key = next(key for key, question in questions.items() if question == chosen.question)
    return key, transform.rise(best, chosen.value)
