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
from botorch.models.model import Model, ModelList
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.acquisition.active_learning import (
    LevelSetInformation,
    PredictiveInformation,
    SkewBayesianActiveLearningByDisagreement,
)
from botorch_skewgp.acquisition.analytic import (
    QuantileBound,
    SkewLogExpectedImprovement,
    SkewLogNoisyExpectedImprovement,
    SkewLogProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.dueling import DuelingAcquisitionFunction, DuelingLogExpectedImprovement
from botorch_skewgp.acquisition.safety import LogProbabilityOfSafety
from botorch_skewgp.acquisition.validity import LogProbabilityOfValidity
from botorch_skewgp.protocols import members_of

DEFAULT_LEVEL = 0.75  # probability of a yes that bounds a level set
NUM_POINTS = 128  # at which information is wanted
Bounds = list[tuple[float, float]] | None


def _single(model: Model) -> Model:
    """The model of a list of one, which Ax makes for comparisons."""
    return cast(Model, model.models[0]) if isinstance(model, ModelList) and len(model.models) == 1 else model


def _construct_improvement(model: Model, **options: Any) -> dict[str, Any]:
    return construct_inputs_best_f(model=_single(model), **options)


_construct_improvement.__signature__ = inspect.signature(construct_inputs_best_f)  # type: ignore[attr-defined]
acqf_input_constructor(SkewLogExpectedImprovement, SkewLogProbabilityOfImprovement)(_construct_improvement)

Default = Callable[[Model, Bounds, dict[str, Any]], Any]  # of a model, bounds and other arguments


def register(*acquisitions: type[AcquisitionFunction], **defaults: Default) -> None:
    """Register acquisition functions with their own arguments, and functions that return defaults of these."""
    for acquisition in acquisitions:

        def construct_inputs(model: Model, bounds: Bounds = None, **options: Any) -> dict[str, Any]:
            model = _single(model)
            given = {name: value for name, value in options.items() if value is not None}
            computed = {name: of(model, bounds, given) for name, of in defaults.items() if name not in given}
            return {"model": model, **computed, **given}

        signature = inspect.signature(acquisition)
        bounds = inspect.Parameter("bounds", inspect.Parameter.KEYWORD_ONLY, default=None)
        construct_inputs.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*signature.parameters.values(), bounds]
        )
        acqf_input_constructor(acquisition)(construct_inputs)


def _own_points(model: Model, *given: Any) -> Tensor:
    return members_of(model, "An acquisition function by name")[0].datapoints


@torch.no_grad()
def _best_point(model: Model, *given: Any) -> Tensor:
    """The model's own point of largest posterior mean."""
    X = _own_points(model)
    return X[PosteriorMean(model)(X.unsqueeze(-2)).argmax()]


def _reference(model: Model, bounds: Bounds, k: int = 1) -> Tensor:
    """Sobol points within bounds, or the model's own, `n x d`; sets of several, `n x k x d`."""
    own = _own_points(model)
    if bounds is None:
        sets = own[: len(own) // k * k].view(-1, k, own.shape[-1])
    else:
        sets = draw_sobol_samples(torch.as_tensor(bounds).to(own).mT, n=NUM_POINTS, q=k, seed=0)
    return sets.squeeze(-2) if k == 1 else sets


def _where_predictions_are_wanted(model: Model, bounds: Bounds, given: dict[str, Any]) -> Tensor:
    kind = PredictiveInformation.kind_of(model, given.get("kind"))
    return _reference(model, bounds, kind.points_per_observation)


def register_challengers(*acquisitions: type[DuelingAcquisitionFunction]) -> None:
    """Register challengers, whose reference is by default the model's own point of largest posterior mean."""
    register(*acquisitions, X_reference=_best_point)


register(LogProbabilityOfSafety, LogProbabilityOfValidity, QuantileBound, SkewBayesianActiveLearningByDisagreement)
register_challengers(DuelingLogExpectedImprovement)
register(SkewLogNoisyExpectedImprovement, X_baseline=_own_points)
register(PredictiveInformation, X_reference=_where_predictions_are_wanted)
register(
    LevelSetInformation,
    level=lambda *given: DEFAULT_LEVEL,
    X_reference=lambda model, bounds, given: _reference(model, bounds),
)
