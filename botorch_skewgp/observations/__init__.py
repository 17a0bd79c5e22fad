"""Observations: small immutable classes, one for each kind, validated when built.

`observation` has their base classes, `checks` the checks of arguments; `numeric`, `labels`, `duels`, `rankings`
and `functionals` are the kinds. They refer to rows of `train_X` by index; noise belongs to the likelihoods.
"""

from botorch_skewgp.observations.duels import GradedPreference, Preference, Tie, Vote
from botorch_skewgp.observations.functionals import AffineProbit, Slope
from botorch_skewgp.observations.labels import Binary, LabelPreference, Ordinal, Validity
from botorch_skewgp.observations.numeric import Censored, Numeric
from botorch_skewgp.observations.observation import Mark, Observation, number_judges
from botorch_skewgp.observations.rankings import Choice, ChoiceOrNone, Ranking

__all__ = [
    "AffineProbit",
    "Binary",
    "Censored",
    "Choice",
    "ChoiceOrNone",
    "GradedPreference",
    "LabelPreference",
    "Mark",
    "Numeric",
    "Observation",
    "Ordinal",
    "Preference",
    "Ranking",
    "Slope",
    "Tie",
    "Validity",
    "Vote",
    "number_judges",
]
