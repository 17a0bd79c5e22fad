"""The next question in an experiment: the prices that hosts take, and the choice among points tried and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.acquisition import Question, next_question
from botorch_skewgp.hosts.outcomes import PowerTransform
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations.checks import as_number

NUM_SPREAD = 128  # points of the search space that questions may be about, beside those that were tried


class Asked(NamedTuple):
    """The place of a question in a list, and the expected rise of the best point's mean in units of the objective."""

    place: int
    value: float


def as_prices(costs: object, may_be_asked: Callable[[Any], bool], wanted: str, named: str) -> dict[Any, float]:
    """Positive prices by what may be asked; raises `InputDataError`, which says what is wanted, or names the price."""
    if not isinstance(costs, Mapping) or not costs or not all(map(may_be_asked, costs)):
        raise InputDataError(f"costs must be a price for each of {wanted}; got {costs!r}.")
    prices = {asked: as_number(given, f"The price of {named.format(asked)}") for asked, given in costs.items()}
    for asked, price in prices.items():
        if price <= 0:
            raise InputDataError(
                f"The price of {named.format(asked)} must be a positive, finite number; got {costs[asked]!r}."
            )
    return prices


def choose_question(
    model: SkewGP, questions: Sequence[Question], prices: Sequence[float], pool: Tensor, transform: PowerTransform
) -> Asked:
    """The question about points of a pool, `n x d`, with the most information about the best one for its price, by a
    model whose large values are good, on the scale of a transform.
    """
    found = next_question(model, None, questions, prices, X_candidates=pool)
    best = float(model.outcome_scale.unstandardize(model.latent_posterior(pool).mean.max()))
    return Asked(list(questions).index(found.question), transform.rise(best, found.value))
