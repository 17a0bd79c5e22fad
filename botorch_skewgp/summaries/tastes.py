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

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.frames import Answers
from botorch_skewgp.models import SkewGP
from botorch_skewgp.summaries.draws import ALL, Drawing, People, Question

if TYPE_CHECKING:
    from pandas import DataFrame

NUM_VALUES = 5  # of an attribute that is a number
NUM_BACKGROUND = 4  # points whose other attributes an attribute's values are combined with
NAMES = "person", "attribute", "value"  # of the index


class Design(NamedTuple):
    """The points at which part-worths are contrasts.

    Args:
        X: The points, `n x d`.
        weight: Part-worths as contrasts of their utilities, `p x n`.
        values: The attribute and the value of each part-worth.
        taste_weight: Tastes as contrasts of part-worths, `t x p`.
        tastes: The attribute of each taste, and its value; empty for the slope of a number.
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
            tastes.append((name, ""))
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


def part_worths(model: SkewGP, answers: Answers, people: People = (ALL,), **drawing: Unpack[Drawing]) -> DataFrame:
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
        drawing: Further options of `botorch_skewgp.summaries.draws.Drawing`.

    Returns:
        A data frame with columns `mean`, `lower` and `upper`, indexed by `person`, `attribute` and `value`, in units of
        the noise of an answer.

    Raises:
        InputDataError: If people gave no answers.
    """
    at, question = design(answers), Question("part_worths", model, answers, **drawing)
    named = question.people(people)
    draws = question.utilities(at.X, named.values(), at.weight)
    return question.table(draws, NAMES, [(person, *value) for person in named for value in at.values])


def tastes(model: SkewGP, answers: Answers, people: People = (ALL,), **drawing: Unpack[Drawing]) -> DataFrame:
    r"""The effect of each attribute: the slope in a number, and how much a name is liked more than the first one.

    The slope is that of a line through the part-worths of a number. Arguments, columns and errors are those of
    `part_worths`; the value of a slope is empty.
    """
    at, question = design(answers), Question("tastes", model, answers, **drawing)
    named = question.people(people)
    draws = question.utilities(at.X, named.values(), at.weight) @ at.taste_weight.mT
    return question.table(draws, NAMES, [(person, *taste) for person in named for taste in at.tastes])


def willingness_to_pay(
    model: SkewGP, answers: Answers, price: str = "price", people: People = (ALL,), **drawing: Unpack[Drawing]
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
        drawing: Further options of `botorch_skewgp.summaries.draws.Drawing`.

    Returns:
        A data frame with columns `median`, `lower`, `upper` and `p_price_falls`, the probability that the utility falls
        with price, indexed by `person`, `attribute` and `value`, in units of the price.

    Raises:
        InputDataError: If the price is no attribute, or not a number, or people gave no answers.
    """
    at, question = design(answers), Question("willingness_to_pay", model, answers, **drawing)
    named = question.people(people)
    numbers = [name for name in answers.attributes if name not in answers.levels]
    if price not in numbers:
        raise InputDataError(f"price must be an attribute that is a number, one of {numbers}; got {price!r}.")
    draws = question.utilities(at.X, named.values(), at.weight) @ at.taste_weight.mT
    places = [i for i, (name, _) in enumerate(at.tastes) if name != price]
    slope, effect = draws[..., [at.tastes.index((price, ""))]], draws[..., places]
    worth = torch.where(slope < 0, effect / -slope, effect.sign() * torch.inf)
    table = question.table(worth, NAMES, [(person, *at.tastes[i]) for person in named for i in places], "median")
    table["p_price_falls"] = (slope < 0).to(draws).mean(0).expand(-1, len(places)).flatten().cpu().numpy()
    return table
