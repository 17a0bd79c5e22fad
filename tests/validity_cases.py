"""Experiments that fail where the objective is largest."""

import torch
from acquisition_checks import DOUBLE
from acquisition_checks import make_model as model_of
from botorch.models.transforms.outcome import Standardize

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, ValidityLikelihood
from botorch_skewgp.observations import Numeric, Validity
from botorch_skewgp.rows import Reading

POINTS = torch.rand(20, 2, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
VALUES = POINTS.sum(-1)
WORKED = POINTS[:, 0] < 0.5  # the objective grows towards where experiments fail


class FallingValidityLikelihood(ValidityLikelihood):
    """Experiments are valid where the latent function is below the threshold."""

    def reading(self, *args, **kwargs) -> Reading:
        rising = super().reading(*args, **kwargs)
        return Reading(-rising.weight, -rising.cutpoints, rising.noise, slips=rising.slips)


def make_model(observations, **options) -> SkewGP:
    return model_of(observations, X=POINTS, **options)


def mixed_model() -> SkewGP:
    """Numbers, and whether experiments worked, of one function."""
    return make_model(
        [Numeric(VALUES[:15]), Validity(WORKED[10:], index=torch.arange(10, 20))],
        likelihood=MixedLikelihood(NumericLikelihood(noise=0.01), ValidityLikelihood(threshold=1.0, noise=0.1)),
        outcome_transform=Standardize(m=1),
    )
