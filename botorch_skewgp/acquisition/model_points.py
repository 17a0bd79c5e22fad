"""What proposals ask of any BoTorch model, its own points and posterior means there."""

from __future__ import annotations

import torch
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.inputs.transforms import has_transformed_inputs, untransformed_inputs


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
