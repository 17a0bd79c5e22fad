"""Likelihoods: the learnable noise and cut-points, and how each kind of observation becomes rows."""

from botorch_skewgp.likelihoods.affine import (
    LabelPreferenceLikelihood,
    MixedLikelihood,
    ProbitAffineLikelihood,
    default_likelihood,
)
from botorch_skewgp.likelihoods.base import OutcomeScale, RowLikelihood
from botorch_skewgp.likelihoods.numeric import NumericLikelihood
from botorch_skewgp.likelihoods.preference import PreferenceLikelihood
from botorch_skewgp.likelihoods.probit import OrdinalLikelihood, ProbitLikelihood, ValidityLikelihood
from botorch_skewgp.likelihoods.rows import Rows

__all__ = [
    "LabelPreferenceLikelihood",
    "MixedLikelihood",
    "NumericLikelihood",
    "OrdinalLikelihood",
    "OutcomeScale",
    "PreferenceLikelihood",
    "ProbitAffineLikelihood",
    "ProbitLikelihood",
    "RowLikelihood",
    "Rows",
    "ValidityLikelihood",
    "default_likelihood",
]
