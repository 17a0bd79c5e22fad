r"""The next question to ask: its kind, its points, the judge, and whether it is worth its price.

The knowledge gradient chooses the points. Alone it would favour kinds that change the recommendation now, such as
duels, over those that tell more for later answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, overload

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.cutpoint_variances import cutpoint_variances
from botorch_skewgp.acquisition.outlook import Asked, Belief, after, cells_of_numbers, gain, information_about_best
from botorch_skewgp.acquisition.question_points import points_to_ask_about, sets_to_ask_about
from botorch_skewgp.acquisition.search_domain import Values, search_space
from botorch_skewgp.checks import MAX_OPTIONS, as_count, as_number, as_seed, as_tensor
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Observation
from botorch_skewgp.protocols import LatentModel, members_of
from botorch_skewgp.rows import Reading

QuestionMethod = Literal["knowledge_gradient", "information"]
ROUNDING = 1e-8  # of a gain, in units of the outcome's scale


@dataclass(frozen=True)
class Question:
    r"""A kind of question.

    Args:
        kind: A class of observations that the model's likelihood takes.
        num_points: The number of points shown together, for kinds that leave it open, such as `Choice`; the kind's
            least number if `None`; at most 100.

    Raises:
        InputDataError: If the kind is no class of observations, or not of this number of points.

    Example:
        >>> Question(Choice, num_points=4)  # which is the best of these four?
    """

    kind: type[Observation]
    num_points: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, type) or not issubclass(self.kind, Observation):
            raise InputDataError(f"kind must be a class of observations, such as Preference; got {self.kind!r}.")
        least, more = self.kind.points_per_observation, self.kind.takes_more_points
        if self.num_points is None:
            return
        num_points = as_count(self.num_points, "num_points", least=1, most=MAX_OPTIONS)
        if num_points < least or (num_points > least and not more):
            raise InputDataError(
                f"A question of kind {self.kind.__name__} is about {least} {'or more ' if more else ''}point(s); got "
                f"num_points={self.num_points}. A Choice or a Ranking is about any number of points from 2 on."
            )

    @property
    def size(self) -> int:
        """The number of points."""
        return self.kind.points_per_observation if self.num_points is None else self.num_points


class NextQuestion(NamedTuple):
    r"""The question to ask next.

    Args:
        question: The question; one of those given.
        X: Its points, `k x d`.
        judge: The judge to ask; `None` if there was no choice.
        value: The expected rise of the posterior mean of the recommended point, in units of the outcome (of the latent
            utility, if there are no numbers).
        cost: The price of the question.
        stop: Whether no question is worth its price; `False` if `worth` was `None`.
    """

    question: Question
    X: Tensor
    judge: int | str | None
    value: float
    cost: float
    stop: bool


@overload
def next_question(*args: Any, num_questions: None = None, **kwargs: Any) -> NextQuestion: ...


@overload
def next_question(*args: Any, num_questions: int, **kwargs: Any) -> list[NextQuestion]: ...


@torch.no_grad()  # type: ignore[misc]  # its overloads leave arguments out
def next_question(
    model: Model,
    bounds: Tensor | None = None,
    questions: Sequence[Question | type[Observation]] = (),
    costs: Sequence[float] | Mapping[Any, float] | None = None,
    X_candidates: Tensor | None = None,
    judges: Sequence[int | str] | Mapping[int | str, float] | None = None,
    worth: float | None = None,
    method: QuestionMethod = "knowledge_gradient",
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    seed: int = 0,
    num_questions: int | None = None,
) -> NextQuestion | list[NextQuestion]:
    r"""The next question to ask: the most informative kind for its price, at the points with the largest expected gain.

    Example:
        >>> model = SkewGP(train_X, [Numeric(values), Preference(pairs)])
        >>> asked = next_question(model, bounds, questions=[Numeric, Preference], costs=[10.0, 1.0])
        >>> asked.question.kind, asked.X, asked.value, asked.cost
        >>> page = next_question(model, bounds, questions=[Numeric, Preference], num_questions=3)

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        bounds: A `2 x d` tensor of lower and upper bounds; `None` with candidates.
        questions: Kinds of observations, or a `Question` where the number of points or the incumbent matters.
        costs: The price of each question, in any one unit; a mapping from questions or kinds, or a sequence in their
            order. All cost the same if `None`.
        X_candidates: An `n x d` tensor of points to ask about instead of a domain.
        judges: The judges to choose from, as in `SkewGP.posterior`: their numbers, or a mapping from these to factors
            of the price. The gain is that of the model's utility: the shared one, or that of `model.for_judge(j)`.
        worth: The worth of one unit of the outcome, in units of the costs, for `stop`. Kinds and judges whose question
            is worth less than its price are left out while there are others.
        method: What chooses the points: `"knowledge_gradient"`, the expected gain of the recommended point (where no
            single answer would change it, as `"information"`), or `"information"` about which point is best, which
            chooses the kind and the judge in either case.
        discrete_dims: As in `next_pair`.
        cat_dims: As in `next_pair`.
        seed: The seed of the pool of points.
        num_questions: The number of questions of a page to ask at once, each chosen with the earlier ones pending.

    Returns:
        The question; with `num_questions` a list of them, in the order of choice, each value the gain beyond those
        before it.

    Raises:
        InputDataError: If there are no questions, the likelihood does not take one of the kinds, a cost is not
            positive, there are both bounds and candidates or neither, too few points for a question, a judge without
            observations, the list of judges is empty, or there are fewer questions than one.
        UnsupportedError: If the model is another, has no judges, or a kind has no outcomes to look ahead to.
    """
    members = members_of(model, "next_question")
    if not isinstance(questions, Sequence):
        raise InputDataError("questions must be a list; write questions=[...] for a single one.")
    asked = [entry if isinstance(entry, Question) else Question(entry) for entry in questions]
    if not asked:
        raise InputDataError("questions must name at least one kind of observation, such as [Preference, Numeric].")
    num = 1 if num_questions is None else as_count(num_questions, "num_questions", least=1)
    seed = as_seed(seed)
    if method not in ("knowledge_gradient", "information"):
        raise InputDataError(f"method must be 'knowledge_gradient' or 'information'; got {method!r}.")
    prices = _prices(costs, questions, asked)
    people = _people(members, judges)
    if worth is not None and as_number(worth, "worth") <= 0:
        raise InputDataError(f"worth must be positive and finite, or None; got {worth!r}.")
    for entry in asked:
        _check_kind(members[0], entry)
    dims = {"discrete_dims": discrete_dims, "cat_dims": cat_dims}
    space = search_space(model, bounds, X_candidates, members[0].datapoints, **dims)
    X = points_to_ask_about(model, members, space, seed)
    least = max(entry.size for entry in asked)
    if len(X) < least:
        raise InputDataError(
            f"A question is about {least} points, but there {'is' if len(X) == 1 else 'are'} {len(X)}; widen the "
            "bounds, or give more X_candidates."
        )
    who = list(people)
    beliefs = [_belief(member, X, who) for member in members]
    readings = _readings(members, asked, who, beliefs[0].means)
    recommended = torch.arange(len(X), device=X.device)
    min_gain = ROUNDING * members[0].outcome_scale.scale
    found: list[NextQuestion] = []
    for _ in range(num):
        best_key: tuple[Any, ...] = ()
        for number, (entry, price) in enumerate(zip(asked, prices, strict=True)):
            items = sets_to_ask_about(beliefs, entry.size, recommended, seed)
            for place, judge in enumerate(who):
                asks = _asks(members, beliefs, entry, X, readings.get((number, judge)))
                shifted = items if judge is None else items + (place + 1) * len(X)
                values = gains = gain(beliefs, asks, recommended, shifted)
                cost, rate = price * people[judge], 0.0
                no_gain = bool(gains.max() <= min_gain)  # no single answer changes the recommendation
                if len(asked) * len(who) > 1 or method == "information" or no_gain:
                    told = information_about_best(beliefs, asks, recommended, shifted)
                    rate, values = float(told.max()) / cost, told if method == "information" or no_gain else gains
                chosen = values.argmax()
                value = max(float(gains[chosen]), 0.0)
                stop = worth is not None and value * worth < cost
                if (key := (not stop, rate, value / cost)) > best_key:
                    best_key, pending = key, (asks, shifted[chosen])
                    best = NextQuestion(entry, X[items[chosen]].clone(), judge, value, cost, stop)
        found.append(best)
        if len(found) < num:
            beliefs = after(beliefs, *pending, seed)
    return found[0] if num_questions is None else found


def _prices(costs: Any, given: Sequence[Any], asked: Sequence[Question]) -> list[float]:
    """The price of each question; raises `InputDataError` if one is missing or not positive."""
    if costs is None:
        return [1.0] * len(asked)
    if isinstance(costs, Mapping):
        costs = [costs.get(g, costs.get(entry.kind)) for g, entry in zip(given, asked, strict=True)]
        missing = [entry.kind.__name__ for price, entry in zip(costs, asked, strict=True) if price is None]
        if missing:
            raise InputDataError(f"costs names no price for questions of kind {', '.join(missing)}.")
    prices = as_tensor(costs, "costs").double()
    if prices.shape != (len(asked),):
        raise InputDataError(f"costs must hold a price for each of the {len(asked)} questions; got {prices.tolist()}.")
    if not bool((prices.isfinite() & (prices > 0)).all()):
        raise InputDataError(f"costs must be positive and finite; got {prices.tolist()}.")
    return prices.tolist()


def _people(
    members: Sequence[LatentModel], judges: Sequence[int | str] | Mapping[int | str, float] | None
) -> dict[int | str | None, float]:
    """The judges to choose from, with factors of the price."""
    if judges is None:
        return {None: 1.0}
    if isinstance(judges, str) or not isinstance(judges, Sized) or not len(judges):
        raise InputDataError(f"judges must name at least one judge, in a list or a mapping to prices; got {judges!r}.")
    people: dict[Any, float] = dict(judges if isinstance(judges, Mapping) else dict.fromkeys(judges, 1.0))
    factors = as_tensor(list(people.values()), "judges").double()
    if not bool((factors.isfinite() & (factors > 0)).all()):
        raise InputDataError(
            f"What multiplies the price of a judge must be positive and finite; got {factors.tolist()}."
        )
    for member in members:
        member.latent_posterior(member.datapoints[:1], judges=[next(iter(people))])  # raises where it cannot be asked
    return people


def _check_kind(member: LatentModel, question: Question) -> None:
    """Raise unless the kind has a reading to look ahead by."""
    part, kind = member.likelihood.for_kind(question.kind), question.kind
    if not part.predicts or part.num_outputs != 1:
        raise UnsupportedError(f"Questions of kind {kind.__name__} have no outcomes to look ahead to; leave them out.")
    if not part.takes_numbers:
        _reading(member, question, member.datapoints)


def _reading(member: LatentModel, question: Question, like: Tensor, judge: int | str | None = None) -> Reading:
    """The reading of an answer of a judge, of the model's own if `None`."""
    known = member.answering_likelihood if judge is None else member.likelihood
    likelihood = known if judge is None or isinstance(judge, str) else known.for_judge(judge)
    return likelihood.reading(question.kind, like, member.outcome_scale, question.num_points)


