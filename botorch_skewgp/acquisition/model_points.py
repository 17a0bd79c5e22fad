"""What proposals ask of any BoTorch model, its own points and posterior means there; and the options of searches."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.search_options import CONSTRAINTS, OPTIONS
from botorch_skewgp.checks import as_count
from botorch_skewgp.inputs.transforms import has_transformed_inputs, untransformed_inputs

# with these options the best known point need not be a valid start
STARTS_ARE_CHECKED = {*CONSTRAINTS, "batch_initial_conditions", "fixed_features", "ic_generator"}


def posterior_means(model: Model, X: Tensor, posterior_transform: PosteriorTransform | None = None) -> Tensor:
    """The posterior means of `n x d` points."""
    with torch.no_grad():
        return PosteriorMean(model, posterior_transform=posterior_transform)(X.unsqueeze(-2))


def check_one_output(model: Model) -> None:
    """Raise `UnsupportedError` for a model of several outputs."""
    if model.num_outputs != 1:
        raise UnsupportedError(
            f"The model has {model.num_outputs} outputs: give a posterior_transform (recommend only) or a model of one "
            "utility."
        )


def points_of(model: Model) -> Tensor | None:
    """The model's points before any input transform, `n x d`; `None` if it has no single set of them."""
    if has_transformed_inputs(model):
        return untransformed_inputs(model)
    points = getattr(model, "datapoints", None)
    if points is None:
        points = getattr(model, "train_inputs", None)
    if isinstance(points, tuple | list) and len(points) == 1:
        (points,) = points
    return points if isinstance(points, Tensor) and points.ndim == 2 else None


def checked_options(options: dict[str, Any], num_restarts: int, raw_samples: int) -> dict[str, Any]:
    """All options of a search; raises `InputDataError` for those that BoTorch's own errors do not name."""
    search = dict(options)
    search["num_restarts"] = as_count(num_restarts, "num_restarts", least=1)
    search["raw_samples"] = as_count(raw_samples, "raw_samples", least=1)
    if "X_pending" in search:
        raise InputDataError(
            "X_pending is not supported; for several pairs at once give next_pair num_pairs, for other questions an "
            "acquisition function with pending points as the method."
        )
    unknown = sorted(search.keys() - OPTIONS)
    if unknown and "ic_generator" not in search:
        raise InputDataError(f"optimize_acqf has no argument {', '.join(unknown)}; leave it out.")
    return search
