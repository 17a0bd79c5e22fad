r"""Input constructors of acquisition functions, for hosts that name them by class, such as Ax's modular generator.

Importing this file registers them with BoTorch: `get_acqf_input_constructor(QuantileBound)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.input_constructors import acqf_input_constructor, construct_inputs_best_f
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model, ModelList
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.acquisition.analytic import (
    QuantileBound,
    SkewLogExpectedImprovement,
    SkewLogNoisyExpectedImprovement,
    SkewLogProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.dueling import DuelingAcquisitionFunction, DuelingLogExpectedImprovement
from botorch_skewgp.acquisition.information_at_points import LevelSetInformation, PredictiveInformation
from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity
from botorch_skewgp.observations import Observation
from botorch_skewgp.protocols import members_of

DEFAULT_LEVEL = 0.75  # probability of a yes that bounds a level set


def _single(model: Model) -> Model:
    """The model of a list of one, which Ax makes for comparisons."""
    return cast(Model, model.models[0]) if isinstance(model, ModelList) and len(model.models) == 1 else model


@acqf_input_constructor(SkewLogExpectedImprovement, SkewLogProbabilityOfImprovement)
def construct_inputs_improvement(
    model: Model,
    training_data: SupervisedDataset | dict[Any, SupervisedDataset] | None = None,
    posterior_transform: PosteriorTransform | None = None,
    best_f: float | Tensor | None = None,
    maximize: bool = True,
) -> dict[str, Any]:
    r"""Arguments of improvement in closed form."""
    return construct_inputs_best_f(
        model=_single(model),
        training_data=training_data,
        posterior_transform=posterior_transform,
        best_f=best_f,
        maximize=maximize,
    )


def register(*acquisitions: type[AcquisitionFunction], **defaults: Callable[[Model], Any]) -> None:
    r"""Register acquisition functions with their own arguments; defaults are functions of the model, by name."""
    for acquisition in acquisitions:

        def construct_inputs(model: Model, **options: Any) -> dict[str, Any]:
            model = _single(model)
            given = {name: value for name, value in options.items() if value is not None}
            computed = {name: default(model) for name, default in defaults.items() if name not in given}
            return {"model": model, **computed, **given}

        construct_inputs.__signature__ = inspect.signature(acquisition)  # type: ignore[attr-defined]
        acqf_input_constructor(acquisition)(construct_inputs)


def _own_points(model: Model) -> Tensor:
    return members_of(model, "An acquisition function by name")[0].datapoints


@torch.no_grad()
def _best_point(model: Model) -> Tensor:
    """The model's own point of largest posterior mean."""
    X = _own_points(model)
    return X[PosteriorMean(model)(X.unsqueeze(-2)).argmax()]


def register_challengers(*acquisitions: type[DuelingAcquisitionFunction]) -> None:
    """Register challengers, whose reference is by default the model's own point of largest posterior mean."""
    register(*acquisitions, X_reference=_best_point)


register(
    LogProbabilityOfValidity,
    QuantileBound,
    SkewBayesianActiveLearningByDisagreement,
)
register_challengers(DuelingLogExpectedImprovement)
register(SkewLogNoisyExpectedImprovement, X_baseline=_own_points)


@acqf_input_constructor(LevelSetInformation)
def construct_inputs_level_set(
    model: Model,
    bounds: list[tuple[float, float]] | None = None,
    level: float = DEFAULT_LEVEL,
    X_reference: Tensor | None = None,
    num_points: int = 128,
    kind: type[Observation] | None = None,
) -> dict[str, Any]:
    r"""Arguments of information about a level set: Sobol points within the bounds, or without these the model's own."""
    model = _single(model)
    reference = _reference(model, bounds, num_points).squeeze(-2) if X_reference is None else X_reference
    return {"model": model, "level": level, "X_reference": reference, "kind": kind}


@acqf_input_constructor(PredictiveInformation)
def construct_inputs_predictions(
    model: Model,
    bounds: list[tuple[float, float]] | None = None,
    X_reference: Tensor | None = None,
    num_points: int = 128,
    kind: type[Observation] | None = None,
) -> dict[str, Any]:
    r"""Arguments of information about predictions at such points, of duels at pairs of them."""
    model = _single(model)
    if X_reference is None:
        k = PredictiveInformation.kind_of(model, kind).points_per_observation
        X_reference = _reference(model, bounds, num_points, k)
        X_reference = X_reference.squeeze(-2) if k == 1 else X_reference
    return {"model": model, "X_reference": X_reference, "kind": kind}


def _reference(model: Model, bounds: list[tuple[float, float]] | None, num_points: int, q: int = 1) -> Tensor:
    """Sobol points within bounds, or the model's own in their order, `n x q x d`."""
    own = _own_points(model)
    if bounds is None:
        return own[: len(own) // q * q].view(-1, q, own.shape[-1])
    return draw_sobol_samples(torch.as_tensor(bounds).to(own).mT, n=num_points, q=q, seed=0)