def _readings(
    members: Sequence[LatentModel], questions: Sequence[Question], who: Sequence[int | str | None], like: Tensor
) -> dict[tuple[int, int | str | None], list[Reading]]:
    """Readings for each member, by place of a question (of no numbers) and judge; uncertain cut-points add noise."""
    likelihood = members[0].likelihood
    others = [i for i, entry in enumerate(questions) if not likelihood.for_kind(entry.kind).takes_numbers]
    found = {
        (i, judge): [_reading(member, questions[i], like, judge) for member in members] for i in others for judge in who
    }
    if not found or len(members) > 1 or not isinstance(members[0], SkewGP):
        return found
    model = deepcopy(members[0])
    with torch.enable_grad():
        variances = cutpoint_variances(model, [_reading(model, questions[i], like, j).cutpoints for i, j in found])
    for (key, (reading,)), variance in zip(found.items(), variances, strict=True):
        if variance.numel():
            noise = reading.noise + (variance / reading.weight.square().sum(-1, keepdim=True)).mean()
            found[key] = [replace(reading, noise=noise)]
    return found


def _asks(
    members: Sequence[LatentModel],
    beliefs: Sequence[Belief],
    question: Question,
    X: Tensor,
    readings: Sequence[Reading] | None = None,
) -> list[Asked]:
    """What a question reads for each member; numbers, which have no given readings, have cells that fit the beliefs."""
    if readings is not None:
        return [Asked(reading) for reading in readings]
    parts = [member.answering_likelihood.for_kind(question.kind) for member in members]
    noise = [part.latent_noise(X[:1]).to(belief.means).reshape(1) for part, belief in zip(parts, beliefs, strict=True)]
    cuts = cells_of_numbers(beliefs, noise)
    readings = [Reading.at_point(variance.new_zeros(0), variance) for variance in noise]
    return [Asked(reading, cut) for reading, cut in zip(readings, cuts, strict=True)]


def _belief(member: LatentModel, X: Tensor, who: Sequence[int | str | None]) -> Belief:
    """The belief about the model's utility, and then about each judge's, at the pool's points."""
    judges = None
    if who != [None]:
        judges = [judge for judge in [None, *who] for _ in range(len(X))]
        X = X.repeat(1 + len(who), 1)
    posterior = member.latent_posterior(X, judges=judges)
    if posterior.num_points != len(X):
        raise UnsupportedError("Input transforms that turn one point into many are not supported here.")
    return Belief.of(posterior, member.outcome_scale)
