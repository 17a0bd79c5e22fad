r"""The two questions of preferential optimisation: which pair to ask about next, and which point to recommend now.

They are different questions. A pair is asked about for what its answer may bring; a point is recommended because it is
the best to the present knowledge.

.. [Astudillo2023qeubo] R. Astudillo, Z. J. Lin, E. Bakshy, P. I. Frazier. qEUBO: a decision-theoretic acquisition
   function for preferential Bayesian optimization. AISTATS 2023.
.. [Benavoli2021preferential] A. Benavoli, D. Azzimonti, D. Piga. Preferential Bayesian optimisation with skew Gaussian
   processes. GECCO 2021.
.. [Fauvel2021efficient] T. Fauvel, M. Chalk. Efficient exploration in binary and preferential Bayesian optimization.
   arXiv 2110.09361, 2021.
.. [Takeno2023practical] S. Takeno, M. Nomura, M. Karasuyama. Towards practical preferential Bayesian optimization with
   skew Gaussian processes. ICML 2023.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction, OneShotAcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.objective import PosteriorTransform
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement
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
from botorch_skewgp.acquisition.search_domain import SearchDomain, Values
from botorch_skewgp.models.transforms import has_transformed_inputs, rounded_inputs, untransformed_inputs
from botorch_skewgp.observations.checks import as_tensor
from botorch_skewgp.protocols import input_transform_of, is_latent_model, kind_of_duels

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
DEFAULT_METHOD: ChallengerMethod = "expected_improvement"
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
# challengers, as they were published, of the best point of the domain instead of the best of the model's own
_CHAMPION_OF_THE_DOMAIN = ("maximally_uncertain_challenge", "upper_confidence_bound")


def next_pair(
    model: Model,
    bounds: Tensor,
    method: PairMethod | ChallengerMethod | AcquisitionFunction | None = None,
    X_incumbent: Tensor | None = None,
    num_restarts: int = 10,
    raw_samples: int = 256,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""Which pair to ask about next.

    Unless told otherwise, a challenger of the recommended point: then what is recommended has been asked about, and all
    comparisons hang together. (`"qeubo"` for models other than SkewGPs.)

    Either both points are free or, with an incumbent, only its challenger is. Methods for challengers of an incumbent,
    which by default is the point of largest posterior mean among the model's own in the domain:

    - `"expected_improvement"`, the default: by how much the challenger is expected to exceed the incumbent.
    - `"hallucination_believer"`, `"hallucination_believer_ucb"`: one draw of the data's rows is believed, then expected
      improvement or an upper confidence bound ([Takeno2023practical]_).
    - `"maximally_uncertain_challenge"`, `"upper_confidence_bound"`: MUC and dueling UCB ([Fauvel2021efficient]_); their
      default incumbent is the point of largest posterior mean in the domain.
    - `"upper_credible_bound"`, `"information_gain"`, `"thompson"`: those of [Benavoli2021preferential]_.

    Methods for pairs: `"qeubo"` ([Astudillo2023qeubo]_; with an incumbent, for its challenger),
    `"knowledge_gradient"` among known points and some of the domain, `"one_shot_knowledge_gradient"` over the domain,
    and `"information"`, which learns the utility everywhere. Such pairs are of new points, which no comparison links to
    others: let the recommended point duel with a challenger before you rely on it.

    Inputs that only take certain values get such values: where the model's input transform rounds (BoTorch's `Round`),
    and where `discrete_dims` or `cat_dims` say so. The search is in the unit cube, and by logarithms of the inputs of
    which the model takes the logarithm (BoTorch's `Log10`), unless an option speaks of points, such as constraints.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> pair, value = next_pair(model, bounds)
        >>> pair, value = next_pair(model, bounds, method="thompson")
        >>> pair, value = next_pair(model, bounds, discrete_dims={1: [0.0, 0.25, 1.0]})

    Args:
        model: A model of the utility with one output; a SkewGP, or an ensemble of these, for all methods but `"qeubo"`.
        bounds: A `2 x d` tensor of lower and upper bounds.
        method: The name of a method, or an acquisition function: of two points, or with an incumbent of one.
        X_incumbent: A `d`-dim or `1 x d` tensor: the point that has to be in the pair.
        num_restarts: The number of starting points of `optimize_acqf`.
        raw_samples: The number of raw samples that these are chosen from.
        discrete_dims: The values that inputs may take, by their number, where their order matters: `{2: [16, 32, 64]}`.
            The least and the largest must be the bounds.
        cat_dims: Likewise where it does not.
        options: Further arguments of `optimize_acqf`, such as constraints; with discrete or categorical inputs of
            `optimize_acqf_mixed_alternating`. They bind the points that are searched for, not an incumbent.

    Returns:
        The pair, `2 x d`, with the incumbent, if there is one, last; and its acquisition value.

    Raises:
        InputDataError: If the bounds are not `2 x d`, the model rounds them to values beyond, the values that inputs
            may take do not fit them, the incumbent is not one point, or the method is not known.
        UnsupportedError: If the method does not go with the model, with an incumbent, or with discrete inputs.
    """
    _check_one_output(model)
    domain = SearchDomain.build(model, bounds, discrete_dims, cat_dims, getattr(model, "datapoints", None))
    bounds = domain.bounds
    options = options | {"num_restarts": num_restarts, "raw_samples": raw_samples}
    if X_incumbent is not None:
        X_incumbent = as_tensor(X_incumbent, "X_incumbent").to(bounds)
        if X_incumbent.shape not in ((bounds.shape[1],), (1, bounds.shape[1])) or not X_incumbent.isfinite().all():
            raise InputDataError(
                f"X_incumbent must be one finite point of dimension {bounds.shape[1]}; got {X_incumbent.tolist()}."
            )
        X_incumbent = X_incumbent.reshape(1, -1)
    if method is None:
        method = DEFAULT_METHOD if is_latent_model(model) else "qeubo"
    if X_incumbent is None and isinstance(method, str) and method in _CHALLENGERS:
        X_incumbent = _incumbent(model, domain, method in _CHAMPION_OF_THE_DOMAIN, options).reshape(1, -1)
    acquisition = _acquisition(model, domain, method, X_incumbent)
    q = 2 if X_incumbent is None else 1
    if isinstance(acquisition, OneShotAcquisitionFunction):
        q = acquisition.get_augmented_q_batch_size(q)
    points, value = domain.optimize(acquisition, q, **options)
    return (points if X_incumbent is None else torch.cat([points, X_incumbent])), value


