r"""The pair or choice to ask about next, for its expected value.

.. [Astudillo2023qeubo] Astudillo et al. qEUBO. AISTATS 2023.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.acquisition.closed_forms import ExpectedMaximumOfPair
from botorch_skewgp.acquisition.dueling import (
    MAX_PENDING,
    DuelingAcquisitionFunction,
    DuelingLogExpectedImprovement,
    qExpectedUtilityAfterDuels,
)
from botorch_skewgp.acquisition.model_points import (
    STARTS_ARE_CHECKED,
    check_one_output,
    checked_options,
    points_of,
    posterior_means,
)
from botorch_skewgp.acquisition.rounding import rounded_inputs
from botorch_skewgp.acquisition.search_domain import SearchDomain, Values, search_space
from botorch_skewgp.checks import MAX_OPTIONS, as_count
from botorch_skewgp.protocols import for_judge, input_transform_of, is_latent_model, kind_of_duels, members_of
from botorch_skewgp.rows import first_of_equal

PairMethod = Literal["expected_improvement", "information"]
MAX_PAIRS = MAX_PENDING + 1  # at once


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

    By default the pair with the largest expected utility of the better point (qEUBO, [Astudillo2023qeubo]_), which is
    exact for a SkewGP without judges in a domain without lists of values, and else an average over samples; of a list,
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
    search = checked_options(options, num_restarts, raw_samples)
    options |= {"discrete_dims": discrete_dims, "cat_dims": cat_dims}
    model, space = _model_and_space(model, judge, bounds, X_candidates, options)
    if num_pairs is None:
        return _next_points(model, space, 2, method, search)
    if method is not None:
        pair, value = _next_points(model, space, 2, method, search)
        return pair.unsqueeze(0), value.unsqueeze(0)
    # the first pair of a domain is that of a single one, whose search has better starts
    pending = space.new_empty(0, 2, space.shape[-1]) if isinstance(space, Tensor) else None
    pairs, values = list[Tensor](), list[Tensor]()
    for _ in range(num):
        pair, value = _next_points(model, space, 2, None, search, pending)
        pairs.append(pair.detach())
        values.append(value)
        pending = torch.stack(pairs)
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
    search = checked_options(options, num_restarts, raw_samples)
    options |= {"discrete_dims": discrete_dims, "cat_dims": cat_dims}
    model, space = _model_and_space(model, judge, bounds, X_candidates, options)
    return _next_points(model, space, num_options, None, search)


def _model_and_space(
    model: Model, judge: int | str | None, bounds: Any, X_candidates: Any, options: dict[str, Any]
) -> tuple[Model, SearchDomain | Tensor]:
    """The model for a judge, and the domain or the different candidates."""
    model = for_judge(model, judge)
    check_one_output(model)
    space = search_space(model, bounds, X_candidates, points_of(model), **options)
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
    pending: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`num` different points to ask about together, beside pending pairs, `m x 2 x d`; `num x d`, and their value."""
    acquisition: AcquisitionFunction
    is_pair_of_domain = num == 2 and isinstance(space, SearchDomain) and not space.has_values
    if method is None and pending is not None:
        acquisition = qExpectedUtilityAfterDuels(model, pending)
    elif method is None and isinstance(space, Tensor) and num == 2 and is_latent_model(model):
        acquisition = _challenge(model, space, search)
    elif method is None and is_pair_of_domain and ExpectedMaximumOfPair.takes(model):
        acquisition = ExpectedMaximumOfPair(model)
    elif method is None:
        acquisition = qExpectedUtilityOfBestOption(model)
    else:
        acquisition = _acquisition_of_method(model, space, method, search)
    incumbent: Tensor | None = None
    if isinstance(acquisition, DuelingAcquisitionFunction):
        incumbent = acquisition.X_reference.to(space if isinstance(space, Tensor) else space.bounds)
    if isinstance(space, Tensor):
        return _next_of_pool(acquisition, space, num, incumbent, pending, in_turn=method is None)
    if isinstance(acquisition, qExpectedUtilityOfBestOption | ExpectedMaximumOfPair):
        search = search | _starts(acquisition, space, num, search)
    points, value = space.optimize(acquisition, num if incumbent is None else num - 1, **search)
    points, value = space.made_different(acquisition, points, value, incumbent, pending, search)
    return (points if incumbent is None else torch.cat([points, incumbent])), value


