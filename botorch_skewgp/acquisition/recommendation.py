r"""The two questions of preferential optimisation: which pair to ask about next, and which point to recommend now.

They are different questions. A pair is asked about for what its answer may bring; a point is recommended because it is
the best to the present knowledge.

.. [Astudillo2023qeubo] R. Astudillo, Z. J. Lin, E. Bakshy, P. I. Frazier. qEUBO: a decision-theoretic acquisition
   function for preferential Bayesian optimization. AISTATS 2023.
.. [Takeno2023practical] S. Takeno, M. Nomura, M. Karasuyama. Towards practical preferential Bayesian optimization with
   skew Gaussian processes. ICML 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from botorch.acquisition.acquisition import AcquisitionFunction, OneShotAcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.objective import PosteriorTransform
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.acquisition.challenge import (
    DuelingLogExpectedImprovement,
    HallucinatedLogExpectedImprovement,
    HallucinatedUpperConfidenceBound,
    MaximallyUncertainChallenge,
)
from botorch_skewgp.acquisition.dueling import (
    DuelingAcquisitionFunction,
    DuelingThompsonSampling,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
)
from botorch_skewgp.acquisition.knowledge_gradient import DuelingKnowledgeGradient, OneShotDuelingKnowledgeGradient
from botorch_skewgp.models.inputs import as_bounds
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.models.transforms import has_transformed_inputs, untransformed_inputs

PairMethod = Literal["qeubo", "knowledge_gradient", "one_shot_knowledge_gradient", "information"]
ChallengerMethod = Literal[
    "expected_improvement",
    "hallucination_believer",
    "hallucination_believer_ucb",
    "maximally_uncertain_challenge",
    "upper_credible_bound",
    "information_gain",
    "thompson",
]
Values = Mapping[int, Sequence[float]]
DEFAULT_METHOD: ChallengerMethod = "expected_improvement"
NUM_CANDIDATES = 128  # points spread over the domain that the knowledge gradient recommends from, with the model's own
_CHALLENGERS: dict[str, type[DuelingAcquisitionFunction]] = {
    "expected_improvement": DuelingLogExpectedImprovement,
    "hallucination_believer": HallucinatedLogExpectedImprovement,
    "hallucination_believer_ucb": HallucinatedUpperConfidenceBound,
    "maximally_uncertain_challenge": MaximallyUncertainChallenge,
    "upper_credible_bound": DuelingUpperCredibleBound,
    "information_gain": ExpectedImprovementInformationGain,
    "thompson": DuelingThompsonSampling,
}


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

    Either both points are free or, with an incumbent, only its challenger is. The methods `"expected_improvement"`,
    `"hallucination_believer"` and `"hallucination_believer_ucb"` ([Takeno2023practical]_),
    `"maximally_uncertain_challenge"`, `"upper_credible_bound"`, `"information_gain"` and `"thompson"` are for
    challengers of an incumbent, by default the point of largest posterior mean among the model's own. `"qeubo"`
    ([Astudillo2023qeubo]_) finds a challenger where an incumbent is given and a pair where none is; the other methods
    find pairs.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> pair, value = next_pair(model, bounds)
        >>> pair, value = next_pair(model, bounds, method="thompson")

    Args:
        model: A model of the utility with one output; a SkewGP for all methods but `"qeubo"`.
        bounds: A `2 x d` tensor of lower and upper bounds.
        method: The name of a method, or an acquisition function: of two points, or with an incumbent of one.
        X_incumbent: A `d`-dim or `1 x d` tensor: the point that has to be in the pair.
        num_restarts: The number of starting points of `optimize_acqf`.
        raw_samples: The number of raw samples that these are chosen from.
        discrete_dims: The values that inputs may take, by their number, where their order matters: `{2: [16, 32, 64]}`.
            The least and the largest must be the bounds.
        cat_dims: Likewise where it does not.
        options: Further arguments of `optimize_acqf`, such as constraints; with discrete or categorical inputs of
            `optimize_acqf_mixed_alternating`.

    Returns:
        The pair, `2 x d`, with the incumbent, if there is one, last; and its acquisition value.

    Raises:
        InputDataError: If the bounds are not `2 x d`, the incumbent is not one point, or the method is not known.
        UnsupportedError: If the method does not go with the model, with an incumbent, or with discrete inputs.
    """
    _check_one_output(model)
    bounds = as_bounds(bounds, getattr(model, "dim", None))
    if X_incumbent is not None:
        X_incumbent = X_incumbent.detach().to(bounds)
        if X_incumbent.shape not in ((bounds.shape[1],), (1, bounds.shape[1])):
            raise InputDataError(
                f"X_incumbent must be one point of dimension {bounds.shape[1]}; got shape {tuple(X_incumbent.shape)}."
            )
        X_incumbent = X_incumbent.reshape(1, -1)
    if method is None:
        method = DEFAULT_METHOD if isinstance(model, SkewGP) else "qeubo"
    if X_incumbent is None and isinstance(method, str) and method in _CHALLENGERS:
        X_incumbent = recommend(model)[0].unsqueeze(0).to(bounds)
    acquisition = _acquisition(model, bounds, method, X_incumbent)
    q = 2 if X_incumbent is None else 1
    if isinstance(acquisition, OneShotAcquisitionFunction):
        q = acquisition.get_augmented_q_batch_size(q)
    options = options | {"num_restarts": num_restarts, "raw_samples": raw_samples}
    points, value = _optimize(acquisition, bounds, q, discrete_dims, cat_dims, options)
    return (points if X_incumbent is None else torch.cat([points, X_incumbent])), value


