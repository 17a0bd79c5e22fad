r"""The next question to ask: its kind, its points, the judge, and whether it is worth its price.

The knowledge gradient chooses the points. Alone it would favour kinds that change the recommendation now, such as
duels, over those that tell more for later answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.cutpoint_variances import cutpoint_variances
from botorch_skewgp.acquisition.information import information_about_best
from botorch_skewgp.acquisition.look_ahead import (
    AnswerModel,
    LatentMixture,
    cells_of_numbers,
    expected_gain,
    given_pending,
    joint_posterior,
)
from botorch_skewgp.acquisition.question_points import points_to_ask_about, sets_to_ask_about
from botorch_skewgp.acquisition.search_domain import Values, search_space
from botorch_skewgp.checks import MAX_OPTIONS, as_count, as_number, as_seed, as_tensor
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.panel import judge_of
from botorch_skewgp.observations import Observation
from botorch_skewgp.protocols import LatentModel, members_of
from botorch_skewgp.rows import Reading, first_of_equal

Judge = int | str
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
        stop: Whether no question is worth its price; `False` if `value_per_unit` was `None`.
    """

    question: Question
    X: Tensor
    judge: Judge | None
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
    judges: Sequence[Judge] | Mapping[Judge, float] | None = None,
    value_per_unit: float | None = None,
    method: QuestionMethod = "knowledge_gradient",
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    seed: int = 0,
    num_questions: int | None = None,
    pending: Sequence[NextQuestion] = (),
    fixed_features: Mapping[int, float] | None = None,
    **constraints: Any,
) -> NextQuestion | list[NextQuestion]:
    r"""The next question to ask: the most informative kind for its price, at the points with the largest expected gain.

    Example:
        >>> model = SkewGP(train_X, [Numeric(values), Preference(pairs)])
        >>> best = next_question(model, bounds, questions=[Numeric, Preference], costs=[10.0, 1.0])
        >>> best.question.kind, best.X, best.value, best.cost
        >>> page = next_question(model, bounds, questions=[Numeric, Preference], num_questions=3)
        >>> other = next_question(model, bounds, questions=[Preference], pending=page)

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        bounds: A `2 x d` tensor of lower and upper bounds; `None` with candidates.
        questions: Kinds of observations, or a `Question` where the number of points or the incumbent matters.
        costs: The price of each question, in any one unit; a mapping from questions or kinds, or a sequence in their
            order. All cost the same if `None`.
        X_candidates: An `n x d` tensor of points to ask about instead of a domain.
        judges: The judges to choose from, as in `SkewGP.posterior`: their numbers, or a mapping from these to factors
            of the price. The gain is that of the model's utility: the shared one, or that of `model.for_judge(j)`.
        value_per_unit: What a rise of the outcome by one unit may cost, in units of the costs, for `stop`. Kinds
            and judges whose question is expected to gain less than its price are left out while there are others.
        method: What chooses the points: `"knowledge_gradient"`, the expected gain of the recommended point (where no
            single answer would change it, as `"information"`), or `"information"` about which point is best, which
            chooses the kind and the judge in either case.
        discrete_dims: As in `next_pair`.
        cat_dims: As in `next_pair`.
        seed: The seed of the pool of points.
        num_questions: The number of questions of a page to ask at once, each chosen with the earlier ones pending.
        pending: Questions that were asked and are not answered yet, as they were returned: they are not asked again,
            and values are the gains beyond theirs.
        fixed_features: As in `next_pair`.
        constraints: Constraints of `optimize_acqf`, on single points.

    Returns:
        The question; with `num_questions` a list of them, in the order of choice, each value the gain beyond those
        before it.

    Raises:
        InputDataError: If there are no questions, the likelihood does not take one of the kinds, a cost is not
            positive, there are both bounds and candidates or neither, too few points for a question, a judge without
            observations, the list of judges is empty, there are fewer questions than one, or no question is left.
        UnsupportedError: If the model is another, has no judges, or a kind has no outcomes to look ahead to.
    """
    members = members_of(model, "next_question")
    kinds = _questions(members[0], questions)
    num = 1 if num_questions is None else as_count(num_questions, "num_questions", least=1)
    seed = as_seed(seed)
    if method not in ("knowledge_gradient", "information"):
        raise InputDataError(f"method must be 'knowledge_gradient' or 'information'; got {method!r}.")
    prices = _prices(costs, questions, kinds)
    factors = _factors_of_judges(members, judges)
    if value_per_unit is not None and as_number(value_per_unit, "value_per_unit") <= 0:
        raise InputDataError(f"value_per_unit must be positive and finite, or None; got {value_per_unit!r}.")
    if not all(isinstance(asked, NextQuestion) for asked in pending):
        raise InputDataError(f"pending must be a list of questions that next_question returned; got {pending!r}.")
    where = constraints | {"discrete_dims": discrete_dims, "cat_dims": cat_dims, "fixed_features": fixed_features}
    space = search_space(model, bounds, X_candidates, members[0].datapoints, **where)
    X = torch.cat([points_to_ask_about(model, members, space, seed), *(asked.X for asked in pending)])
    X = X[first_of_equal(X).unique()] if pending else X
    least = max(question.size for question in kinds)
    if len(X) < least:
        raise InputDataError(
            f"A question is about {least} points, but there {'is' if len(X) == 1 else 'are'} {len(X)}; widen the "
            "bounds, or give more X_candidates."
        )
    named = list(dict.fromkeys(judge for judge in (*factors, *(asked.judge for asked in pending)) if judge is not None))
    search = _Search(members, X, kinds, prices, factors, value_per_unit, method == "information", seed, named)
    for asked in pending:
        search.left_out.add(search.wait_for(asked))
    chosen = [search.best()]
    while len(chosen) < num:
        search.wait_for(chosen[-1])
        chosen.append(search.best())
    return chosen[0] if num_questions is None else chosen


