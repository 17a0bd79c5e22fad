r"""Transforms of a model: input transforms, the outcome transform, posterior transforms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.input import (
    AppendFeatures,
    ChainedInputTransform,
    InputTransform,
    Log10,
    NumericToCategoricalEncoding,
    ReversibleInputTransform,
    Round,
)
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.models.utils.assorted import fantasize
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.checks import check_class
from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior


def transformed_dim(input_transform: InputTransform, train_X: Tensor) -> int:
    """The number of columns of transformed `train_X`."""
    with torch.no_grad():
        return input_transform.to(train_X)(train_X).shape[-1]


def learn_outcome_scale(observations: Sequence[Observation], transform: OutcomeTransform | None) -> OutcomeScale:
    """Learn the standardisation from numbers, else from middles. Raises `InputDataError` or `UnsupportedError`."""
    if transform is None:
        return OutcomeScale()
    values = [entry.numbers for entry in observations if entry.numbers.numel()]
    values = values or [entry.middles for entry in observations if entry.middles.numel()]
    if type(transform) is not Standardize or (values and transform.means.shape != (1, 1)):
        raise UnsupportedError(
            "outcome_transform must be Standardize(m=1), an affine transform that keeps the meaning of comparisons. "
            "Apply other transforms to the numbers before building the model; got "
            f"{type(transform).__name__}."
        )
    if not values:
        return OutcomeScale()
    transform.train()
    transform(torch.cat(values).unsqueeze(-1))
    transform.eval()
    location, scale = float(transform.means), float(transform.stdvs)
    if not (math.isfinite(location) and math.isfinite(scale)):
        raise InputDataError(
            f"The numbers are too large to be standardised in {values[0].dtype}: mean {location:.3g}, standard "
            f"deviation {scale:.3g}. Use double precision, or scale them."
        )
    return OutcomeScale(location, scale)


def apply_posterior_transform(transform: PosteriorTransform | None, posterior: SkewGPPosterior, X: Tensor) -> Posterior:
    """Apply a posterior transform to a skewed posterior; affine ones keep the skewness."""
    if transform is None:
        return posterior
    check_class(transform, "posterior_transform", PosteriorTransform)
    if type(transform) is ScalarizedPosteriorTransform:
        return posterior.scalarize(transform.get_buffer("weights"), transform.offset)
    if type(transform) is ExpectationPosteriorTransform:
        return posterior.expectation(transform.get_buffer("weights"), transform.n_w)
    return transform(posterior=posterior, X=X)


def num_appended_columns(input_transform: InputTransform | None, train_X: Tensor) -> int:
    """The number of columns that an input transform appends to queries, but not to training points, `n x d`."""
    total = 0
    for part in _flat(input_transform):
        # made by `fantasize`, queries are new training points
        is_used = not part.transform_on_train and (part.transform_on_fantasize or fantasize.off())
        if isinstance(part, AppendFeatures) and is_used:
            features = getattr(part, "feature_set", None)
            features = part.transform(train_X[:1])[..., train_X.shape[-1] :] if features is None else features
            total += features.shape[-1]
    return total


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


def rounded_inputs(input_transform: InputTransform | None, X: Tensor) -> Tensor:
    """Points rounded exactly as a model's input transform rounds them, in original units. Raises `UnsupportedError`."""
    chain = list(_flat(input_transform))
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


def whole_inputs(input_transform: InputTransform | None) -> list[int]:
    """The inputs that an input transform rounds to whole numbers before anything else."""
    first = next(_flat(input_transform), None)
    if not isinstance(first, Round):
        return []
    assert isinstance(first.integer_indices, Tensor)
    return first.integer_indices.tolist()


def logarithmic_inputs(input_transform: InputTransform | None) -> list[int]:
    """The inputs whose logarithm an input transform takes first, or after rounding."""
    found: list[int] = []
    for part in _flat(input_transform):
        if isinstance(part, Log10) and not part.reverse:
            assert isinstance(part.indices, Tensor)
            found += part.indices.tolist()
        elif not isinstance(part, Round):
            break
    return found


def encoded_inputs(input_transform: InputTransform | None) -> list[int]:
    """The inputs whose numbers of categories an input transform encodes."""
    parts = [part for part in _flat(input_transform) if isinstance(part, NumericToCategoricalEncoding)]
    return sorted({i for part in parts for i in part.categorical_features})


def _flat(input_transform: InputTransform | None) -> Iterator[InputTransform]:
    """The transforms of a chain in evaluation mode, in their order."""
    if isinstance(input_transform, ChainedInputTransform):
        for part in input_transform.values():
            assert isinstance(part, InputTransform)
            yield from _flat(part)
    elif input_transform is not None and input_transform.transform_on_eval:
        yield input_transform
