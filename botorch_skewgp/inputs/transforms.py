"""Input transforms: what they do to which inputs, and BoTorch's hooks for models that have one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from botorch.models.transforms.input import (
    AppendFeatures,
    ChainedInputTransform,
    InputTransform,
    Log10,
    NumericToCategoricalEncoding,
    Round,
)
from botorch.models.utils.assorted import fantasize
from torch import Tensor

from botorch_skewgp.inputs.columns import as_columns


def applied_transforms(input_transform: InputTransform | None) -> Iterator[InputTransform]:
    """The transforms of a chain in evaluation mode, in their order."""
    if isinstance(input_transform, ChainedInputTransform):
        for part in input_transform.values():
            assert isinstance(part, InputTransform)
            yield from applied_transforms(part)
    elif input_transform is not None and input_transform.transform_on_eval:
        yield input_transform


def transformed_dim(input_transform: InputTransform, train_X: Tensor) -> int:
    """The number of columns of transformed `train_X`."""
    with torch.no_grad():
        return input_transform.to(train_X)(train_X).shape[-1]


def num_appended_columns(input_transform: InputTransform | None, train_X: Tensor) -> int:
    """The number of columns that an input transform appends to queries, but not to training points, `n x d`."""
    total = 0
    for part in applied_transforms(input_transform):
        # made by `fantasize`, queries are new training points
        is_used = not part.transform_on_train and (part.transform_on_fantasize or fantasize.off())
        if isinstance(part, AppendFeatures) and is_used:
            features = getattr(part, "feature_set", None)
            features = part.transform(train_X[:1])[..., train_X.shape[-1] :] if features is None else features
            total += features.shape[-1]
    return total


def whole_inputs(input_transform: InputTransform | None, dim: int) -> list[int]:
    """Which of `dim` inputs an input transform rounds to whole numbers before anything else."""
    first = next(applied_transforms(input_transform), None)
    return as_columns(first.integer_indices, dim, "integer_indices") if isinstance(first, Round) else []


def logarithmic_inputs(input_transform: InputTransform | None, dim: int) -> list[int]:
    """Of which of `dim` inputs an input transform takes the logarithm first, or after rounding."""
    logarithmic: list[int] = []
    for part in applied_transforms(input_transform):
        if isinstance(part, Log10) and not part.reverse:
            logarithmic += as_columns(part.indices, dim, "indices")
        elif not isinstance(part, Round):
            break
    return logarithmic


def encoded_inputs(input_transform: InputTransform | None, dim: int) -> list[int]:
    """Which of `dim` inputs are numbers of categories that an input transform encodes."""
    parts = [part for part in applied_transforms(input_transform) if isinstance(part, NumericToCategoricalEncoding)]
    return sorted({i for part in parts for i in as_columns(part.categorical_features, dim, "categorical_features")})


def has_transformed_inputs(model: Any) -> bool:
    """Whether the `train_inputs` of a BoTorch model are transformed at present, as in evaluation mode."""
    return getattr(model, "_has_transformed_inputs", False) and model._original_train_inputs is not None


def untransformed_inputs(model: Any) -> Tensor:
    """The training points of a BoTorch model before its input transform, in any mode."""
    if has_transformed_inputs(model):  # BoTorch has no public name for them
        return model._original_train_inputs
    return model.train_inputs[0]


class TransformedInputsMixin:
    r"""BoTorch's hooks for input transforms, without clearing caches; `_points` are the untransformed points."""

    _points: Tensor
    _original_train_inputs: Tensor | None

    def restore_inputs(self) -> None:
        """Set `train_inputs` to the untransformed points, in any mode."""
        self.train_inputs, self._original_train_inputs, self._has_transformed_inputs = (self._points,), None, False

    def _set_transformed_inputs(self) -> None:
        """Transform the inputs when evaluation mode begins."""
        if hasattr(self, "input_transform") and not self._has_transformed_inputs:
            self._original_train_inputs = self._points
            with torch.no_grad():
                self.train_inputs = (self.input_transform.preprocess_transform(self._points),)
            self._has_transformed_inputs = True

    _revert_to_original_inputs = restore_inputs  # when training mode begins