Asked = tuple[Question, Judge | None]
Rank = tuple[bool, float, float]  # larger for a better question: whether it is worth its price, information and gain


class _Search:
    """What questions are chosen from, and how; the arguments of `next_question`, checked.

    Args:
        factors: Factors of the price by judge.
        named: The judges whose utilities matter, of questions and of pending ones.
    """

    def __init__(
        self,
        members: Sequence[LatentModel],
        X: Tensor,
        questions: Sequence[Question],
        prices: Sequence[float],
        factors: Mapping[Judge | None, float],
        value_per_unit: float | None,
        by_information: bool,
        seed: int,
        named: Sequence[Judge],
    ) -> None:
        self.members, self.X, self.named = members, X, named
        self.questions, self.prices, self.factors = questions, prices, factors
        self.value_per_unit, self.by_information, self.seed = value_per_unit, by_information, seed
        self.recommended = torch.arange(len(X), device=X.device)
        self.mixtures = [_mixture(member, X, named) for member in members]
        self.left_out = set[tuple[Asked, frozenset[int]]]()  # questions that are not asked again
        self._answers: dict[Asked, list[AnswerModel]] = {}
        self._know_answers([(question, judge) for question in questions for judge in factors])

    def wait_for(self, asked: NextQuestion) -> tuple[Asked, frozenset[int]]:
        """Condition on the unknown answer to a question; returns what names it."""
        key = asked.question, asked.judge
        self._know_answers([key])
        places = (asked.X.to(self.X).unsqueeze(1) == self.X).all(-1).long().argmax(-1)
        answers, item = self._answers_to(*key), self._of_judge(places, asked.judge)
        self.mixtures = given_pending(self.mixtures, answers, item, self.seed)
        return key, frozenset(places.tolist())

    def best(self) -> NextQuestion:
        """The best question for one of the judges."""
        valued = []
        for question, price in zip(self.questions, self.prices, strict=True):
            items = sets_to_ask_about(self.mixtures, question.size, self.recommended, self.seed)
            for judge, factor in self.factors.items():
                is_new = [((question, judge), frozenset(row)) not in self.left_out for row in items.tolist()]
                if any(is_new):
                    valued.append(self._valued(question, judge, price * factor, items[is_new]))
        if not valued:
            raise InputDataError("All questions are pending; wait for an answer, or give more points or kinds.")
        return max(valued, key=lambda entry: entry[0])[1]

    def _valued(self, question: Question, judge: Judge | None, cost: float, items: Tensor) -> tuple[Rank, NextQuestion]:
        """A question of a judge at the best of some sets of points, `B x k`."""
        answers, of_judge = self._answers_to(question, judge), self._of_judge(items, judge)
        gains = expected_gain(self.mixtures, answers, self.recommended, of_judge)
        # where no single answer changes the recommendation, information chooses the points
        min_gain = ROUNDING * self.members[0].outcome_scale.scale
        by_information = self.by_information or bool(gains.max() <= min_gain)
        values, rate = gains, 0.0
        if by_information or len(self.questions) * len(self.factors) > 1:
            information = information_about_best(self.mixtures, answers, self.recommended, of_judge)
            rate = float(information.max()) / cost
            values = information if by_information else gains
        best = values.argmax()
        gain = max(float(gains[best]), 0.0)
        stop = self.value_per_unit is not None and gain * self.value_per_unit < cost
        found = NextQuestion(question, self.X[items[best]].clone(), judge, gain, cost, stop)
        return (not stop, rate, gain / cost), found

    def _of_judge(self, items: Tensor, judge: Judge | None) -> Tensor:
        """The places in the mixtures of a judge's utility at points."""
        return items + (0 if judge is None else 1 + self.named.index(judge)) * len(self.X)

    def _answers_to(self, question: Question, judge: Judge | None) -> list[AnswerModel]:
        """The distribution of answers for each member; those of numbers have cells that fit all members."""
        known = self._answers.get((question, judge))
        return _answers_of_numbers(self.members, self.mixtures, question.kind, self.X) if known is None else known

    def _know_answers(self, keys: Iterable[Asked]) -> None:
        """Find out what answers read that are no numbers."""
        likelihood = self.members[0].likelihood
        new = [key for key in keys if key not in self._answers and not likelihood.for_kind(key[0].kind).takes_numbers]
        self._answers |= _answers_with_outcomes(self.members, new, self.X)


