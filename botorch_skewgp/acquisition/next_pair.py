r"""The pair or choice to ask about next, for its expected value.

.. [Astudillo2023qeubo] Astudillo et al. qEUBO. AISTATS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.sampling import manual_seed
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.acquisition.closed_forms import ExpectedMaximumOfPair
from botorch_skewgp.acquisition.dueling import (
    DuelingAcquisitionFunction,
    DuelingLogExpectedImprovement,
    qExpectedUtilityAfterAnswers,
)
from botorch_skewgp.acquisition.model_points import check_one_output, points_of, posterior_means
from botorch_skewgp.acquisition.search_domain import SearchDomain, Values, are_new, as_asked, as_points, search_space
from botorch_skewgp.acquisition.search_options import OWN_STARTS, split_options
from botorch_skewgp.checks import MAX_OPTIONS, as_count, as_seed
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Observation
from botorch_skewgp.protocols import for_judge, is_latent_model, kind_of_duels
from botorch_skewgp.rows import first_of_equal

PairMethod = Literal["information"]
MAX_PAIRS = 8  # at once


def next_pair(
    model: Model,
    bounds: Tensor | None = None,
    method: PairMethod | AcquisitionFunction | None = None,
    num_restarts: int = 10,
    raw_samples: int = 256,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    X_candidates: Tensor | None = None,
    judge: int | str | None = None,
    num_pairs: int | None = None,
    pending: Tensor | Sequence[Tensor] | None = None,
    against: Tensor | None = None,
    fixed_features: Mapping[int, float] | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The pair to ask about next, two different points of a domain or of a list of candidates, or several pairs.

    By default the pair with the largest expected utility of the better point (qEUBO, [Astudillo2023qeubo]_), which is
    exact for a SkewGP without judges in a domain without lists of values, and else an average over samples; of a list,
    the challenger of the point of largest posterior mean, which is qEUBO one point after the other.

    Several pairs, to be asked about at once, are chosen one after the other by the same criterion: with `D` the points
    of a pair and of those before it, the pair has the largest `E[max_{x in D} E[f(x) | answers to all of these]]`; of a
    single pair without errors that is qEUBO. Beside questions that are `pending`, a SkewGP without judges is given
    the likeliest answers to them (other models choose by that expectation), and no pending pair is asked about again.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> pair, value = next_pair(model, bounds)
        >>> pair, value = next_pair(model, bounds, method="information")
        >>> pair, value = next_pair(model, X_candidates=pool)
        >>> pair, value = next_pair(model, bounds, discrete_dims={1: [0.0, 0.25, 1.0]})
        >>> pairs, values = next_pair(model, bounds, num_pairs=4)
        >>> other, value = next_pair(model, bounds, pending=[pair])
        >>> pair, value = next_pair(model, bounds, against=recommend(model, bounds)[0])

    Args:
        model: A model of the utility with one output; for `"information"` a SkewGP, or an ensemble of these.
        bounds: A `2 x d` tensor of lower and upper bounds; `None` with candidates.
        method: `"information"` about the utility everywhere; or an acquisition function of two points, or of
            challengers of its reference point, such as `DuelingLogExpectedImprovement`.
        num_restarts: The number of starting points, climbed from together.
        raw_samples: The number of raw samples that these are chosen from.
        discrete_dims: The values that inputs may take, by their number, where their order matters: `{2: [16, 32, 64]}`.
            The least and the largest must be the bounds.
        cat_dims: Likewise where it does not.
        X_candidates: An `n x d` tensor of points to choose from instead of a domain; methods for pairs evaluate all
            `n (n - 1) / 2` of them.
        judge: The judge to ask, as in `SkewGP.posterior`; `None` for the utility that all judges share.
        num_pairs: The number of pairs to ask about at once, 1 to 8, by the default method; `None` for a single pair.
        pending: Questions that were asked and are not answered yet: an `m x k x d` tensor, or a list of `k x d` ones,
            pairs or choices. An acquisition function given as the method is to know of them by itself.
        against: The point that is challenged, `d` or `1 x d`, such as the last winner or the point recommended; it may
            lie outside of the bounds, where the model still predicts it.
        fixed_features: The values of inputs that are held fixed, by their number.
        seed: The seed of the search; torch's global random state stays as it is.
        options: Further arguments of `optimize_acqf`, such as constraints; with discrete or categorical inputs,
            inequality constraints and `post_processing_func` alone. They do not apply to the point that is challenged.

    Returns:
        The pair, `2 x d`, with the point that is challenged, if there is one, last; and its acquisition value. With
        `num_pairs` the pairs in the order of choice, `num_pairs x 2 x d`, no two of them the same, and as many values,
        all of the expectation above.

    Raises:
        InputDataError: If the bounds are not `2 x d`, they or fixed features leave one point, the model rounds them to
            values beyond, the values that inputs may take do not fit them, there are both bounds and candidates or
            neither, there are not two different finite candidates, or candidates for so many different pairs, a
            pending question is about fewer than two points, or the method or an option is not known.
        UnsupportedError: If the method does not go with the model, with discrete inputs, or with several pairs, or the
            model has no judges.
        CandidateGenerationError: If no two different points satisfy the constraints, or too few pairs of them.
    """
    num = 1 if num_pairs is None else as_count(num_pairs, "num_pairs", least=1, most=MAX_PAIRS)
    if num > 1 and method is not None:
        raise UnsupportedError("Several pairs are chosen by the default method; leave method out, or num_pairs.")
    options |= {"discrete_dims": discrete_dims, "cat_dims": cat_dims, "fixed_features": fixed_features}
    with manual_seed(as_seed(seed)):
        question = _Question.of(
            model, bounds, X_candidates, judge, pending, against, options, num_restarts, raw_samples
        )
        if num_pairs is None:
            return question.best(2, method)
        # all values are of the expectation after the answers, which a list takes for the first pair too
        question.is_expectation = isinstance(question.space, Tensor) and method is None
        pairs, values = list[Tensor](), list[Tensor]()
        for _ in range(num):
            pair, value = question.best(2, method)
            pairs.append(pair.detach())
            values.append(value)
            question.asked.append(pairs[-1])
            question.waiting.append(pairs[-1])
    return torch.stack(pairs), torch.stack(values)


