r"""What acquisition functions are made from, for hosts that name them by class, such as Ax's modular generator.

Importing this file registers the input constructors with BoTorch: `get_acqf_input_constructor(QuantileBound)`.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.input_constructors import acqf_input_constructor, construct_inputs_best_f
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model, ModelList
from botorch.sampling.base import MCSampler
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.acquisition.analytic import (
    QuantileBound,
    SkewExpectedImprovement,
    SkewLogExpectedImprovement,
    SkewLogProbabilityOfImprovement,
    SkewProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.challenge import (
    DuelingLogExpectedImprovement,
    DuelingUpperConfidenceBound,
    HallucinatedLogExpectedImprovement,
    HallucinatedUpperConfidenceBound,
    MaximallyUncertainChallenge,
)
from botorch_skewgp.acquisition.constraints import PenalizedUpperConfidenceBound
from botorch_skewgp.acquisition.dueling import (
    DuelingThompsonSampling,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
)
from botorch_skewgp.acquisition.knowledge_gradient import DuelingKnowledgeGradient, SkewKnowledgeGradient
from botorch_skewgp.acquisition.level_sets import (
    LevelSetInformation,
    LevelSetMisclassification,
    LevelSetMisclassificationReduction,
)
from botorch_skewgp.acquisition.noisy_improvement import SkewLogNoisyExpectedImprovement
from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity
from botorch_skewgp.observations import Observation
from botorch_skewgp.protocols import members_of

CHALLENGERS: tuple[type[AcquisitionFunction], ...] = (
    DuelingLogExpectedImprovement,
    DuelingThompsonSampling,
    DuelingUpperConfidenceBound,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
    HallucinatedLogExpectedImprovement,
    HallucinatedUpperConfidenceBound,
    MaximallyUncertainChallenge,
)


def _single(model: Model) -> Model:
    """The only model of a list, which Ax makes of one model of comparisons."""
    return cast(Model, model.models[0]) if isinstance(model, ModelList) and len(model.models) == 1 else model


@acqf_input_constructor(
    SkewExpectedImprovement,
    SkewLogExpectedImprovement,
    SkewProbabilityOfImprovement,
    SkewLogProbabilityOfImprovement,
)
def construct_inputs_improvement(
    model: Model,
    training_data: SupervisedDataset | dict[Any, SupervisedDataset] | None = None,
    posterior_transform: PosteriorTransform | None = None,
    best_f: float | Tensor | None = None,
    maximize: bool = True,
) -> dict[str, Any]:
    r"""Arguments of improvement in closed form.

    Args:
        model: The model.
        training_data: The data, for the default of `best_f`.
        posterior_transform: A posterior transform.
        best_f: The value to improve on; the best value of the data if `None`.
        maximize: Whether high values are good.
    """
    return construct_inputs_best_f(
        model=_single(model),
        training_data=training_data,
        posterior_transform=posterior_transform,
        best_f=best_f,
        maximize=maximize,
    )


@acqf_input_constructor(*CHALLENGERS)
def construct_inputs_challenger(
    model: Model,
    X_reference: Tensor | None = None,
    beta: float | None = None,
    probability: float | None = None,
    k: float | None = None,
    draw: int | None = None,
    num_features: int | None = None,
    sampler: MCSampler | None = None,
    generator: torch.Generator | None = None,
) -> dict[str, Any]:
    r"""Arguments of a challenger of the best point so far.

    Args:
        model: The model.
        X_reference: The point to be challenged; that of the model's own with the largest posterior mean if `None`.
        beta: An argument of some of them, as are all that follow; their own default if `None`.
        probability: Likewise.
        k: Likewise.
        draw: Likewise.
        num_features: Likewise.
        sampler: Likewise.
        generator: Likewise.
    """
    model = _single(model)
    if X_reference is None:
        X = members_of(model, "construct_inputs_challenger")[0].datapoints
        with torch.no_grad():
            X_reference = X[PosteriorMean(model)(X.unsqueeze(-2)).argmax()]
    options = {
        "beta": beta,
        "probability": probability,
        "k": k,
        "draw": draw,
        "num_features": num_features,
        "sampler": sampler,
        "generator": generator,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return {"model": model, "X_reference": X_reference, **given}


@acqf_input_constructor(SkewBayesianActiveLearningByDisagreement)
def construct_inputs_information(
    model: Model, kind: type[Observation] | None = None, X_pending: Tensor | None = None
) -> dict[str, Any]:
    r"""Arguments of the information that an observation brings.

    Args:
        model: The model.
        kind: The kind of the observation.
        X_pending: Points whose observations are pending.
    """
    return {"model": _single(model), "kind": kind, "X_pending": X_pending}


@acqf_input_constructor(SkewKnowledgeGradient)
def construct_inputs_knowledge_gradient(
    model: Model,
    kind: type[Observation] | None = None,
    X_candidates: Tensor | None = None,
    include_points: bool = True,
) -> dict[str, Any]:
    r"""Arguments of the knowledge gradient of an observation.

    Args:
        model: The model.
        kind: The kind of the observation.
        X_candidates: Points to recommend from; the model's own if `None`.
        include_points: Whether those of the observation may be recommended too.
    """
    return {"model": _single(model), "kind": kind, "X_candidates": X_candidates, "include_points": include_points}


@acqf_input_constructor(DuelingKnowledgeGradient)
def construct_inputs_dueling_knowledge_gradient(
    model: Model, X_candidates: Tensor | None = None, include_pair: bool = True
) -> dict[str, Any]:
    r"""Arguments of the knowledge gradient of a duel.

    Args:
        model: The model.
        X_candidates: Points to recommend from; the model's own if `None`.
        include_pair: Whether the points of the pair may be recommended too.
    """
    return {"model": _single(model), "X_candidates": X_candidates, "include_pair": include_pair}


@acqf_input_constructor(SkewLogNoisyExpectedImprovement)
def construct_inputs_noisy_improvement(
    model: Model,
    X_baseline: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    samples_per_draw: int = 1,
    maximize: bool = True,
    seed: int = 0,
) -> dict[str, Any]:
    r"""Arguments of noisy expected improvement in closed form.

    Args:
        model: The model.
        X_baseline: The points to improve on; the model's own if `None`.
        posterior_transform: A posterior transform.
        samples_per_draw: As for the acquisition function.
        maximize: Whether high values are good.
        seed: The seed of the baseline's values.
    """
    model = _single(model)
    if X_baseline is None:
        X_baseline = members_of(model, "construct_inputs_noisy_improvement")[0].datapoints
    return {
        "model": model,
        "X_baseline": X_baseline,
        "posterior_transform": posterior_transform,
        "samples_per_draw": samples_per_draw,
        "maximize": maximize,
        "seed": seed,
    }


@acqf_input_constructor(QuantileBound)
def construct_inputs_quantile_bound(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    probability: float = 0.975,
    maximize: bool = True,
) -> dict[str, Any]:
    r"""Arguments of a quantile as a bound.

    Args:
        model: The model.
        posterior_transform: A posterior transform.
        probability: The quantile's probability.
        maximize: Whether high values are good.
    """
    return {
        "model": _single(model),
        "posterior_transform": posterior_transform,
        "probability": probability,
        "maximize": maximize,
    }


@acqf_input_constructor(PenalizedUpperConfidenceBound)
def construct_inputs_penalized_bound(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    validity_model: Model | None = None,
    level: float = 0.95,
    penalty: float = 1000.0,
    probability: float = 0.975,
) -> dict[str, Any]:
    r"""Arguments of a bound that is penalised where validity is not likely.

    Args:
        model: The model.
        posterior_transform: A posterior transform.
        validity_model: A model of validity; `model` if `None`.
        level: The least probability of validity.
        penalty: What is subtracted below it.
        probability: The bound's probability.
    """
    return {
        "model": _single(model),
        "validity_model": validity_model,
        "level": level,
        "penalty": penalty,
        "probability": probability,
        "posterior_transform": posterior_transform,
    }


@acqf_input_constructor(LogProbabilityOfValidity)
def construct_inputs_validity(model: Model) -> dict[str, Any]:
    r"""Arguments of the probability of validity.

    Args:
        model: The model.
    """
    return {"model": _single(model)}


@acqf_input_constructor(LevelSetMisclassification)
def construct_inputs_misclassification(
    model: Model, level: float = 0.75, kind: type[Observation] | None = None
) -> dict[str, Any]:
    r"""Arguments of the probability of misclassification.

    Args:
        model: The model.
        level: The probability of a yes that bounds the level set.
        kind: The kind of the answers.
    """
    return {"model": _single(model), "level": level, "kind": kind}


@acqf_input_constructor(LevelSetInformation, LevelSetMisclassificationReduction)
def construct_inputs_level_set(
    model: Model,
    bounds: list[tuple[float, float]] | None = None,
    level: float = 0.75,
    X_reference: Tensor | None = None,
    num_points: int = 128,
    kind: type[Observation] | None = None,
) -> dict[str, Any]:
    r"""Arguments of what an answer says about a level set.

    Args:
        model: The model.
        bounds: A lower and an upper bound for each input, for the default of `X_reference`.
        level: The probability of a yes that bounds the level set.
        X_reference: The points to be classified; if `None` Sobol points within the bounds, or without bounds those of
            the model.
        num_points: The number of Sobol points.
        kind: The kind of the answers.
    """
    model = _single(model)
    if X_reference is None:
        X_reference = members_of(model, "construct_inputs_level_set")[0].datapoints
        if bounds is not None:
            ends = torch.as_tensor(bounds).to(X_reference).mT
            X_reference = draw_sobol_samples(ends, n=num_points, q=1, seed=0).squeeze(-2)
    return {"model": model, "level": level, "X_reference": X_reference, "kind": kind}