def _answers_of_numbers(
    members: Sequence[LatentModel], mixtures: Sequence[LatentMixture], kind: type[Observation], X: Tensor
) -> list[AnswerModel]:
    """The distribution of numbers for each member, with cells that fit all members."""
    noise = []
    for member in members:
        part = member.answering_likelihood.for_kind(kind)
        noise.append(part.latent_noise(X[:1]).to(X).reshape(1))
    readings = [Reading.at_point(variance.new_zeros(0), variance) for variance in noise]
    cells = cells_of_numbers(mixtures, noise)
    return [AnswerModel([reading], None, ends) for reading, ends in zip(readings, cells, strict=True)]


def _answers_with_outcomes(
    members: Sequence[LatentModel], keys: Sequence[Asked], X: Tensor
) -> dict[Asked, list[AnswerModel]]:
    """The distribution of answers for each member; uncertain cut-points add noise to those of a single model."""
    answers = {
        (question, judge): [AnswerModel.of(member, question.kind, question.num_points, judge) for member in members]
        for question, judge in keys
    }
    if not keys or len(members) > 1 or not isinstance(members[0], SkewGP):
        return answers
    model = deepcopy(members[0])
    with torch.enable_grad():
        cutpoints = [_cutpoints(model, question, X, judge) for question, judge in keys]
        variances = cutpoint_variances(model, cutpoints)
    for key, variance in zip(keys, variances, strict=True):
        if variance.numel():
            answers[key] = [answer.with_noise(variance) for answer in answers[key]]
    return answers


def _questions(member: LatentModel, questions: Any) -> list[Question]:
    """Questions with readings to look ahead by; raises `InputDataError` or `UnsupportedError`."""
    if not isinstance(questions, Sequence):
        raise InputDataError("questions must be a list; write questions=[...] for a single one.")
    if not questions:
        raise InputDataError("questions must name at least one kind of observation, such as [Preference, Numeric].")
    checked = [entry if isinstance(entry, Question) else Question(entry) for entry in questions]
    for question in checked:
        kind = question.kind
        part = member.likelihood.for_kind(kind)
        if not part.predicts or part.num_outputs != 1:
            raise UnsupportedError(
                f"Questions of kind {kind.__name__} have no outcomes to look ahead to; leave them out."
            )
        if not part.takes_numbers:
            AnswerModel.of(member, kind, question.num_points)
    return checked


def _prices(costs: Any, given: Sequence[Any], questions: Sequence[Question]) -> list[float]:
    """The price of each question; raises `InputDataError` if one is missing or not positive."""
    if costs is None:
        return [1.0] * len(questions)
    if isinstance(costs, Mapping):
        costs = [costs.get(key, costs.get(entry.kind)) for key, entry in zip(given, questions, strict=True)]
        missing = [entry.kind.__name__ for price, entry in zip(costs, questions, strict=True) if price is None]
        if missing:
            raise InputDataError(f"costs names no price for questions of kind {', '.join(missing)}.")
    prices = as_tensor(costs, "costs").double()
    if prices.shape != (len(questions),):
        raise InputDataError(
            f"costs must hold a price for each of the {len(questions)} questions; got {prices.tolist()}."
        )
    if not bool((prices.isfinite() & (prices > 0)).all()):
        raise InputDataError(f"costs must be positive and finite; got {prices.tolist()}.")
    return prices.tolist()


def _factors_of_judges(
    members: Sequence[LatentModel], judges: Sequence[Judge] | Mapping[Judge, float] | None
) -> dict[Judge | None, float]:
    """The judges to choose from, with factors of the price."""
    if judges is None:
        return {None: 1.0}
    if isinstance(judges, str) or not isinstance(judges, Sized) or not len(judges):
        raise InputDataError(f"judges must name at least one judge, in a list or a mapping to prices; got {judges!r}.")
    by_judge: dict[Any, float] = dict(judges if isinstance(judges, Mapping) else dict.fromkeys(judges, 1.0))
    factors = as_tensor(list(by_judge.values()), "judges").double()
    if not bool((factors.isfinite() & (factors > 0)).all()):
        raise InputDataError(
            f"What multiplies the price of a judge must be positive and finite; got {factors.tolist()}."
        )
    for member in members:
        member.latent_posterior(member.datapoints[:1], judges=[next(iter(by_judge))])  # raises where it has no judges
    return by_judge


def _cutpoints(model: SkewGP, question: Question, like: Tensor, judge: Judge | None) -> Tensor:
    """The cut-points of the same reading as functions of the model's parameters, which a fitted value is not."""
    judge = judge_of(model.fitted().judge) if judge is None else judge
    likelihood = model.likelihood.for_judge(judge)
    return likelihood.reading(question.kind, like, model.outcome_scale, question.num_points).cutpoints


def _mixture(member: LatentModel, X: Tensor, judges: Sequence[Judge]) -> LatentMixture:
    """The model's utility, and then each judge's, at the pool's points."""
    by = [judge for judge in [None, *judges] for _ in range(len(X))] if judges else None
    return LatentMixture.of(joint_posterior(member, X.repeat(1 + len(judges), 1), by), member.outcome_scale)
