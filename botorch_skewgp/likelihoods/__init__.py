"""Likelihoods: learnable noise and cut-points, the reading of each kind of observation, and its rows.

`base` derives rows, predictions and fantasies from a reading, which `numeric`, `probit`, `ordinal`, `preference`,
`votes` and `functionals` state; `mixed` combines several kinds. `parameters` are those
of all judges or of each, `registry` and `defaults` the defaults, `outcome_scale` units, `predictions` distributions.
"""

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.defaults import Context
from botorch_skewgp.likelihoods.functionals import ProbitAffineLikelihood, SlopeLikelihood
from botorch_skewgp.likelihoods.mixed import MixedLikelihood
from botorch_skewgp.likelihoods.numeric import NumericLikelihood
from botorch_skewgp.likelihoods.ordinal import OrdinalLikelihood
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.likelihoods.preference import PreferenceLikelihood
from botorch_skewgp.likelihoods.probit import LabelPreferenceLikelihood, ProbitLikelihood, ValidityLikelihood
from botorch_skewgp.likelihoods.registry import default_likelihood, register_default_likelihood
from botorch_skewgp.likelihoods.votes import VoteLikelihood

__all__ = [
    "Context",
    "LabelPreferenceLikelihood",
    "MixedLikelihood",
    "NumericLikelihood",
    "OrdinalLikelihood",
    "OutcomeScale",
    "PreferenceLikelihood",
    "ProbitAffineLikelihood",
    "ProbitLikelihood",
    "RowLikelihood",
    "SlopeLikelihood",
    "ValidityLikelihood",
    "VoteLikelihood",
    "default_likelihood",
    "register_default_likelihood",
]
