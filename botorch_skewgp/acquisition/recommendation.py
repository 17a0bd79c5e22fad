r"""The pair or choice to ask about next, for its expected value, and the point to recommend now, the best so far.

.. [Astudillo2023qeubo] Astudillo et al. qEUBO. AISTATS 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.objective import PosteriorTransform
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.acquisition.comparison_groups import warn_if_undecided
from botorch_skewgp.acquisition.dueling import (
    MAX_PENDING,
    DuelingAcquisitionFunction,
    DuelingLogExpectedImprovement,
    qExpectedUtilityAfterDuels,
)
from botorch_skewgp.acquisition.outlook import Belief, joint_draws
from botorch_skewgp.acquisition.rounding import rounded_inputs
from botorch_skewgp.acquisition.search_domain import CONSTRAINTS, OPTIONS, SearchDomain, Values, as_points, search_space
from botorch_skewgp.checks import MAX_OPTIONS, as_count, as_seed
from botorch_skewgp.inputs.transforms import has_transformed_inputs, untransformed_inputs
from botorch_skewgp.protocols import for_judge, input_transform_of, is_latent_model, kind_of_duels, members_of
from botorch_skewgp.rows import first_of_equal

PairMethod = Literal["expected_improvement", "information"]
ROUNDING = 1e-10  # of a posterior mean
MAX_PAIRS = MAX_PENDING + 1  # at once
# with these options the best candidate need not be a valid start
_STARTS_ARE_CHECKED = {*CONSTRAINTS, "batch_initial_conditions", "fixed_features", "ic_generator"}


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
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The pair to ask about next, two different points of a domain or of a list of candidates, or several pairs.

    By default the pair with the largest expected utility of the better point (qEUBO, [Astudillo2023qeubo]_); of a list,
    the challenger of the point of largest posterior mean, which is qEUBO one point after the other.

    Several pairs, to be asked about at once, are chosen one after the other by the same criterion: with `D` the points
    of a pair and of those before it, the pair has the largest `E[max_{x in D} E[f(x) | answers to all of these]]`;
    of a single pair without errors that is qEUBO.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> pair, value = next_pair(model, bounds)
        >>> pair, value = next_pair(model, bounds, method="information")
        >>> pair, value = next_pair(model, X_candidates=pool)
        >>> pair, value = next_pair(model, bounds, discrete_dims={1: [0.0, 0.25, 1.0]})
        >>> pairs, values = next_pair(model, bounds, num_pairs=4)

    Args:
        model: A model of the utility with one output; for a method by name a SkewGP, or an ensemble of these.
        bounds: A `2 x d` tensor of lower and upper bounds; `None` with candidates.
        method: `"expected_improvement"`, the challenger of the best of the model's own points in the domain;
            `"information"` about the utility everywhere; or an acquisition function of two points, or of challengers
            of its reference point, such as `DuelingLogExpectedImprovement`.
        num_restarts: The number of starting points of `optimize_acqf`.
        raw_samples: The number of raw samples that these are chosen from.
        discrete_dims: The values that inputs may take, by their number, where their order matters: `{2: [16, 32, 64]}`.
            The least and the largest must be the bounds.
        cat_dims: Likewise where it does not.
        X_candidates: An `n x d` tensor of points to choose from instead of a domain; methods for pairs evaluate all
            `n (n - 1) / 2` of them.
        judge: The judge to ask, as in `SkewGP.posterior`; `None` for the utility that all judges share.
        num_pairs: The number of pairs to ask about at once, 1 to 8, by the default method; `None` for a single pair.
        options: Further arguments of `optimize_acqf`, such as constraints; with discrete or categorical inputs, fixed
            features, inequality constraints and `post_processing_func` alone. They do not apply to the point that is
            challenged.

    Returns:
        The pair, `2 x d`, with the point that is challenged, if there is one, last; and its acquisition value. With
        `num_pairs` the pairs in the order of choice, `num_pairs x 2 x d`, no two of them the same, and as many values,
        all of the expectation above.

    Raises:
        InputDataError: If the bounds are not `2 x d`, they or fixed features leave one point, the model rounds them to
            values beyond, the values that inputs may take do not fit them, there are both bounds and candidates or
            neither, there are not two different finite candidates, or candidates for so many different pairs, or the
            method or an option is not known.
        UnsupportedError: If the method does not go with the model, with discrete inputs, or with several pairs, or the
            model has no judges.
        CandidateGenerationError: If no two different points satisfy the constraints, or too few pairs of them.
    """
    num = 1 if num_pairs is None else as_count(num_pairs, "num_pairs", least=1, most=MAX_PAIRS)
    if num > 1 and method is not None:
        raise UnsupportedError("Several pairs are chosen by the default method; leave method out, or num_pairs.")
    search = _checked(options, num_restarts=num_restarts, raw_samples=raw_samples)
    options |= {"discrete_dims": discrete_dims, "cat_dims": cat_dims}
    model, space = _prepared(model, judge, bounds, X_candidates, options)
    if num_pairs is None or method is not None:
        pair, value = _next_points(model, space, 2, method, search)
        return (pair, value) if num_pairs is None else (pair.unsqueeze(0), value.unsqueeze(0))
    # the first pair of a domain is that of a single one, whose search has better starts
    asked = space.new_empty(0, 2, space.shape[-1]) if isinstance(space, Tensor) else None
    pairs, values = list[Tensor](), list[Tensor]()
    for _ in range(num):
        pair, value = _next_points(model, space, 2, None, search, asked)
        pairs, values = [*pairs, pair.detach()], [*values, value]
        asked = torch.stack(pairs)
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
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The options of the next choice to ask for: those with the largest expected utility of the best one (qEUBO).

    With two options that is `next_pair`, and one-step optimal; with more it is the same criterion
    ([Astudillo2023qeubo]_).

    Example:
        >>> model = SkewGP(train_X, Choice([[0, 1, 2], [3, 0, 4]]))
        >>> options, value = next_choice(model, bounds, num_options=3)

    Arguments other than `num_options`, 2 to 100, are as for `next_pair`; of candidates one option is chosen after the
    other. Returns the options, `num_options x d`, all different; and their acquisition value.

    Raises:
        InputDataError: As `next_pair`, and if there are fewer than two options or different candidates than options.
        UnsupportedError: If a judge is named and the model has none.
        CandidateGenerationError: If too few different points satisfy the constraints.
    """
    as_count(num_options, "num_options", most=MAX_OPTIONS)
    search = _checked(options, num_restarts=num_restarts, raw_samples=raw_samples)
    options |= {"discrete_dims": discrete_dims, "cat_dims": cat_dims}
    model, space = _prepared(model, judge, bounds, X_candidates, options)
    return _next_points(model, space, num_options, None, search)


def _checked(options: dict[str, Any], **effort: int) -> dict[str, Any]:
    """All options of a search; raises for those that BoTorch's own errors do not name."""
    search = options | {name: as_count(value, name, least=1) for name, value in effort.items()}
    if "X_pending" in search:
        raise InputDataError(
            "X_pending is not supported; for several pairs at once give next_pair num_pairs, for other questions an "
            "acquisition function with pending points as the method."
        )
    unknown = sorted(search.keys() - OPTIONS)
    if unknown and "ic_generator" not in search:
        raise InputDataError(f"optimize_acqf has no argument {', '.join(unknown)}; leave it out.")
    return search


