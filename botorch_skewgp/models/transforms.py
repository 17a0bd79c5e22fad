"""The outcome transform and posterior transforms of a model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.checks import check_class
from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.numeric import have_sums
from botorch_skewgp.posteriors import SkewGPPosterior


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
        if have_sums(observations):
            raise InputDataError(
                "Standardize learns from numbers of single points, or from censored readings, and all numbers here are "
                "weighted sums. Leave outcome_transform out, and give (values - location * weights.sum(-1)) / scale "
                "with a location and scale of your own."
            )
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