def _incumbent(model: Model, domain: SearchDomain, anywhere: bool, options: dict[str, Any]) -> Tensor:
    """The point of largest posterior mean: anywhere in the domain, or among those of the model's own that are in it."""
    own = _own_points(model).to(domain.bounds)
    own = own[domain.contains(own)]
    if anywhere or not len(own):
        return _best(model, domain, domain.rounded(own), None, options)[0]
    return rounded_inputs(input_transform_of(model), own[_means(model, own).argmax()])


def _acquisition(
    model: Model, domain: SearchDomain, method: str | AcquisitionFunction, X_incumbent: Tensor | None
) -> AcquisitionFunction:
    """The acquisition function of a method, of two points or with an incumbent of one."""
    if isinstance(method, AcquisitionFunction):
        return method
    if method == "qeubo":
        return qExpectedUtilityOfBestOption(model, X_pending=X_incumbent)
    pairs = ("knowledge_gradient", "one_shot_knowledge_gradient", "information")
    if method not in pairs and method not in _CHALLENGERS:
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
        spread = domain.spread(NUM_CANDIDATES)
        return DuelingKnowledgeGradient(model, torch.cat([_own_points(model).to(spread), spread]))
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
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""Which point to recommend now: the one of largest posterior mean.

    With bounds the mean is maximised over the domain, starting among others from the best of the candidates; without,
    over the candidates alone. Among a model's own points, `UndecidedRecommendationWarning` says where comparisons fall
    apart into groups and a point of another group is as good a recommendation.

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
        options: Further arguments of `optimize_acqf`, such as constraints or fixed features; they need bounds. With
            discrete or categorical inputs, of `optimize_acqf_mixed_alternating`.

    Returns:
        The point, `d`, and its posterior mean.

    Raises:
        InputDataError: If there are no candidates, options are given without bounds, the model rounds the bounds to
            values beyond them, or the values that inputs may take do not fit the bounds.
        UnsupportedError: If the model has several outputs and there is no posterior transform, or has no points of
            its own that are known.
    """
    if posterior_transform is None:
        _check_one_output(model)
    if bounds is None and options:
        raise InputDataError(f"{', '.join(options)} only has a meaning with bounds.")
    X = _own_points(model) if X_candidates is None else as_tensor(X_candidates, "X_candidates")
    X = X.to(
        getattr(model, "datapoints", X)
    )  # BoTorch's analytic functions would turn the model into the points' dtype
    if X.ndim != 2 or X.shape[0] == 0:
        raise InputDataError(f"X_candidates must be n x d with n of at least 1; got shape {tuple(X.shape)}.")
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
    """The point of largest posterior mean in a domain, not below the best of some points of it; and its mean."""
    found = []
    if len(known) and not any(name in options for name in _STARTS_ARE_CHECKED):
        values = _means(model, known, posterior_transform)
        found = [(known[values.argmax()], values.max())]
        if not (domain.discrete_dims or domain.cat_dims) and options["num_restarts"] > 1:
            options = options | {"batch_initial_conditions": found[0][0].reshape(1, 1, -1)}
    point, value = domain.optimize(PosteriorMean(model, posterior_transform=posterior_transform), 1, **options)
    if found and value <= found[0][1] + ROUNDING * found[0][1].abs():  # a search ends beside what is as good
        return found[0]
    return point.squeeze(-2), value


def _means(model: Model, X: Tensor, posterior_transform: PosteriorTransform | None = None) -> Tensor:
    """The posterior means of `n x d` points."""
    with torch.no_grad():
        return PosteriorMean(model, posterior_transform=posterior_transform)(X.unsqueeze(-2))


# with these, or with starts of the user's own, the best candidate need not be a valid start
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
    """The points that a model was given, before any input transform."""
    if has_transformed_inputs(model):
        return untransformed_inputs(model)
    points = getattr(model, "datapoints", None)
    if points is None:
        inputs = getattr(model, "train_inputs", None)
        points = inputs[0] if isinstance(inputs, tuple | list) and len(inputs) == 1 else inputs
    if not isinstance(points, Tensor) or points.ndim != 2:
        raise UnsupportedError(f"{type(model).__name__} has no single set of points of its own; give X_candidates.")
    return points