def _acquisition_of_method(
    model: Model, space: SearchDomain | Tensor, method: Any, search: dict[str, Any]
) -> AcquisitionFunction:
    """The acquisition function of a method that is given; raises `InputDataError` or `UnsupportedError`."""
    if isinstance(method, AcquisitionFunction):
        return method
    if method not in get_args(PairMethod):
        raise InputDataError(
            "method must be 'expected_improvement', 'information', an acquisition function or None; got "
            f"{method!r}. Other challengers are in botorch_skewgp.papers.dueling."
        )
    if not is_latent_model(model):
        raise UnsupportedError(f"The method {method!r} needs a SkewGP; got {type(model).__name__}. Leave it out.")
    if method == "information":
        return SkewBayesianActiveLearningByDisagreement(model, kind=kind_of_duels(model, "next_pair"))
    return _challenge(model, space, search)


def _challenge(model: Model, space: SearchDomain | Tensor, search: dict[str, Any]) -> DuelingLogExpectedImprovement:
    """Improvement over the point of largest posterior mean, of a list or of the model's own in a domain."""
    if isinstance(space, Tensor):
        return DuelingLogExpectedImprovement(model, space[posterior_means(model, space).argmax()])
    own = members_of(model, "next_pair")[0].datapoints.to(space.bounds)
    own = own[space.contains(own)]
    if not len(own):
        best, _ = space.optimize(PosteriorMean(model), 1, **search)
    else:
        best = own[posterior_means(model, own).argmax()].unsqueeze(0)
        best = rounded_inputs(input_transform_of(model), best)
    return DuelingLogExpectedImprovement(model, best)


@torch.no_grad()
def _next_of_pool(
    acquisition: AcquisitionFunction,
    pool: Tensor,
    num: int,
    incumbent: Tensor | None,
    pending: Tensor | None,
    in_turn: bool,
) -> tuple[Tensor, Tensor]:
    """The best points of a pool: beside an incumbent or pending pairs if there are any, in turn, or as pairs."""
    counted = "" if incumbent is None else ", the incumbent counted"
    others = pool if incumbent is None else _without(pool, incumbent)
    num_others = num if incumbent is None else num - 1
    if len(others) < num_others:
        raise InputDataError(f"X_candidates must hold at least {num} different points{counted}; got {pool.tolist()}.")
    if pending is not None:
        # a pair in turn: its first point is then that of an incumbent, beside which no pending pair is asked again
        incumbent = _first_of_pair(acquisition, pool, pending)
        acquisition.set_X_pending(incumbent)
        partners = pending.flip(1)[(pending == incumbent).all(-1)]
        others = _without(pool, torch.cat([incumbent, partners]))
        num_others = 1
    if incumbent is None and not in_turn:
        sets = pool[torch.combinations(torch.arange(len(pool), device=pool.device))]
        chosen, values = select_from_pool(acquisition, sets)
        return sets[chosen[0]], values[0]
    chosen, values = select_from_pool(acquisition, others, num_others)
    points = others[chosen]
    return (points if incumbent is None else torch.cat([points, incumbent])), values[-1]


def _first_of_pair(acquisition: AcquisitionFunction, pool: Tensor, pending: Tensor) -> Tensor:
    """The first point of one more pair of a pool, `1 x d`; raises `InputDataError` if all pairs are pending."""
    num_pairs = len(pool) * (len(pool) - 1) // 2
    if len(pending) >= num_pairs:
        raise InputDataError(
            f"There are {num_pairs} different pair(s) of X_candidates; ask for no more of them, or give more points."
        )
    num_pending = (pool[:, None, None] == pending).all(-1).sum((-1, -2))
    free = pool[num_pending < len(pool) - 1]
    chosen, _ = select_from_pool(acquisition, free)
    return free[chosen]


def _without(pool: Tensor, others: Tensor) -> Tensor:
    return pool[(pool.unsqueeze(1) != others).any(-1).all(-1)]


@torch.no_grad()
def _starts(acquisition: AcquisitionFunction, domain: SearchDomain, num: int, search: dict[str, Any]) -> dict[str, Any]:
    """Options for which half of the searches start from the best known point and others at all distances from it."""
    # BoTorch's starts are far apart; with several inputs and many answers the pairs worth asking lie together
    X = points_of(acquisition.model)
    if X is None or not STARTS_ARE_CHECKED.isdisjoint(search) or domain.has_values:
        return {}
    X = X.to(domain.bounds)
    own = domain.rounded(X[domain.contains(X)])
    if not len(own):
        return {}
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