def _prepared(
    model: Model, judge: int | str | None, bounds: Any, X_candidates: Any, options: dict[str, Any]
) -> tuple[Model, SearchDomain | Tensor]:
    """The model for a judge, and the domain or the different candidates."""
    model = for_judge(model, judge)
    _check_one_output(model)
    space = search_space(model, bounds, X_candidates, _points_or_none(model), **options)
    if isinstance(space, Tensor):
        return model, space[first_of_equal(space).unique()]
    space.check_choice(options)
    return model, space


def _next_points(
    model: Model,
    space: SearchDomain | Tensor,
    num: int,
    method: Any,
    search: dict[str, Any],
    asked: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`num` different points to ask about together, beside pairs of a page, `m x 2 x d`; `num x d`, and their value."""
    if method is None and num == 2 and asked is None and isinstance(space, Tensor) and is_latent_model(model):
        method = "expected_improvement"
    acquisition: AcquisitionFunction
    incumbent: Tensor | None = None
    if isinstance(method, AcquisitionFunction):
        acquisition = method
        if isinstance(method, DuelingAcquisitionFunction):
            incumbent = method.X_reference.to(space if isinstance(space, Tensor) else space.bounds)
    elif method is None and asked is not None:
        acquisition = qExpectedUtilityAfterDuels(model, asked)
    elif method is None:
        acquisition = qExpectedUtilityOfBestOption(model)
    elif method not in ("expected_improvement", "information"):
        raise InputDataError(
            "method must be 'expected_improvement', 'information', an acquisition function or None; got "
            f"{method!r}. Other challengers are in botorch_skewgp.papers.dueling."
        )
    elif not is_latent_model(model):
        raise UnsupportedError(f"The method {method!r} needs a SkewGP; got {type(model).__name__}. Leave it out.")
    elif method == "information":
        acquisition = SkewBayesianActiveLearningByDisagreement(model, kind=kind_of_duels(model, "next_pair"))
    else:
        incumbent = _best_known(model, space, search)
        acquisition = DuelingLogExpectedImprovement(model, incumbent)
    if isinstance(space, Tensor):
        return _next_of_pool(acquisition, space, num, incumbent, asked, in_turn=method is None)
    if incumbent is None and isinstance(acquisition, qExpectedUtilityOfBestOption):
        search = search | _starts(acquisition, space, num, search)
    points, value = space.optimize(acquisition, num if incumbent is None else num - 1, **search)
    points, value = space.made_different(acquisition, points, value, incumbent, asked, search)
    return (points if incumbent is None else torch.cat([points, incumbent])), value


def _best_known(model: Model, space: SearchDomain | Tensor, search: dict[str, Any]) -> Tensor:
    """The point of largest posterior mean, `1 x d`, of a list or of the model's own in a domain."""
    if isinstance(space, Tensor):
        return space[_means(model, space).argmax()].unsqueeze(0)
    own = members_of(model, "next_pair")[0].datapoints.to(space.bounds)
    own = own[space.contains(own)]
    if not len(own):
        return space.optimize(PosteriorMean(model), 1, **search)[0]
    return rounded_inputs(input_transform_of(model), own[_means(model, own).argmax()].unsqueeze(0))


@torch.no_grad()
def _next_of_pool(
    acquisition: AcquisitionFunction,
    pool: Tensor,
    num: int,
    incumbent: Tensor | None,
    asked: Tensor | None,
    in_turn: bool,
) -> tuple[Tensor, Tensor]:
    """The best points of a pool: beside an incumbent or pairs that are asked if there are any, in turn, or as pairs."""
    others, num_others, counted = pool, num, ""
    if incumbent is not None:
        others, num_others, counted = _without(pool, incumbent), num - 1, ", the incumbent counted"
    if len(others) < num_others:
        raise InputDataError(f"X_candidates must hold at least {num} different points{counted}; got {pool.tolist()}.")
    if asked is not None:
        num_pairs = len(pool) * (len(pool) - 1) // 2
        if len(asked) >= num_pairs:
            raise InputDataError(
                f"There are {num_pairs} different pair(s) of X_candidates; ask for no more of them, or give more "
                "points."
            )
        num_asked = (pool[:, None, None] == asked).all(-1).sum((-1, -2))
        free = pool[num_asked < len(pool) - 1]
        incumbent = free[select_from_pool(acquisition, free)[0]]
        acquisition.set_X_pending(incumbent)
        others = _without(pool, torch.cat([incumbent, asked.flip(1)[(asked == incumbent).all(-1)]]))
        num_others = 1
    if incumbent is None and not in_turn:
        sets = pool[torch.combinations(torch.arange(len(pool), device=pool.device))]
        chosen, values = select_from_pool(acquisition, sets)
        return sets[chosen[0]], values[0]
    chosen, values = select_from_pool(acquisition, others, num_others)
    points = others[chosen]
    return (points if incumbent is None else torch.cat([points, incumbent])), values[-1]


def _without(pool: Tensor, others: Tensor) -> Tensor:
    return pool[(pool.unsqueeze(1) != others).any(-1).all(-1)]


@torch.no_grad()
def _starts(acquisition: AcquisitionFunction, domain: SearchDomain, num: int, search: dict[str, Any]) -> dict[str, Any]:
    """Options for which half of the searches start from the best known point and others at all distances from it."""
    # BoTorch's starts are far apart; with several inputs and many answers the pairs worth asking lie together
    X = _points_or_none(acquisition.model)
    if X is None or not _STARTS_ARE_CHECKED.isdisjoint(search) or domain.box.factors or domain.whole:
        return {}
    own = domain.rounded(X.to(domain.bounds)[domain.contains(X.to(domain.bounds))])
    means = _means(acquisition.model, own) if len(own) else own[:, 0]
    if not len(own) or means.shape != own.shape[:1]:  # as where inputs are perturbed
        return {}
    num_sets, num_starts = max(search["raw_samples"] // 2, 1), max(search["num_restarts"] // 2, 1)
    others = domain.spread(num_sets * (num - 1)).view(num_sets, num - 1, -1)
    known = own[means.argmax()].expand(num_sets, 1, -1)
    share = torch.linspace(0, 1, num_sets + 1).to(others)[1:].view(-1, 1, 1)
    sets = torch.cat([known + share * (others - known), known], dim=-2)
    best = acquisition(sets).topk(min(num_starts, num_sets)).indices
    left = max(search["raw_samples"] - num_sets, search["num_restarts"] - len(best))
    return {"batch_initial_conditions": sets[best], "raw_samples": max(left, 1)}


def recommend(
    model: Model,
    bounds: Tensor | None = None,
    X_candidates: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    num_restarts: int = 10,
    raw_samples: int = 256,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    judge: int | str | Sequence[int | str] | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The point to recommend now: the one with the largest posterior mean.

    With bounds the mean is maximised over the domain, starting among others from the best of the candidates; without,
    over the candidates alone. Among a model's own points, an `UndecidedRecommendationWarning` is issued where no
    comparison links the point to one that is as good a recommendation.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best_seen, utility = recommend(model)
        >>> best, utility = recommend(model, bounds)

    The model has one output, or several and a posterior transform to one, which weights the utilities of several
    judges, too. `X_candidates` are points to recommend from, `n x d`; the model's own points if `None`. Other arguments
    are as for `next_pair`; `options` need bounds. Returns the point, `1 x d`, and its posterior mean.

    Raises:
        InputDataError: If there are no candidates or one is not finite, options are given without bounds, the model
            rounds the bounds to values beyond them, or the values that inputs may take do not fit the bounds.
        UnsupportedError: If the model has several outputs and there is no posterior transform, no known points of its
            own, or no judges.
    """
    model = for_judge(model, judge)
    if posterior_transform is None:
        _check_one_output(model)
    search = _checked(options, num_restarts=num_restarts, raw_samples=raw_samples)
    if bounds is None and options:
        raise InputDataError(f"{', '.join(options)} only has a meaning with bounds.")
    own = _points_or_none(model)
    X = own if X_candidates is None else as_points(X_candidates, own, "X_candidates")
    if X is None:
        raise UnsupportedError(f"{type(model).__name__} has no single set of points of its own; give X_candidates.")
    if bounds is None:
        if not len(X):
            raise InputDataError("The model has no points to recommend from; give bounds or X_candidates.")
        values = _means(model, X, posterior_transform)
        if X_candidates is None:
            warn_if_undecided(model, values)
        best = values.argmax()
        return rounded_inputs(input_transform_of(model), X[best].clone().unsqueeze(0)), values[best]
    domain, seen = SearchDomain.build(model, bounds, discrete_dims, cat_dims, X), None
    known = domain.rounded(X[domain.contains(X)])
    if len(known) and _STARTS_ARE_CHECKED.isdisjoint(search):
        values = _means(model, known, posterior_transform)
        seen = known[values.argmax()].unsqueeze(0), values.max()
        if not domain.box.factors and num_restarts > 1:
            search["batch_initial_conditions"] = seen[0].unsqueeze(0)
    point, value = domain.optimize(PosteriorMean(model, posterior_transform=posterior_transform), 1, **search)
    if seen is not None and value <= seen[1] + ROUNDING * seen[1].abs():  # the search may end beside it
        return seen
    return point, value


@torch.no_grad()
def probability_of_best(
    model: Model, X_candidates: Tensor | None = None, num_samples: int = 4096, seed: int = 0
) -> Tensor:
    r"""The probability that each point has the largest value of the latent function among all given points.

    At the recommended point it is the probability that no other of these points is better; where it is low,
    `next_question` and `next_pair` ask about the rivals again. Equal points share their probability; the sum is 1.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best, _ = recommend(model)
        >>> sure = probability_of_best(model)[(train_X == best).all(-1)].sum()

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        X_candidates: An `n x d` tensor of points; the model's own points if `None`.
        num_samples: The number of joint draws; the standard error of a probability `p` is `sqrt(p (1 - p) / num)`.
        seed: The seed of the draws.

    Raises:
        InputDataError: If the points are not `n x d` with at least one finite point, or there are fewer draws than
            members of the ensemble.
        UnsupportedError: If the model is another.
    """
    members = members_of(model, "probability_of_best")
    own = members[0].datapoints
    X = as_points(own if X_candidates is None else X_candidates, own, "X_candidates")
    num_samples, seed = as_count(num_samples, "num_samples", least=len(members)), as_seed(seed)
    points, place = rounded_inputs(input_transform_of(model), X).unique(dim=0, return_inverse=True)
    votes = []
    for number, member in enumerate(members):
        posterior = member.latent_posterior(points)
        belief = Belief.of(posterior, member.outcome_scale, num_draws=posterior.component_means.shape[-1])
        votes.append(joint_draws(belief, num_samples // len(members), seed + number).argmax(0))
    share = torch.bincount(torch.cat(votes), minlength=len(points)).to(X)
    repeats = torch.bincount(place, minlength=len(points))
    return (share / share.sum() / repeats)[place]


def _means(model: Model, X: Tensor, posterior_transform: PosteriorTransform | None = None) -> Tensor:
    """The posterior means of `n x d` points."""
    with torch.no_grad():
        return PosteriorMean(model, posterior_transform=posterior_transform)(X.unsqueeze(-2))


def _check_one_output(model: Model) -> None:
    if model.num_outputs != 1:
        raise UnsupportedError(
            f"The model has {model.num_outputs} outputs: give a posterior_transform (recommend only) or a model of one "
            "utility."
        )


def _points_or_none(model: Model) -> Tensor | None:
    """The model's points before any input transform."""
    if has_transformed_inputs(model):
        return untransformed_inputs(model)
    points = getattr(model, "datapoints", None)
    if points is None:
        inputs = getattr(model, "train_inputs", None)
        points = inputs[0] if isinstance(inputs, tuple | list) and len(inputs) == 1 else inputs
    return points if isinstance(points, Tensor) and points.ndim == 2 else None