def next_choice(
    model: Model,
    bounds: Tensor | None = None,
    num_options: int = 3,
    num_restarts: int = 10,
    raw_samples: int = 256,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    X_candidates: Tensor | None = None,
    judge: int | str | None = None,
    pending: Tensor | Sequence[Tensor] | None = None,
    against: Tensor | None = None,
    fixed_features: Mapping[int, float] | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The options of the next choice to ask for: those with the largest expected utility of the best one (qEUBO).

    With two options that is `next_pair`, and one-step optimal; with more it is the same criterion
    ([Astudillo2023qeubo]_).

    Example:
        >>> model = SkewGP(train_X, Choice([[0, 1, 2], [3, 0, 4]]))
        >>> options, value = next_choice(model, bounds, num_options=3)

    Arguments other than `num_options`, 2 to 100, are as for `next_pair`; of candidates one option is chosen after the
    other. Returns the options, `num_options x d`, all different, the one that is challenged last; and their value.

    Raises:
        InputDataError: As `next_pair`, and if there are fewer than two options or different candidates than options.
        UnsupportedError: If a judge is named and the model has none.
        CandidateGenerationError: If too few different points satisfy the constraints.
    """
    as_count(num_options, "num_options", most=MAX_OPTIONS)
    options |= {"discrete_dims": discrete_dims, "cat_dims": cat_dims, "fixed_features": fixed_features}
    with manual_seed(as_seed(seed)):
        question = _Question.of(
            model, bounds, X_candidates, judge, pending, against, options, num_restarts, raw_samples
        )
        return question.best(num_options)


@dataclass
class _Question:
    """What the next question is chosen from, and how; checked arguments of `next_pair`.

    Args:
        space: A domain, or different candidates, `n x d`.
        asked: The questions that are not asked again, `k x d` each.
        waiting: Those of them whose answers the model does not take for known.
        given: Points of the question that are given, none or one, `n x d`.
        search: How a domain is searched.
        is_expectation: Whether the value is that after all answers, also where no question is pending.
    """

    model: Model
    space: SearchDomain | Tensor
    asked: list[Tensor]
    waiting: list[Tensor]
    given: Tensor
    search: dict[str, Any]
    is_expectation: bool = False

    @classmethod
    def of(
        cls,
        model: Model,
        bounds: Any,
        X_candidates: Any,
        judge: int | str | None,
        pending: Any,
        against: Any,
        options: Mapping[str, Any],
        num_restarts: int,
        raw_samples: int,
    ) -> _Question:
        """With the model for a judge."""
        where, search = split_options(options, num_restarts, raw_samples)
        model = for_judge(model, judge)
        check_one_output(model)
        own = points_of(model)
        if X_candidates is not None:
            where |= {name: value for name, value in options.items() if name in search}  # refused
        space = search_space(model, bounds, X_candidates, own, **where)
        if isinstance(space, Tensor):
            space = space[first_of_equal(space).unique()]
        else:
            space.check_choice()
        like = space if isinstance(space, Tensor) else space.bounds
        given = like[:0]
        if against is not None:
            given = as_points(against[None] if getattr(against, "ndim", 2) == 1 else against, like, "against")
            if len(given) != 1:
                raise InputDataError(f"against must be one point, of shape d or 1 x d; got {len(given)} points.")
        asked = as_asked(pending, like)
        if asked and ExpectedMaximumOfPair.takes(model) and _is_told_by_comparisons(model, asked):
            return cls(_given_answers(model, asked), space, asked, [], given, search)
        return cls(model, space, asked, list(asked), given, search)

    def best(self, num: int, method: Any = None) -> tuple[Tensor, Tensor]:
        """`num` different points to ask about together, given ones last, and their value."""
        acquisition, given = self._acquisition(num, method), self.given
        if isinstance(acquisition, DuelingAcquisitionFunction):
            given = acquisition.X_reference.to(given)
        elif len(given):
            acquisition.set_X_pending(given)
        if isinstance(self.space, Tensor):
            return self._best_of_pool(acquisition, self.space, num - len(given), given, in_turn=method is None)
        search = self.search
        if not len(given) and isinstance(acquisition, qExpectedUtilityOfBestOption | ExpectedMaximumOfPair):
            search = search | self._starts(acquisition, self.space, num)
        points, value = self.space.optimize(acquisition, num - len(given), **search)
        points, value = self.space.made_different(acquisition, points, value, given, self.asked)
        return torch.cat([points, given]), value

    def _acquisition(self, num: int, method: Any) -> AcquisitionFunction:
        """The acquisition function of a question; raises `InputDataError` or `UnsupportedError`."""
        model, space = self.model, self.space
        if isinstance(method, AcquisitionFunction):
            return method
        if method == "information":
            if not is_latent_model(model):
                raise UnsupportedError(f"Information needs a SkewGP; got {type(model).__name__}. Leave the method out.")
            asked = torch.cat([self.given[:0], *(question for question in self.waiting if len(question) == 2)])
            return SkewBayesianActiveLearningByDisagreement(model, kind_of_duels(model, "next_pair"), asked)
        if method is not None:
            raise InputDataError(
                f"method must be 'information', an acquisition function or None; got {method!r}. Challengers are in "
                "botorch_skewgp.papers.dueling; next_pair(against=...) challenges a point."
            )
        if self.waiting or self.is_expectation:
            return qExpectedUtilityAfterAnswers(model, self.waiting)
        if num == 2 and is_latent_model(model):
            if len(self.given):
                return DuelingLogExpectedImprovement(model, self.given)
            if isinstance(space, Tensor):
                return DuelingLogExpectedImprovement(model, space[posterior_means(model, space).argmax()])
        is_box = isinstance(space, SearchDomain) and not space.has_values
        if num == 2 and is_box and not len(self.given) and ExpectedMaximumOfPair.takes(model):
            return ExpectedMaximumOfPair(model)
        return qExpectedUtilityOfBestOption(model)

    @torch.no_grad()
    def _best_of_pool(
        self, acquisition: AcquisitionFunction, pool: Tensor, num: int, given: Tensor, in_turn: bool
    ) -> tuple[Tensor, Tensor]:
        """The best `num` points of a pool beside given ones: one after the other, or as pairs."""
        k, num_others = num + len(given), len(pool[_are_beside(pool, given)])
        if num_others < num:
            counted = ", the one that is challenged counted" if len(given) else ""
            raise InputDataError(f"X_candidates must hold at least {k} different points{counted}; got {pool.tolist()}.")
        asked = [question for question in self.asked if len(question) == k]
        if not (in_turn or len(given)):
            sets = pool[torch.combinations(torch.arange(len(pool), device=pool.device))]
            sets = sets[are_new(sets, asked)]
            if not len(sets):
                raise _no_question_left(num_others, k)
            chosen, values = select_from_pool(acquisition, sets)
            return sets[chosen[0]], values[0]
        points, value = given[:0], given.new_zeros(())
        for place in range(num):
            if place:
                acquisition.set_X_pending(torch.cat([points, given]))
            # a point is left out if all questions about it and those chosen so far were asked
            so_far = torch.cat([points, given])
            num_asked = torch.zeros(len(pool), dtype=torch.long, device=pool.device)
            for question in asked:
                if not _are_beside(so_far, question).any():
                    num_asked += ~_are_beside(pool, question)
            has_new = num_asked < math.comb(num_others - place - 1, num - place - 1)
            free = pool[_are_beside(pool, so_far) & has_new]
            if not len(free):
                raise _no_question_left(num_others, k)
            chosen, (value,) = select_from_pool(acquisition, free)
            points = torch.cat([points, free[chosen]])
        return torch.cat([points, given]), value

    @torch.no_grad()
    def _starts(self, acquisition: AcquisitionFunction, domain: SearchDomain, num: int) -> dict[str, Any]:
        """Options for which half of the searches start from the best known point and others at all distances."""
        # BoTorch's starts are far apart; with several inputs and many answers the pairs worth asking lie together
        X, search = points_of(acquisition.model), self.search
        if X is None or not len(X) or not domain.is_box or not OWN_STARTS.isdisjoint(search):
            return {}
        own = domain.nearest(X.to(domain.bounds))
        means = posterior_means(acquisition.model, own)
        if means.shape != own.shape[:1]:  # as where inputs are perturbed
            return {}
        num_sets, num_starts = max(search["raw_samples"] // 2, 1), max(search["num_restarts"] // 2, 1)
        others = domain.spread(num_sets * (num - 1)).view(num_sets, num - 1, -1)
        known = own[means.argmax()].expand(num_sets, 1, -1)
        share = torch.linspace(0, 1, num_sets + 1).to(others)[1:].view(-1, 1, 1)
        sets = torch.cat([known + share * (others - known), known], dim=-2)
        best = acquisition(sets).topk(min(num_starts, num_sets)).indices
        num_left = max(search["raw_samples"] - num_sets, search["num_restarts"] - len(best))
        return {"batch_initial_conditions": sets[best], "raw_samples": max(num_left, 1)}


def _is_told_by_comparisons(model: SkewGP, asked: Sequence[Tensor]) -> bool:
    """Whether a model takes answers to all questions, as one of numbers alone does not."""
    try:
        return all(model.likelihood.kind_of_choices(len(question)) for question in asked)
    except InputDataError:
        return False


@torch.no_grad()
def _given_answers(model: SkewGP, asked: Sequence[Tensor]) -> SkewGP:
    """The model given the likeliest answers to questions: a drawn one, if it is wrong, leads astray until it is known,
    and an average over answers of the gain of a pair is its gain without any.
    """
    X = torch.cat([*asked]).to(model.datapoints)
    means = posterior_means(model, X)
    start = 0
    observations = dict[type[Observation], list[Tensor]]()
    for question in asked:
        k = len(question)
        kind = model.likelihood.kind_of_choices(k)
        best_first = means[start : start + k].argsort(descending=True)
        observations.setdefault(kind, []).append(start + best_first)
        start += k
    told = [kind(torch.stack(rows)) for kind, rows in observations.items()]  # type: ignore[call-arg]
    return model.condition_on_observations(X, told)


def _are_beside(X: Tensor, others: Tensor) -> Tensor:
    """Which of `n x d` points are none of some others."""
    return (X.unsqueeze(1) != others).any(-1).all(-1)


def _no_question_left(num_points: int, num: int) -> InputDataError:
    return InputDataError(
        f"All questions about {num} of {num_points} different X_candidates are pending; ask for no more of them, or "
        "give more points."
    )
