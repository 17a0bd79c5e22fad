r"""Transforms that a model is given: of its training points, of outcomes, and of what rounds or takes logarithms."""

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
    ChainedInputTransform,
    InputTransform,
    Log10,
    ReversibleInputTransform,
    Round,
)
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import check_class
from botorch_skewgp.posteriors import SkewGPPosterior


def transformed_dim(input_transform: InputTransform, train_X: Tensor) -> int:
    """The number of columns that an input transform makes of `train_X`."""
    with torch.no_grad():
        return input_transform.to(train_X)(train_X).shape[-1]


def learn_outcome_scale(observations: Sequence[Observation], transform: OutcomeTransform | None) -> OutcomeScale:
    r"""Learn the standardisation from the numbers, or from the middles of censored readings if there are none.

    Args:
        observations: The observations, numbers or not.
        transform: `Standardize(m=1)`, which learns here; `None` for outcomes in units of the latent function.

    Raises:
        UnsupportedError: If the transform is another.
        InputDataError: If mean or standard deviation of the numbers overflow.
    """
    if transform is None:
        return OutcomeScale()
    values = [entry.numbers for entry in observations if entry.numbers.numel()]
    values = values or [entry.middles for entry in observations if entry.middles.numel()]
    if type(transform) is not Standardize or (values and transform.means.shape != (1, 1)):
        raise UnsupportedError(
            "outcome_transform must be Standardize(m=1): other transforms are not affine, so that comparisons would "
            "lose their meaning. Transform the numbers before building the model instead; got "
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
    r"""What a posterior transform makes of a skewed posterior; affine ones keep the skewness.

    Args:
        transform: The transform; `None` for none.
        posterior: The posterior.
        X: The points that it is of.

    Raises:
        InputDataError: If it is no posterior transform.
    """
    if transform is None:
        return posterior
    check_class(transform, "posterior_transform", PosteriorTransform)
    if type(transform) is ScalarizedPosteriorTransform:
        return posterior.scalarize(transform.get_buffer("weights"), transform.offset)
    if type(transform) is ExpectationPosteriorTransform:
        return posterior.expectation(transform.get_buffer("weights"), transform.n_w)
    return transform(posterior=posterior, X=X)


def has_transformed_inputs(model: Any) -> bool:
    """Whether the `train_inputs` of a BoTorch model are transformed ones at present, as in evaluation mode."""
    return getattr(model, "_has_transformed_inputs", False) and model._original_train_inputs is not None


def untransformed_inputs(model: Any) -> Tensor:
    r"""The training points of a BoTorch model before its input transform, whichever mode it is in.

    Args:
        model: A model with `train_inputs`.
    """
    if has_transformed_inputs(model):  # BoTorch's own bookkeeping, for which it has no public name
        return model._original_train_inputs
    return model.train_inputs[0]


class TransformedInputsMixin:
    r"""BoTorch's hooks for input transforms, without their detour over new data, which would clear what is cached.

    For BoTorch models that hold their training points, as they were given, as `_points`. `train_inputs` are these in
    training mode, and transformed ones in evaluation mode.
    """

    _points: Tensor
    _original_train_inputs: Tensor | None

    def restore_inputs(self) -> None:
        """Let `train_inputs` be the points as they were given, whatever the mode; `train` and `eval` set them."""
        self.train_inputs, self._original_train_inputs, self._has_transformed_inputs = (self._points,), None, False

    def _set_transformed_inputs(self) -> None:
        """Transform the inputs when evaluation mode begins."""
        if hasattr(self, "input_transform") and not self._has_transformed_inputs:
            self._original_train_inputs = self._points
            with torch.no_grad():
                self.train_inputs = (self.input_transform.preprocess_transform(self._points),)
            self._has_transformed_inputs = True

    def _revert_to_original_inputs(self) -> None:
        """Go back to the points as they were given when training mode begins."""
        self.restore_inputs()


def rounded_inputs(input_transform: InputTransform | None, X: Tensor) -> Tensor:
    r"""The points that a model with an input transform takes others for: rounded where it rounds, before it transforms.

    `Round` may stand alone, before or after other transforms of a chain. Straight-through gradients and approximate
    rounding are for optimisers; here values are rounded.

    Args:
        input_transform: The input transform of a model.
        X: Points, `... x d`.

    Raises:
        UnsupportedError: If transforms before the rounding cannot be undone.
    """
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
                f"The input transform rounds after {type(part).__name__}, which cannot be undone to see which inputs "
                "that means. Round first, or give a post_processing_func."
            )
    for part in reversed(undone):
        values, changed = part.untransform(values), part.untransform(changed)
    return torch.where(values == changed, X, values)  # what is not rounded stays as it is, to the last digit


def whole_inputs(input_transform: InputTransform | None) -> list[int]:
    r"""The inputs that an input transform rounds to whole numbers before anything else.

    Args:
        input_transform: The input transform of a model.
    """
    first = next(_flat(input_transform), None)
    if not isinstance(first, Round):
        return []
    assert isinstance(first.integer_indices, Tensor)
    return first.integer_indices.tolist()


def logarithmic_inputs(input_transform: InputTransform | None) -> list[int]:
    r"""The inputs whose logarithm an input transform takes before anything else but rounding.

    Args:
        input_transform: The input transform of a model.
    """
    found: list[int] = []
    for part in _flat(input_transform):
        if isinstance(part, Log10) and not part.reverse:
            assert isinstance(part.indices, Tensor)
            found += part.indices.tolist()
        elif not isinstance(part, Round):
            break
    return found


def _flat(input_transform: InputTransform | None) -> Iterator[InputTransform]:
    """The transforms of a chain that apply in evaluation mode, in their order."""
    if isinstance(input_transform, ChainedInputTransform):
        for part in input_transform.values():
            assert isinstance(part, InputTransform)
            yield from _flat(part)
    elif input_transform is not None and input_transform.transform_on_eval:
        yield input_transform