def _acquisition(
    model: Model, bounds: Tensor, method: str | AcquisitionFunction, X_incumbent: Tensor | None
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
    if not isinstance(model, SkewGP):
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
        return SkewBayesianActiveLearningByDisagreement(model, kind=model.likelihood.kind_of_duels)
    if method == "knowledge_gradient":
        spread = draw_sobol_samples(bounds=bounds, n=NUM_CANDIDATES, q=1, seed=0).squeeze(-2)
        return DuelingKnowledgeGradient(model, torch.cat([model.datapoints.to(bounds), spread]))
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
    over the candidates alone.

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
        InputDataError: If there are no candidates, or options are given without bounds.
        UnsupportedError: If the model has several outputs and there is no posterior transform, or has no points of
            its own that are known.
    """
    if posterior_transform is None:
        _check_one_output(model)
    mean = PosteriorMean(model, posterior_transform=posterior_transform)
    if bounds is None and options:
        raise InputDataError(f"{', '.join(options)} only has a meaning with bounds.")
    X = _own_points(model) if X_candidates is None else X_candidates
    if X.ndim != 2 or X.shape[0] == 0:
        raise InputDataError(f"X_candidates must be n x d with n of at least 1; got shape {tuple(X.shape)}.")
    if bounds is None:
        with torch.no_grad():
            values = mean(X.unsqueeze(-2))
        best = values.argmax()
        return X[best].clone(), values[best]
    bounds = as_bounds(bounds, X.shape[-1])
    inside = ((X.to(bounds) - bounds[0] >= 0) & (bounds[1] - X.to(bounds) >= 0)).all(-1)
    X = X.to(bounds)[inside]
    if discrete_dims or cat_dims:
        options = options | {"num_restarts": num_restarts, "raw_samples": raw_samples}
        feasible, best = _optimize(mean, bounds, 1, discrete_dims, cat_dims, options)
        return feasible.squeeze(-2), best
    constrained = any(name in options for name in _STARTS_ARE_CHECKED)
    if X.shape[0] and not constrained and num_restarts > 1:
        with torch.no_grad():
            start = X[mean(X.unsqueeze(-2)).argmax()]
        options["batch_initial_conditions"] = start.reshape(1, 1, -1)
    point, value = optimize_acqf(
        mean, bounds=bounds, q=1, num_restarts=num_restarts, raw_samples=raw_samples, **options
    )
    assert value is not None
    return point.squeeze(-2), value


def _optimize(
    acquisition: AcquisitionFunction,
    bounds: Tensor,
    q: int,
    discrete_dims: Values | None,
    cat_dims: Values | None,
    options: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """The best points of a domain some of whose inputs only take certain values."""
    if discrete_dims or cat_dims:
        if q > 1 and not isinstance(acquisition, qExpectedUtilityOfBestOption):
            raise UnsupportedError(
                f"{type(acquisition).__name__} chooses both points at once, which discrete_dims and cat_dims do not go "
                "with. Use qeubo or a method for challengers."
            )
        points, _ = optimize_acqf_mixed_alternating(
            acquisition, bounds=bounds, q=q, discrete_dims=discrete_dims, cat_dims=cat_dims, **options
        )
        with torch.no_grad():
            return points, acquisition(points).squeeze()
    points, value = optimize_acqf(acquisition, bounds=bounds, q=q, **options)
    assert value is not None
    return points, value


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
