r"""The pair or choice to ask about next, for its expected value, and the point to recommend now, the best so far.

.. [Astudillo2023qeubo] R. Astudillo, Z. J. Lin, E. Bakshy, P. I. Frazier. qEUBO: a decision-theoretic acquisition
   function for preferential Bayesian optimization. AISTATS 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction, OneShotAcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.objective import PosteriorTransform
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement, select_from_pool
from botorch_skewgp.acquisition.challenge import (
    DuelingLogExpectedImprovement,
    DuelingUpperConfidenceBound,
    HallucinatedLogExpectedImprovement,
    HallucinatedUpperConfidenceBound,
    MaximallyUncertainChallenge,
)
from botorch_skewgp.acquisition.comparison_groups import warn_if_undecided
from botorch_skewgp.acquisition.dueling import (
    DuelingAcquisitionFunction,
    DuelingThompsonSampling,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
)
from botorch_skewgp.acquisition.knowledge_gradient import (
    DuelingKnowledgeGradient,
    OneShotDuelingKnowledgeGradient,
)
from botorch_skewgp.acquisition.search_domain import OPTIONS, SearchDomain, Values, as_points
from botorch_skewgp.models.transforms import has_transformed_inputs, rounded_inputs, untransformed_inputs
from botorch_skewgp.observations.checks import MAX_OPTIONS, as_count, as_tensor, check_class
from botorch_skewgp.protocols import KnowsJudges, input_transform_of, is_latent_model, kind_of_duels

PairMethod = Literal["qeubo", "knowledge_gradient", "one_shot_knowledge_gradient", "information"]
ChallengerMethod = Literal[
    "expected_improvement",
    "hallucination_believer",
    "hallucination_believer_ucb",
    "maximally_uncertain_challenge",
    "upper_confidence_bound",
    "upper_credible_bound",
    "information_gain",
    "thompson",
]
NUM_CANDIDATES = 128  # points spread over the domain that the knowledge gradient recommends from, with the model's own
ROUNDING = 1e-10  # of a posterior mean
_CHALLENGERS: dict[str, type[DuelingAcquisitionFunction]] = {
    "expected_improvement": DuelingLogExpectedImprovement,
    "hallucination_believer": HallucinatedLogExpectedImprovement,
    "hallucination_believer_ucb": HallucinatedUpperConfidenceBound,
    "maximally_uncertain_challenge": MaximallyUncertainChallenge,
    "upper_confidence_bound": DuelingUpperConfidenceBound,
    "upper_credible_bound": DuelingUpperCredibleBound,
    "information_gain": ExpectedImprovementInformationGain,
    "thompson": DuelingThompsonSampling,
}
# published as challengers of the best point of the domain, not of the best of the model's own
_CHAMPION_OF_THE_DOMAIN = ("maximally_uncertain_challenge", "upper_confidence_bound")


def next_pair(
    model: Model,
    bounds: Tensor | None = None,
    method: PairMethod | ChallengerMethod | AcquisitionFunction | None = None,
    X_incumbent: Tensor | None = None,
    num_restarts: int = 10,
    raw_samples: int = 256,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    X_candidates: Tensor | None = None,
    judge: int | str | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The pair to ask about next, from a domain or from a list of candidates.

    By default the pair with the largest expected utility of the better point (qEUBO, [Astudillo2023qeubo]_). With an
    incumbent that is its challenger with the largest expected improvement; of a list, the challenger of the point of
    largest posterior mean, which is qEUBO one point after the other. The page "Which method should I choose?" of the
    documentation has a table of the methods.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> pair, value = next_pair(model, bounds)
        >>> pair, value = next_pair(model, bounds, method="thompson")
        >>> pair, value = next_pair(model, X_candidates=pool)
        >>> pair, value = next_pair(model, bounds, discrete_dims={1: [0.0, 0.25, 1.0]})

    Args:
        model: A model of the utility with one output; a SkewGP, or an ensemble of these, for all methods but `"qeubo"`.
        bounds: A `2 x d` tensor of lower and upper bounds; `None` with candidates.
        method: The name of a method, or an acquisition function: of two points, or with an incumbent of one.
        X_incumbent: A `d`-dim or `1 x d` tensor: a point that must be in the pair.
        num_restarts: The number of starting points of `optimize_acqf`.
        raw_samples: The number of raw samples that these are chosen from.
        discrete_dims: The values that inputs may take, by their number, where their order matters: `{2: [16, 32, 64]}`.
            The least and the largest must be the bounds.
        cat_dims: Likewise where it does not.
        X_candidates: An `n x d` tensor of points to choose from instead of a domain; methods for pairs evaluate all
            `n (n - 1) / 2` of them.
        judge: The judge to ask, as in `SkewGP.posterior`; `None` for the utility that all judges share.
        options: Further arguments of `optimize_acqf`, such as constraints; with discrete or categorical inputs of
            `optimize_acqf_mixed_alternating`. They do not apply to an incumbent.

    Returns:
        The pair, `2 x d`, with the incumbent, if there is one, last; and its acquisition value.

    Raises:
        InputDataError: If the bounds are not `2 x d`, they or fixed features leave one point, the model rounds them to
            values beyond, the values that inputs may take do not fit them, there are both bounds and candidates or
            neither, the incumbent is not one point, there are not two different finite candidates, or the method or an
            option is not known.
        UnsupportedError: If the method does not go with the model, with an incumbent, with candidates, or with discrete
            inputs, or the model has no judges.
    """
    model = _for_judge(model, judge)
    _check_one_output(model)
    _check_options(num_restarts, raw_samples, options)
    if (bounds is None) == (X_candidates is None):
        raise InputDataError("Give either bounds, to search a domain, or X_candidates, to choose from a list.")
    domain: SearchDomain | Tensor
    if bounds is None:
        domain = like = _pool(model, X_candidates, options | {"discrete_dims": discrete_dims, "cat_dims": cat_dims}, 2)
    else:
        domain = SearchDomain.build(model, bounds, discrete_dims, cat_dims, _points_or_none(model))
        domain.check_choice(options)
        like = domain.bounds
    options = options | {"num_restarts": num_restarts, "raw_samples": raw_samples}
    if X_incumbent is not None:
        X_incumbent = as_tensor(X_incumbent, "X_incumbent").to(like)
        d = like.shape[1]
        if X_incumbent.shape not in ((d,), (1, d)) or not X_incumbent.isfinite().all():
            raise InputDataError(f"X_incumbent must be one finite point of dimension {d}; got {X_incumbent.tolist()}.")
        X_incumbent = X_incumbent.reshape(1, -1)
    if method is None:
        challenges = is_latent_model(model) and (X_incumbent is not None or isinstance(domain, Tensor))
        method = "expected_improvement" if challenges else "qeubo"
    if X_incumbent is None and isinstance(method, str) and method in _CHALLENGERS:
        if isinstance(domain, Tensor):
            X_incumbent = domain[_means(model, domain).argmax()].reshape(1, -1)
        else:
            X_incumbent = _incumbent(model, domain, method in _CHAMPION_OF_THE_DOMAIN, options).reshape(1, -1)
    acquisition = _acquisition(model, domain, method, X_incumbent)
    if isinstance(domain, Tensor):
        points, value = _best_of_pool(acquisition, domain, X_incumbent)
    else:
        q = 2 if X_incumbent is None else 1
        if isinstance(acquisition, OneShotAcquisitionFunction):
            q = acquisition.get_augmented_q_batch_size(q)
        points, value = domain.optimize(acquisition, q, **options)
    return (points if X_incumbent is None else torch.cat([points, X_incumbent])), value


