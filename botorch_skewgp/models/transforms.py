r"""What a model learns from the transforms that it is given."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from torch import Tensor

from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.observations import Observation


def transformed_dim(input_transform: InputTransform, train_X: Tensor) -> int:
    """The number of columns that an input transform makes of `train_X`."""
    with torch.no_grad():
        return input_transform.to(train_X)(train_X).shape[-1]


def learn_outcome_scale(observations: Sequence[Observation], transform: OutcomeTransform | None) -> OutcomeScale:
    """Learn the standardisation from the numbers."""
    if transform is None:
        return OutcomeScale()
    if type(transform) is not Standardize:
        raise UnsupportedError(
            "outcome_transform must be Standardize(m=1): other transforms are not affine, so that comparisons would "
            "lose their meaning. Transform the numbers before building the model instead; got "
            f"{type(transform).__name__}."
        )
    values = [entry.numbers for entry in observations if entry.numbers.numel()]
    if not values:
        return OutcomeScale()
    transform.train()
    transform(torch.cat(values).unsqueeze(-1))
    transform.eval()
    return OutcomeScale(float(transform.means), float(transform.stdvs))
