"""Points as a model's input transform rounds them."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.input import InputTransform, ReversibleInputTransform, Round
from torch import Tensor

from botorch_skewgp.inputs.transforms import applied_transforms


def rounded_inputs(input_transform: InputTransform | None, X: Tensor) -> Tensor:
    """Points rounded exactly as a model's input transform rounds them, in original units. Raises `UnsupportedError`."""
    chain = list(applied_transforms(input_transform))
    last = max((i for i, part in enumerate(chain) if isinstance(part, Round)), default=-1)
    if last < 0:
        return X
    undone: list[ReversibleInputTransform] = []
    values = changed = X
    for part in chain[: last + 1]:
        if isinstance(part, Round):
            assert isinstance(part.integer_indices, Tensor)
            values = Round(part.integer_indices.tolist(), part.categorical_features).transform(values)
        elif isinstance(part, ReversibleInputTransform):
            values, changed = part.transform(values), part.transform(changed)
            undone.append(part)
        else:
            raise UnsupportedError(
                f"The input transform rounds after {type(part).__name__}, which cannot be inverted. Round first, or "
                "give a post_processing_func."
            )
    for part in reversed(undone):
        values, changed = part.untransform(values), part.untransform(changed)
    return torch.where(values == changed, X, values)  # unrounded inputs keep all digits