def next_choice(
    model: Model,
    bounds: Tensor | None = None,
    num_options: int = 3,
    X_candidates: Tensor | None = None,
    num_restarts: int = 10,
    raw_samples: int = 256,
    judge: int | str | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The options of the next choice to ask for: those with the largest expected utility of the best one (qEUBO).

    With two options that is one-step optimal; with more it is the same criterion ([Astudillo2023qeubo]_).

    Example:
        >>> model = SkewGP(train_X, Choice([[0, 1, 2], [3, 0, 4]]))
        >>> options, value = next_choice(model, bounds, num_options=3)

    Args:
        model: A model of the utility with one output.
        bounds: A `2 x d` tensor of lower and upper bounds; `None` with candidates.
        num_options: The number of options, 2 to 100.
        X_candidates: An `n x d` tensor of points to choose from instead of a domain, one option after the other.
        num_restarts: The number of starting points of `optimize_acqf`.
        raw_samples: The number of raw samples that these are chosen from.
        judge: The judge to ask, as in `next_pair`.
        options: Further arguments of `optimize_acqf`.

    Returns:
        The options, `num_options x d`, and the expected utility of the best of them.

    Raises:
        InputDataError: If there are fewer than two options, both bounds and candidates or neither, fewer different
            candidates than options, the bounds do not fit the model, or they or fixed features leave one point.
        UnsupportedError: If a judge is named and the model has none.
    """
    model = _for_judge(model, judge)
    _check_one_output(model)
    _check_options(num_restarts, raw_samples, options)
    as_count(num_options, "num_options", most=MAX_OPTIONS)
    if (bounds is None) == (X_candidates is None):
        raise InputDataError("Give either bounds, to search a domain, or X_candidates, to choose from a list.")
    acquisition = qExpectedUtilityOfBestOption(model)
    if bounds is None:
        pool = _pool(model, X_candidates, options, num_options)
        chosen, values = select_from_pool(acquisition, pool, num_options)
        return pool[chosen], values[-1]
    domain = SearchDomain.build(model, bounds, None, None, _points_or_none(model))
    domain.check_choice(options)
    return domain.optimize(acquisition, num_options, num_restarts=num_restarts, raw_samples=raw_samples, **options)


def _for_judge(model: Model, judge: int | str | Sequence[int | str] | None) -> Model:
    """The model for a judge, or for several."""
    check_class(model, "model", Model)
    if judge is None:
        return model
    if not isinstance(model, KnowsJudges):
        raise UnsupportedError(f"{type(model).__name__} has no judges; leave judge out, or give a SkewGP.")
    return model.for_judge(judge)


def _check_options(num_restarts: int, raw_samples: int, options: dict[str, Any]) -> None:
    """Raise for options that BoTorch's own errors do not name."""
    as_count(num_restarts, "num_restarts", least=1)
    as_count(raw_samples, "raw_samples", least=1)
    if "X_pending" in options:
        raise InputDataError(
            "X_pending is not supported: questions are asked one at a time. For several questions at once "
            "give an acquisition function with pending points as the method."
        )
    unknown = sorted(options.keys() - OPTIONS)
    if unknown and "ic_generator" not in options:
        raise InputDataError(f"optimize_acqf has no argument {', '.join(unknown)}; leave it out.")


def _pool(model: Model, X_candidates: Any, options: dict[str, Any], least: int) -> Tensor:
    """The candidates in the model's dtype; raises if there are too few, or options that need a domain."""
    given = sorted(name for name, value in options.items() if value is not None)
    if given:
        raise InputDataError(f"{', '.join(given)} only has a meaning with bounds.")
    X = _candidates(model, X_candidates)
    if len(X.unique(dim=0)) < least:
        raise InputDataError(f"X_candidates must hold at least {least} different points; got {X.tolist()}.")
    return X


def _candidates(model: Model, X_candidates: Any) -> Tensor:
    """Candidates in the model's dtype, as BoTorch's analytic functions would move the model to theirs."""
    return as_points(X_candidates, _points_or_none(model), "X_candidates")


@torch.no_grad()
def _best_of_pool(acquisition: AcquisitionFunction, pool: Tensor, X_incumbent: Tensor | None) -> tuple[Tensor, Tensor]:
    """The best pair of a pool, or the best challenger in it of an incumbent."""
    if X_incumbent is None:
        sets = pool[torch.combinations(torch.arange(len(pool), device=pool.device))]
    else:
        sets = pool[(pool != X_incumbent).any(-1)].unsqueeze(-2)
    chosen, values = select_from_pool(acquisition, sets)
    return sets[chosen[0]], values[0]


def _incumbent(model: Model, domain: SearchDomain, anywhere: bool, options: dict[str, Any]) -> Tensor:
    """The point of largest posterior mean: anywhere in the domain, or among the model's own in it."""
    own = _own_points(model).to(domain.bounds)
    own = own[domain.contains(own)]
    if anywhere or not len(own):
        return _best(model, domain, domain.rounded(own), None, options)[0]
    return rounded_inputs(input_transform_of(model), own[_means(model, own).argmax()])


def _acquisition(
    model: Model, domain: SearchDomain | Tensor, method: str | AcquisitionFunction, X_incumbent: Tensor | None
) -> AcquisitionFunction:
    """The acquisition function of a method, of two points or with an incumbent of one, for a domain or a pool."""
    if isinstance(method, AcquisitionFunction):
        return method
    if method == "qeubo":
        return qExpectedUtilityOfBestOption(model, X_pending=X_incumbent)
    pairs = ("knowledge_gradient", "one_shot_knowledge_gradient", "information")
    if method not in (*pairs, *_CHALLENGERS):
        known = ", ".join(["qeubo", *pairs, *_CHALLENGERS])
        raise InputDataError(f"method must be an acquisition function or one of {known}; got {method!r}.")
    if not is_latent_model(model):
        raise UnsupportedError(f"The method {method!r} needs a SkewGP; got {type(model).__name__}. Use 'qeubo'.")
    if method in _CHALLENGERS:
        assert X_incumbent is not None
        return _CHALLENGERS[method](model, X_incumbent)
    if X_incumbent is not None:
        raise UnsupportedError(
            f"The method {method!r} chooses both points of a pair. With an incumbent use one of qeubo, "
            f"{', '.join(_CHALLENGERS)}."
        )
    if method == "information":
        return SkewBayesianActiveLearningByDisagreement(model, kind=kind_of_duels(model, "next_pair"))
    if method == "knowledge_gradient":
        spread = domain if isinstance(domain, Tensor) else domain.spread(NUM_CANDIDATES)
        return DuelingKnowledgeGradient(model, torch.cat([_own_points(model).to(spread), spread]))
    if isinstance(domain, Tensor):
        raise UnsupportedError(f"The method {method!r} searches a domain; give bounds, or use 'knowledge_gradient'.")
    return OneShotDuelingKnowledgeGradient(model)


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

    Args:
        model: A model with one output (or several, with a posterior transform to one).
        bounds: A `2 x d` tensor of lower and upper bounds.
        X_candidates: An `n x d` tensor of points to recommend from; the model's own points if `None`.
        posterior_transform: A posterior transform.
        num_restarts: The number of starting points of `optimize_acqf`.
        raw_samples: The number of raw samples that these are chosen from.
        discrete_dims: The values that inputs may take, by their number, where their order matters: `{2: [16, 32, 64]}`.
            The least and the largest must be the bounds.
        cat_dims: Likewise where it does not.
        judge: The judge or judges to recommend to, as in `SkewGP.posterior`; `None` for the utility that all share.
            Several need a posterior transform that weights their utilities.
        options: Further arguments of `optimize_acqf`, such as constraints or fixed features; they need bounds. With
            discrete or categorical inputs, of `optimize_acqf_mixed_alternating`.

    Returns:
        The point, `d`, and its posterior mean.

    Raises:
        InputDataError: If there are no candidates or one is not finite, options are given without bounds, the model
            rounds the bounds to values beyond them, or the values that inputs may take do not fit the bounds.
        UnsupportedError: If the model has several outputs and there is no posterior transform, no known points of its
            own, or no judges.
    """
    model = _for_judge(model, judge)
    if posterior_transform is None:
        _check_one_output(model)
    if bounds is None and options:
        raise InputDataError(f"{', '.join(options)} only has a meaning with bounds.")
    _check_options(num_restarts, raw_samples, options)
    X = _candidates(model, _own_points(model) if X_candidates is None else X_candidates)
    if bounds is None:
        values = _means(model, X, posterior_transform)
        if X_candidates is None:
            warn_if_undecided(model, values)
        best = values.argmax()
        return rounded_inputs(input_transform_of(model), X[best].clone()), values[best]
    domain = SearchDomain.build(model, bounds, discrete_dims, cat_dims, X)
    known = domain.rounded(X[domain.contains(X)])
    return _best(
        model, domain, known, posterior_transform, options | {"num_restarts": num_restarts, "raw_samples": raw_samples}
    )


def _best(
    model: Model,
    domain: SearchDomain,
    known: Tensor,
    posterior_transform: PosteriorTransform | None,
    options: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """The point of largest posterior mean in a domain, at least as good as the known points; and its mean."""
    found = []
    if len(known) and not any(name in options for name in _STARTS_ARE_CHECKED):
        values = _means(model, known, posterior_transform)
        found = [(known[values.argmax()], values.max())]
        if not (domain.discrete_dims or domain.cat_dims) and options["num_restarts"] > 1:
            options = options | {"batch_initial_conditions": found[0][0].reshape(1, 1, -1)}
    point, value = domain.optimize(PosteriorMean(model, posterior_transform=posterior_transform), 1, **options)
    if found and value <= found[0][1] + ROUNDING * found[0][1].abs():  # the search may end beside it
        return found[0]
    return point.squeeze(-2), value


def _means(model: Model, X: Tensor, posterior_transform: PosteriorTransform | None = None) -> Tensor:
    """The posterior means of `n x d` points."""
    with torch.no_grad():
        return PosteriorMean(model, posterior_transform=posterior_transform)(X.unsqueeze(-2))


# with these options the best candidate need not be a valid start
_STARTS_ARE_CHECKED = (
    "batch_initial_conditions",
    "equality_constraints",
    "fixed_features",
    "ic_generator",
    "inequality_constraints",
    "nonlinear_inequality_constraints",
)


def _check_one_output(model: Model) -> None:
    if model.num_outputs != 1:
        raise UnsupportedError(
            f"The model has {model.num_outputs} outputs: give a posterior_transform (recommend only) or a model of one "
            "utility."
        )


def _own_points(model: Model) -> Tensor:
    """The model's points before any input transform."""
    points = _points_or_none(model)
    if points is None:
        raise UnsupportedError(f"{type(model).__name__} has no single set of points of its own; give X_candidates.")
    return points


def _points_or_none(model: Model) -> Tensor | None:
    if has_transformed_inputs(model):
        return untransformed_inputs(model)
    points = getattr(model, "datapoints", None)
    if points is None:
        inputs = getattr(model, "train_inputs", None)
        points = inputs[0] if isinstance(inputs, tuple | list) and len(inputs) == 1 else inputs
    return points if isinstance(points, Tensor) and points.ndim == 2 else None
