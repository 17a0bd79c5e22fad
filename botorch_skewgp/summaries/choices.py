r"""Shares of alternatives, outcomes of meetings, best items, and predictions of many people, with their names.

Given a draw of a person's utility, an answer's probabilities are known. Shares are their averages over people in every
draw; those of new people also average over what people may have of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.utils.sampling import draw_sobol_normal_samples
from torch import Tensor
from torch.distributions import Bernoulli

from botorch_skewgp.checks import as_count, as_tensor
from botorch_skewgp.frames import Answers
from botorch_skewgp.frames.columns import columns_of_one_length, pandas
from botorch_skewgp.items.leaderboard import ranks_of
from botorch_skewgp.items.model import ItemModel
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.answers import answer
from botorch_skewgp.observations import Choice, Preference
from botorch_skewgp.summaries.draws import ALL, NEW, Drawing, People, Question, row_names
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter

if TYPE_CHECKING:
    from pandas import DataFrame

NUM_NEW = 256  # people that shares of new people are averages over
MAX_ENTRIES = 2**20  # utilities whose choices are computed at a time


def shares(
    model: SkewGP,
    answers: Answers,
    offer: DataFrame | Mapping[str, Sequence[Any]],
    after: DataFrame | Mapping[str, Sequence[Any]] | None = None,
    people: People | Literal["new"] = "each",
    weights: Any = None,
    **drawing: Unpack[Drawing],
) -> DataFrame:
    r"""The share of choices that each alternative of an offer gets, also after a change, with intervals.

    Example::

        offer = pandas.DataFrame({"price": [2.0, 3.0], "brand": ["north", "south"]}, index=["ours", "theirs"])
        shares(model, answers, offer)
        shares(model, answers, offer, after=offer.assign(price=[2.5, 3.0]), people="new")

    Args:
        model: A fitted model of choices or duels.
        answers: The answers that a reader returned, with the names.
        offer: A frame with a row for each alternative, whose index has their names; "none of these" is added if the
            answers have it.
        after: Such a frame after a change.
        people: The people whose average choice it is: `"each"` for all who answered (or what is shared where nobody is
            named), a list of names, or `"new"` for people of the same kind who gave no answers.
        weights: A weight for each of these people; equal ones if `None`.
        drawing: Further options of `botorch_skewgp.summaries.draws.Drawing`.

    Returns:
        A data frame with columns `mean`, `lower` and `upper`, indexed by `alternative`; with `after` by `offer`
        (`"before"`, `"after"` and `"change"`, for alternatives of one name) and `alternative`.

    Raises:
        InputDataError: If attributes are missing or unknown, people gave no answers, weights do not fit, or an offer
            has a single alternative.
        UnsupportedError: If the model's answers are no choices.
    """
    question = Question("shares", model, answers, **drawing)
    if isinstance(people, str) and people == "each" and not model.judges:
        people = [ALL]
    named = question.people([NEW] if people == "new" else people)
    offers = {"before": offer} if after is None else {"before": offer, "after": after}
    points = [answers.points(frame) for frame in offers.values()]
    X = torch.cat(points).to(model.datapoints)
    are_many = people == "new" and model.judge_code is not None
    draws = _draws_of_new(question, X) if are_many else question.utilities(X, named.values())
    weight = torch.ones(draws.shape[1]).to(draws) if weights is None else as_tensor(weights, "weights").to(draws)
    if weight.shape != draws.shape[1:2] or bool((weight < 0).any()) or float(weight.sum()) <= 0:
        raise InputDataError(f"weights must hold one number from 0 on for each of {draws.shape[1]} people.")
    laws = [model.for_judge(judge) for judge in named.values()]
    found: dict[str, dict[Hashable, Tensor]] = {}
    for (name, frame), utility in zip(offers.items(), draws.split([*map(len, points)], -1), strict=True):
        labels = row_names(frame, utility.shape[-1]) + ([] if answers.none is None else [answers.none])
        if len(labels) < 2 or len(set(labels)) < len(labels):
            raise InputDataError(f"An offer must have two alternatives or more, of different names; got {labels[:5]}.")
        chances = _average_choice(laws, utility, weight / weight.sum(), answers.none is not None)
        found[name] = dict(zip(labels, chances.unbind(-1), strict=True))
    if after is None:
        before = found["before"]
        return question.table(torch.stack([*before.values()], -1), ["alternative"], [(name,) for name in before])
    later = found["after"]
    found["change"] = {name: later[name] - share for name, share in found["before"].items() if name in later}
    flat = {(name, label): share for name, of_offer in found.items() for label, share in of_offer.items()}
    return question.table(torch.stack([*flat.values()], -1), ["offer", "alternative"], [*flat])


def _draws_of_new(question: Question, X: Tensor) -> Tensor:
    """Draws of the utilities of new people: the shared one and parts of their own, `s x NUM_NEW x n`."""
    n = len(X)
    by = [judge for judge in (None, NEW) for _ in range(n)]
    joint = question.model.for_judge(None).latent_posterior(X.repeat(2, 1), by)
    difference = torch.cat([-torch.eye(n), torch.eye(n)], dim=-1).to(X)
    own = joint.affine(difference).covariance_matrix.detach()
    root = cholesky_with_relative_jitter(own, scale=own.diagonal().mean().clamp(min=1e-10).expand(n))
    base = draw_sobol_normal_samples(n, NUM_NEW, X.device, X.dtype, seed=question.seed)
    return question.utilities(X, [None]) + base @ root.mT


def _average_choice(models: Sequence[SkewGP], draws: Tensor, weight: Tensor, none: bool) -> Tensor:
    """The probability that each alternative is chosen, `s x k`, averaged over people."""
    total: Any = 0.0
    everybody = list(range(draws.shape[1]))
    # people whose answers have the same law are taken together
    for group in [[i] for i in everybody] if len(models) > 1 and _differ(models[0]) else [everybody]:
        laws = models[group[0]].fitted().answer_laws(Choice)
        size = max(1, MAX_ENTRIES // (len(draws) * (draws.shape[-1] + none)))
        for first in range(0, len(group), size):
            some = group[first : first + size]
            utility = draws[:, some]
            for law in laws:
                values = utility * law.factor.to(draws)
                if none:
                    level = law.likelihood.none_utility(values, models[0].outcome_scale)
                    values = torch.cat([values, level.expand(*values.shape[:-1], 1)], dim=-1)
                reading = law.likelihood.reading(Choice, values, models[0].outcome_scale, values.shape[-1])
                chances = reading.probabilities(values)
                total = total + law.weight.to(draws) * (weight[some].unsqueeze(-1) * chances).sum(1)
    return total


def _differ(model: SkewGP) -> bool:
    """Whether the answers of people have different laws for equal utilities."""
    parts = [part for part in model.likelihood.modules() if hasattr(part, "parameters_by_judge")]
    return model.judge_reliability is not None or any(part.parameters_by_judge for part in parts)


def outcome_probabilities(
    model: ItemModel,
    answers: Answers,
    meetings: DataFrame | Mapping[str, Sequence[Any]],
    first: str,
    second: str,
    tie: str = "tie",
    advantages: Sequence[str] = (),
    at: float | None = None,
    category: Hashable | None = None,
    judge: Hashable | None = None,
    **drawing: Unpack[Drawing],
) -> DataFrame:
    r"""The probabilities of the outcomes of meetings of two items, named as their columns are, with intervals.

    Example::

        games = {"home": ["ada", "bee"], "away": ["bee", "dog"]}
        outcome_probabilities(model, answers, games, "home", "away", tie="draw", advantages=["home"])

    Args:
        model: A fitted model of `item_model`.
        answers: What `read_votes` returned.
        meetings: A frame with a row for each meeting.
        first: The name of the column of the first item, and of the outcome that it wins.
        second: The name of the column of the second item, and of the outcome that it wins.
        tie: The name of a tie, the third outcome of models in which ties are allowed.
        advantages: The names of columns that name the item with an advantage, those that `read_votes` was given.
        at: The time; the latest if `None`.
        category: The category; none in particular if `None`.
        judge: The name of a judge; the shared utility if `None`.
        drawing: Further options of `botorch_skewgp.summaries.draws.Drawing`; intervals are of what is not known of the
            items.

    Returns:
        A data frame with columns `mean`, `lower` and `upper`, indexed by both items and `outcome`.

    Raises:
        InputDataError: If items are unknown, or advantages are not those of the model.
        UnsupportedError: If votes tell more outcomes than wins and ties.
    """
    if not isinstance(model, ItemModel) or answers.items is None:
        raise InputDataError("outcome_probabilities needs a model of item_model and what read_votes returned.")
    question = Question("outcome_probabilities", model, answers, **drawing)
    (person,) = question.people([ALL if judge is None else judge]).values()
    sides = columns_of_one_length(meetings, [first, second])
    number = {name: i for i, name in enumerate(answers.items)}
    unknown = [name for names in sides for name in names if name not in number]
    if unknown:
        raise InputDataError(f"meetings must be of items that had votes; {unknown[:5]} had none.")
    known = None if category is None else (answers.category_names or ()).index(category)
    places = torch.tensor([[number[name] for name in names] for names in sides]).mT
    X = model.items_at(at, known)[places]  # m x 2 x d
    having = columns_of_one_length(meetings, [first, *advantages], advantages)[1:]
    if len(having) != model.circumstances.count("advantage"):
        raise InputDataError(
            f"The model has {model.circumstances.count('advantage')} advantages; name a column for each of them."
        )
    for i, names in enumerate(having):
        column = X.shape[-1] - len(model.circumstances) + i
        for row, name in enumerate(names):
            X[row, :, column] = (places[row] == number.get(name, -1)).to(X)
    flat, place = X.flatten(0, 1).unique(dim=0, return_inverse=True)
    draws = question.utilities(flat, [person])[:, 0]
    values = draws[:, place].unflatten(-1, (-1, 2))  # s x m x 2
    chances: Any = 0.0
    for law in model.for_judge(person).fitted().answer_laws(Preference):
        reading = law.likelihood.reading(Preference, values, model.outcome_scale)
        given = reading.probabilities(values * law.factor.to(draws))
        chances = chances + law.weight.to(draws) * (given if reading.num_outcomes > 2 else given.flip(-1))
    if chances.shape[-1] > 3:
        raise UnsupportedError("outcome_probabilities is for wins and ties; use read_votes(both_alike='tie').")
    outcomes = [first, second, tie][: chances.shape[-1]]
    rows = [(a, b, outcome) for a, b in zip(*sides, strict=True) for outcome in outcomes]
    return question.table(chances, [first, second, "outcome"], rows)


def top_items(
    model: SkewGP,
    answers: Answers,
    k: int,
    people: People = "each",
    offer: DataFrame | Mapping[str, Sequence[Any]] | None = None,
    **drawing: Unpack[Drawing],
) -> DataFrame:
    r"""The best `k` items of each person, those of the highest mean utility.

    Example::

        top_items(model, answers, k=3).loc["ann"]

    Args:
        model: A fitted model.
        answers: The answers that a reader returned, with the names.
        k: How many.
        people: As for `part_worths`.
        offer: A frame with a row for each item, whose index has their names; by default the items of the answers.
        drawing: Further options of `botorch_skewgp.summaries.draws.Drawing`.

    Returns:
        A data frame indexed by `person` and `place`, from 1: the `item`; its utility beside the mean of all items,
        `mean`, `lower` and `upper`; and `p_top`, the probability that it is among the person's best `k`.

    Raises:
        InputDataError: If the answers are not of items and no offer is given, or `k` is not below their number.
    """
    question = Question("top_items", model, answers, **drawing)
    named = question.people(people)
    if offer is not None:
        X = answers.points(offer).to(model.datapoints)
        items = row_names(offer, len(X))
    elif answers.items is not None:
        X = model.items_at() if isinstance(model, ItemModel) else answers.train_X.to(model.datapoints)
        items = list(answers.items)
    else:
        raise InputDataError("offer must be a frame of items; these answers name none.")
    k = as_count(k, "k", least=1, most=len(X) - 1)
    draws = question.utilities(X, named.values())
    relative = draws - draws.mean(-1, keepdim=True)
    among = (ranks_of(draws.flatten(0, 1)) <= k).view(draws.shape).to(draws).mean(0)
    best = relative.mean(0).topk(k).indices  # people x k
    chosen = relative.gather(-1, best.expand(len(draws), -1, -1))
    rows = [(name, place + 1) for name in named for place in range(k)]
    table = question.table(chosen, ["person", "place"], rows)
    table.insert(0, "item", [items[i] for i in best.flatten().tolist()])
    table["p_top"] = among.gather(-1, best).flatten().cpu().numpy()
    return table


def predictions(
    model: SkewGP,
    answers: Answers,
    frame: DataFrame | Mapping[str, Sequence[Any]],
    situation: str | None = None,
    person: str | None = None,
) -> DataFrame:
    r"""The probabilities of new answers, of a frame of many people and situations at once.

    Example::

        predictions(model, answers, {"id": ["ann", "ann"], "trip": [9, 9], "price": [1.0, 2.0]}, "trip", "id")

    Args:
        model: A fitted model of choices, of grades or of labels.
        answers: The answers that a reader returned, with the names.
        frame: A frame with the attributes, a row for each alternative of choices in the format of `read_choices`
            (without rows for "none of these"), or a row for each grade.
        situation: The name of the column of situations; `None` for grades and labels, a row for each.
        person: The name of the column of people, of whom others are new; `None` for what all share.

    Returns:
        A data frame with the frame's rows and, for choices, the column `probability` (and `none`, where the answers
        have it, or `tie`, where ties are allowed, that of the row's situation); else a column for each outcome, by its
        number from 0.

    Raises:
        InputDataError: If columns are missing, attributes unknown, or a situation has a single alternative.
    """
    X = answers.points(frame).to(model.datapoints)
    columns = [name for name in (situation, person) if name is not None]
    cells = dict(zip(columns, columns_of_one_length(frame, columns), strict=True)) if columns else {}
    people = [None] * len(X) if person is None else cells[person]
    shared = model.judge_code is None  # also of one person
    judges = [None if shared or name is None else answers.judge(name) for name in people]
    index = pandas().Index(row_names(frame, len(X)))
    events: dict[tuple[Any, Any], list[int]] = {}
    for row, name in enumerate(people):
        events.setdefault((name, row if situation is None else cells[situation][row]), []).append(row)
    asked: dict[tuple[Any, int], list[list[int]]] = {}
    for rows in events.values():
        asked.setdefault((judges[rows[0]] if _differ(model) else None, len(rows)), []).append(rows)
    none = situation is not None and answers.none is not None
    chances: dict[int, Tensor] = {}
    for (judge, size), situations in asked.items():
        if situation is not None and size + none < 2:
            raise InputDataError(f"A situation has a single alternative, in row {situations[0][0]}; leave it out.")
        for first in range(0, len(situations), NUM_NEW):
            some = situations[first : first + NUM_NEW]
            by = [[judges[row] for row in rows] for rows in some]
            probabilities = _predicted(model.for_judge(judge), X[torch.tensor(some)], by, none)
            for rows, found in zip(some, probabilities, strict=True):
                for place, row in enumerate(rows):  # beside its own probability that of the answer without one
                    chances[row] = found if situation is None else found[[place, *range(size, len(found))]]
    values = torch.stack([chances[row] for row in range(len(X))])
    names: Sequence[Hashable] = range(values.shape[-1])
    if situation is not None:
        names = ["probability", "none" if none else "tie"][: values.shape[-1]]
    return pandas().DataFrame(values.cpu().numpy(), index=index, columns=names)


@torch.no_grad()
def _predicted(model: SkewGP, X: Tensor, by: list[list[Any]], none: bool) -> Tensor:
    """Probabilities of the answers of situations, `m x q x d`, of people, `m x q`; `m x outcomes`."""
    fitted = model.fitted()
    posterior = fitted.latent_posterior(X, None if model.judge_code is None else by)
    options = {"none": True} if none else {}
    law = answer(fitted.likelihood, model.judge_reliability, by[0][0], posterior, scale=model.outcome_scale, **options)
    if not isinstance(law, Bernoulli):
        return law.probs.reshape(len(X), -1)
    yes = law.probs.reshape(len(X))  # or that the first of two is chosen
    return torch.stack([1 - yes, yes] if X.shape[-2] == 1 else [yes, 1 - yes], dim=-1)
