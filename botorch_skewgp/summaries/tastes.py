r"""Part-worths, tastes and willingness to pay, of all and of each person.

The part-worth of a value of an attribute is the utility with that value, averaged over some of the data's points in
their other attributes, less the mean over the attribute's values. Tastes and prices are contrasts of part-worths. All
are linear in utilities, and are computed of joint draws of these.

Willingness to pay is the price `w` that an effect is worth, `effect + w slope = 0` with the slope of the utility in
price. A draw whose utility does not fall with price would pay any price for a positive effect, and accept none for a
negative one: its `w` is infinite. So quantiles exist where the slope is not surely negative, as the intervals of
[Fieller1954some]_ do, and like these may have an infinite end; a ratio has no mean.

.. [Fieller1954some] Fieller. Some problems in interval estimation. 1954.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_probability
from botorch_skewgp.frames import Answers
from botorch_skewgp.frames.columns import pandas
from botorch_skewgp.models import SkewGP
from botorch_skewgp.summaries.draws import ALL, NUM_SAMPLES, interval_table, named_people, quantiles, utility_draws

if TYPE_CHECKING:
    from pandas import DataFrame

NUM_VALUES = 5  # of an attribute that is a number
NUM_BACKGROUND = 4  # points whose other attributes an attribute's values are combined with
People = Literal["each"] | Sequence[Hashable]


class Design(NamedTuple):
    """The points at which part-worths are contrasts.

    Args:
        X: The points, `n x d`.
        weight: Part-worths as contrasts of their utilities, `p x n`.
        values: The attribute and the value of each part-worth.
        taste_weight: Tastes as contrasts of part-worths, `t x p`.
        tastes: The attribute of each taste, and its value; `None` for the slope of a number.
    """

    X: Tensor
    weight: Tensor
    values: list[tuple[str, Any]]
    taste_weight: Tensor
    tastes: list[tuple[str, Any]]


def design(answers: Answers) -> Design:
    """The points and contrasts of part-worths and tastes."""
    points = answers.train_X
    spaced = torch.linspace(0, len(points) - 1, min(NUM_BACKGROUND, len(points))).round().long()
    background = points[spaced]
    places, weights, values, of_tastes, tastes = [], [], [], [], []
    for i, name in enumerate(answers.attributes):
        levels = answers.levels.get(name)
        at = torch.arange(len(levels)).to(points) if levels is not None else _values(points[:, i])
        m = len(at)
        crossed = background.repeat(m, 1)
        crossed[:, i] = at.repeat_interleave(len(background))
        places.append(crossed)
        mean = torch.eye(m).to(points).repeat_interleave(len(background), dim=-1) / len(background)
        weights.append(mean - mean.mean(0))
        values += [(name, level) for level in (at.tolist() if levels is None else levels)]
        if levels is None:
            centred = at - at.mean()
            slope = centred / centred.square().sum() if m > 1 else torch.zeros_like(at)
            of_tastes.append(slope.unsqueeze(0))
            tastes.append((name, None))
        else:
            of_tastes.append(torch.eye(m).to(points)[1:] - torch.eye(m).to(points)[:1])
            tastes += [(name, level) for level in levels[1:]]
    weight, taste_weight = (torch.block_diag(*parts) for parts in (weights, of_tastes))
    return Design(torch.cat(places), weight, values, taste_weight, tastes)


def _values(column: Tensor) -> Tensor:
    """A few values of an attribute that is a number: all, or quantiles of the different ones."""
    distinct = column.unique()
    if len(distinct) <= NUM_VALUES:
        return distinct
    return torch.quantile(distinct, torch.linspace(0, 1, NUM_VALUES).to(distinct))


def part_worths(
    model: SkewGP,
    answers: Answers,
    people: People = (ALL,),
    level: float = 0.9,
    num_samples: int = NUM_SAMPLES,
    seed: int = 0,
) -> DataFrame:
    r"""The part-worth of each value of each attribute, by which utility it differs from the mean of these values.

    Numbers have their values if these are at most five, else five quantiles of them.

    Example::

        table = part_worths(model, answers, people=["all", "ann"])
        table.loc["ann"]

    Args:
        model: A fitted model.
        answers: The answers that a reader returned, with the names.
        people: The names of people; `"all"` among them for what all share, `"new"` for somebody who gave no answers;
            `"each"` for everybody who did.
        level: The probability of intervals.
        num_samples: The number of joint draws.
        seed: The seed of the draws.

    Returns:
        A data frame with columns `mean`, `lower` and `upper`, indexed by `person`, `attribute` and `value`, in units of
        the noise of an answer.

    Raises:
        InputDataError: If people gave no answers.
    """
    named, at = named_people(model, answers, people, "part_worths"), design(answers)
    draws = utility_draws(model, at.X, list(named.values()), num_samples, seed, at.weight)
    return interval_table(draws.flatten(1), _index(named, at.values), level)


def tastes(
    model: SkewGP,
    answers: Answers,
    people: People = (ALL,),
    level: float = 0.9,
    num_samples: int = NUM_SAMPLES,
    seed: int = 0,
) -> DataFrame:
    r"""The effect of each attribute: the slope in a number, and how much a name is liked more than the first one.

    The slope is that of a line through the part-worths of a number. Arguments, columns and errors are those of
    `part_worths`; the value of a slope is empty.
    """
    named, at = named_people(model, answers, people, "tastes"), design(answers)
    draws = utility_draws(model, at.X, list(named.values()), num_samples, seed, at.weight) @ at.taste_weight.mT
    return interval_table(draws.flatten(1), _index(named, [(name, _text(value)) for name, value in at.tastes]), level)


def willingness_to_pay(
    model: SkewGP,
    answers: Answers,
    price: str = "price",
    people: People = (ALL,),
    level: float = 0.9,
    num_samples: int = NUM_SAMPLES,
    seed: int = 0,
) -> DataFrame:
    r"""The price at which an attribute's effect is outweighed: of one more unit, or of a name instead of the first one.

    Each is a ratio in every joint draw, infinite where the utility does not fall with price (see this module). Where
    `p_price_falls` is below `(1 + level) / 2`, an end of the interval may be infinite: the data do not say that price
    matters to this person.

    Example::

        table = willingness_to_pay(model, answers, price="price", people="each")

    Args:
        price: The name of the attribute that is the price, a number.
        model: A fitted model.
        answers: The answers that a reader returned, with the names.
        people: As for `part_worths`.
        level: The probability of intervals.
        num_samples: The number of joint draws.
        seed: The seed of the draws.

    Returns:
        A data frame with columns `median`, `lower`, `upper` and `p_price_falls`, the probability that the utility falls
        with price, indexed by `person`, `attribute` and `value`, in units of the price.

    Raises:
        InputDataError: If the price is no attribute, or not a number, or people gave no answers.
    """
    named, at = named_people(model, answers, people, "willingness_to_pay"), design(answers)
    if (price, None) not in at.tastes:
        numbers = [name for name, value in at.tastes if value is None]
        raise InputDataError(f"price must be an attribute that is a number, one of {numbers}; got {price!r}.")
    level = as_probability(level, "level")
    draws = utility_draws(model, at.X, list(named.values()), num_samples, seed, at.weight) @ at.taste_weight.mT
    place = at.tastes.index((price, None))
    slope = draws[..., [place]]
    others = [i for i in range(len(at.tastes)) if i != place]
    effect = draws[..., others]
    worth = torch.where(slope < 0, effect / -slope, effect.sign() * torch.inf)
    low, median, high = quantiles(worth.flatten(1), [(1 - level) / 2, 0.5, (1 + level) / 2])
    falls = (slope < 0).to(draws).mean(0).expand(-1, len(others)).flatten()
    columns = {"median": median, "lower": low, "upper": high, "p_price_falls": falls}
    index = _index(named, [(at.tastes[i][0], _text(at.tastes[i][1])) for i in others])
    table = pandas().DataFrame({name: column.cpu().numpy() for name, column in columns.items()}, index=index)
    table.attrs["level"] = level
    return table


def _index(named: Any, values: Sequence[tuple[str, Any]]) -> Any:
    rows = [(person, name, value) for person in named for name, value in values]
    return pandas().MultiIndex.from_tuples(rows, names=["person", "attribute", "value"])


def _text(value: Any) -> Any:
    """What stands for the value of a slope."""
    return "" if value is None else value
