r"""Default noise levels, cut-points and their priors, each with its reason; and what defaults depend on.

Variances and widths are in (squared) units of the latent function, whose own default prior is in
`botorch_skewgp.models.defaults`; `LogNormal(location, spread)` priors are given by these two numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.observation import Kind


class Context(NamedTuple):
    """What defaults of likelihoods depend on.

    Args:
        kinds: All kinds of observations of the model, also those without an observation so far.
        observations: The observations.
    """

    kinds: tuple[Kind, ...]
    observations: tuple[Observation, ...] = ()

    @property
    def anchors_scale(self) -> bool:
        """Whether some kind fixes location and scale of the latent function, not only by bounds of it."""
        readings = {type(entry) for entry in self.observations if entry.tells_values}
        bounds = {type(entry) for entry in self.observations} - readings
        return any(kind.anchors_scale for kind in self.kinds if kind not in bounds)


# Labels, grades and comparisons determine the latent function relative to their noise, which is therefore its unit.
JUDGEMENT_NOISE = 1.0
# Failures tend to repeat: their boundary is ten times as sharp as that of labels.
VALIDITY_NOISE = 0.01
# Slopes are known, by a law of nature or as a requirement of the function.
SLOPE_NOISE = 0.0
# Beside numbers, which fix the scale of the latent function, the noise variance of labels and comparisons is learned.
# Its logarithm is normal around log 0.37, in units of a standardised number's variance; two spreads are 0.05 to 2.7.
# The evidence hardly tells 0.003 from 0.09, so that a prior that prefers small noise takes grades for exact.
ANCHORED_NOISE = 0.1
ANCHORED_NOISE_PRIOR = (-1.0, 1.0)
# For standardised numbers the prior of BoTorch's SingleTaskGP: a median of 0.02, mostly 0.003 to 0.13. It is one of the
# logarithm, as fits that pull to its mode of 0.007 take noise for the function. Fits start high, at a tenth of the
# variance: from a low start they keep a function that explains the noise.
NUMERIC_NOISE = 0.1
NUMERIC_NOISE_PRIOR = (-4.0, 1.0)
# With a width of half an item's noise 28 % of the duels between equals are ties. A learned width has a median of 0.37,
# and is often a fifth or five times of that.
TIE_WIDTH = 0.5
TIE_WIDTH_PRIOR = (-1.0, 1.0)
# The spread of the logarithms of judges' widths around the common one: two thirds of judges are within a factor of 2.
TIE_WIDTH_SPREAD = 0.7
# The gap between cut-points is about the noise that blurs them; without a prior the gap of an unused grade vanishes. Of
# the logarithm: predicted grades are better by .05 nats than under the mode of 0.37 that a density of the gap has.
GAP_PRIOR = (0.0, 1.0)
# Beside numbers the level of labels and cut-points is learned too. It may lie at the ends of the numbers seen so far.
SHIFT_SPREAD = 2.0
# The spread of the logarithms of judges' stretches of the cut-points of grades: two thirds are within a factor of 1.4.
STRETCH_SPREAD = 0.35
# A fit starts with steps of "a little" and "much" better about as wide as an item's noise.
STRENGTH_GAP = 1.0
# A learned rate of slips: most judges slip in a few of a hundred answers, and some answer at random. So the odds of a
# slip have a half-Cauchy prior: a median of 1 to 20, and a rate above one half in 3 %.
SLIP_START = 0.02
SLIP_ODDS_SCALE = 0.05
# The gap between "both bad" and "both good" is about that between two grades.
LEVEL_GAP = 1.0
